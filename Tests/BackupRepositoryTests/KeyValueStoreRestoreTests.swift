import ContainerTransaction
import Formats
import TestSupport
import Testing

@testable import BackupRepository

@Suite struct KeyValueStoreRestoreTests {
  private func settings(_ lab: Lab) throws -> PropertyListDictionary {
    try PropertyListFile(bytes: Array(RawFiles.read(lab.full("cloud.plist")))).root
  }

  private func write(_ lab: Lab, _ values: PropertyListDictionary) throws {
    try lab.write("cloud.plist", PropertyListFile(root: values).encoded())
  }

  @Test func aLiveValueIsNeverOverwritten() throws {
    let lab = try Lab()
    lab.configuration.defaults["icloud"] = "cloud.plist"
    try write(lab, ["theme": "dark", "lost": 1, "same": true])
    try lab.write("file", "old")
    let archive = try lab.snapshot().path
    try write(lab, ["theme": "light", "same": true, "new": 2])
    try lab.write("file", "new")
    let planned = try lab.dryRun(archive).value
    let report = try lab.restore(archive).value
    #expect(try settings(lab) == ["theme": "light", "lost": 1, "same": true, "new": 2])
    #expect(try lab.read("file") == "old")
    for report in [planned, report] {
      #expect(report.keptValues == ["cloud.plist": 1])
    }
    // It is the live file's change that is undone, key by key.
    _ = try Transaction.rollback(lab.container())
    #expect(try settings(lab) == ["theme": "light", "same": true, "new": 2])
  }

  @Test func anAbsentStoreIsRestored() throws {
    let lab = try Lab()
    lab.configuration.defaults["icloud"] = "cloud.plist"
    try write(lab, ["theme": "dark"])
    let archive = try lab.snapshot().path
    try lab.remove("cloud.plist")
    #expect(try lab.restore(archive).value.keptValues.isEmpty)
    #expect(try settings(lab) == ["theme": "dark"])
  }
}

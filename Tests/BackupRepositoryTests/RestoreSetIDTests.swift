import ContainerTransaction
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Set-user-id and set-group-id bits, and capabilities, come back when they are asked for.
@Suite struct RestoreSetIDTests {
  private static let paths = ["group", "net", "shared", "tool"]
  private static let capability = "security.capability"
  /// `cap_net_raw+ep`, as the kernel keeps it.
  private static let value: [UInt8] =
    [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8)

  private let lab: Lab, archive: String

  init() throws {
    lab = try Lab()
    for name in ["tool", "group", "net", "plain"] { try lab.write(name, name) }
    try lab.shell("mkdir shared; chmod 4755 tool; chmod 2755 group; chmod 2775 shared", in: lab.root)
    try Self.setCapability(lab)
    archive = try lab.snapshot().path
  }

  private static func setCapability(_ lab: Lab) throws {
    // Only root may.
    if geteuid() == 0 { try ExtendedAttributes.set(capability, value, of: lab.full("net")) }
  }

  private func expected() -> [String] { Self.paths.filter { $0 != "net" || geteuid() == 0 } }

  private func modes(_ root: String) throws -> [String] {
    try ["tool", "group", "shared"].map {
      String(try RawFiles.status(Array("\(root)/\($0)".utf8)).st_mode & 0o7777, radix: 8)
    }
  }

  private func hasCapability(_ root: String) throws -> Bool {
    try ExtendedAttributes.all(of: Array("\(root)/net".utf8))[Array(Self.capability.utf8)] != nil
  }

  @Test func rightsComeBackOnlyWhenAskedFor() throws {
    let new = lab.directory("new")
    let planned = try lab.dryRun(archive, to: new).value
    let report = try lab.restore(archive, to: new).value
    #expect(
      report.withoutSetID.map(\.description) == expected() && planned.withoutSetID == report.withoutSetID)
    #expect(try modes(new) == ["755", "755", "775"] && !hasCapability(new))

    // The same once more is no difference, and is said all the same.
    let second = try lab.restore(archive, to: new)
    #expect(second.transaction == nil && second.value.withoutSetID == report.withoutSetID)
    #expect(try lab.dryRun(archive, to: new).value.restored.isEmpty)

    let asked = try lab.restore(archive, to: new) { $0.keepsSetID = true }
    #expect(asked.transaction != nil && asked.value.withoutSetID.isEmpty)
    #expect(try modes(new) == ["4755", "2755", "2775"] && hasCapability(new) == (geteuid() == 0))
    #expect(try lab.restore(archive, to: new) { $0.keepsSetID = true }.transaction == nil)
    _ = try Transaction.rollback(lab.container(new))
    #expect(try modes(new) == ["755", "755", "775"])
  }

  @Test func whatTheContainerHasForTheSameContentStays() throws {
    #expect(try lab.restore(archive).transaction == nil)
    // Other times alone.
    try lab.shell("touch tool group net shared; rm plain", in: lab.root)
    let report = try lab.restore(archive).value
    #expect(report.withoutSetID.isEmpty && report.restoredPaths.contains("tool"))
    #expect(try modes(lab.root) == ["4755", "2755", "2775"] && hasCapability(lab.root) == (geteuid() == 0))
  }

  @Test func otherContentAndOtherOwnersGetNone() throws {
    try lab.shell("echo other > tool; echo other > net; chmod 4755 tool", in: lab.root)
    try Self.setCapability(lab)
    if geteuid() == 0 { try lab.shell("chown 1234 group shared; chmod g+s group shared", in: lab.root) }
    let report = try lab.restore(archive).value
    #expect(try lab.read("tool") == "tool" && !hasCapability(lab.root))
    #expect(try modes(lab.root) == (geteuid() == 0 ? ["755", "755", "775"] : ["755", "2755", "2775"]))
    #expect(report.withoutSetID.map(\.description) == (geteuid() == 0 ? expected() : ["tool"]))
  }
}

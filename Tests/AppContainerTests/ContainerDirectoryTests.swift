import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

@Suite struct ContainerDirectoryTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func make(_ paths: String...) throws {
    for path in paths {
      try RawFiles.createDirectories(folder("all/" + path))
    }
  }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: folder("all/" + name), withDestinationPath: target)
  }

  private func error(_ body: () throws -> Void) -> DrydockError? {
    do { try body() } catch { return error as? DrydockError }
    return nil
  }

  @Test("What has a container's layout or its history is one; the rest is passed over, by name")
  func shape() throws {
    try make(
      "b/Documents", "b/Library", "a/shared_prefs", "c/.drydock", "B/.drydock-state",
      "plain/deep/Documents",
      "empty", ".drydock-0123456789abcdef/undo", "d.xcappdata/AppData", "e")
    try Data("{}".utf8).write(to: URL(fileURLWithPath: folder("all/c/.drydock/history.json")))
    try Data().write(to: URL(fileURLWithPath: folder("all/README")))
    try Data().write(to: URL(fileURLWithPath: folder("all/.DS_Store")))
    try Data().write(
      to: URL(fileURLWithPath: folder("all/e/.com.apple.mobile_container_manager.metadata.plist")))
    let found = try ContainerDirectory(folder("all"))
    #expect(found.containers.map(\.name) == ["B", "a", "b", "c", "d.xcappdata", "e"])
    #expect(found.containers.map(\.path) == found.containers.map { folder("all/" + $0.name) })
    #expect(found.skipped == ["README", "empty", "plain"])
  }

  @Test("A store, a marker or a layout of drydock.yaml shows a container")
  func configured() throws {
    try make("a/data", "b/config", "c/other", "d/Documents", "e/box")
    for file in ["a/data/new.db", "b/config/v.json", "e/box/s.plist"] {
      try Data().write(to: URL(fileURLWithPath: folder("all/" + file)))
    }
    var configuration = ContainerConfiguration()
    configuration.layout = .generic
    configuration.databases = ["notes": ["data/old.db", "data/new.db"]]
    configuration.versionMarkers = [.init(place: .json(path: "config/v.json", pointer: "/v"))]
    configuration.defaults = ["standard": "box/s.plist"]
    let found = try ContainerDirectory(folder("all"), configuration: configuration)
    #expect(found.containers.map(\.name) == ["a", "b", "e"] && found.skipped == ["c", "d"])
    configuration.layout = .ios
    #expect(
      try ContainerDirectory(folder("all"), configuration: configuration).containers.map(\.name)
        == ["a", "b", "d", "e"])
  }

  @Test(
    "A link leads to a container, which is there once; what cannot be followed or named has failed, but no file"
  )
  func links() throws {
    try make("one/shared_prefs", "../elsewhere/shared_prefs")
    try link("current", to: "one")
    try link("far", to: folder("elsewhere"))
    try link("nowhere", to: "gone")
    try link("loop", to: "loop")
    try Data().write(to: URL(fileURLWithPath: folder("all/file")))
    try link("to-file", to: "file")
    try Directory(folder("all")).createDirectory(ContainerPath(name: [0x78, 0xff]))
    try Directory(folder("all")).create(ContainerPath(name: [0x79, 0xff]), [])
    let found = try ContainerDirectory(folder("all"))
    #expect(found.containers.map(\.name) == ["far", "loop", "nowhere", "one", "x\u{FFFD}"])
    #expect(found.skipped == ["file", "to-file", "y\u{FFFD}"])
    let errors = found.containers.map { child in error { try child.requireUsable() } }
    #expect(errors.map { $0?.code } == [nil, .notFound, .notFound, nil, .unsupported])
    #expect(errors[2]?.message == "the link cannot be followed; fix it, or remove it")
  }

  @Test("A group beside the containers that share it is none of them")
  func group() throws {
    try make("a/Documents", "b/Documents", "group/Library/Preferences")
    var configuration = ContainerConfiguration()
    configuration.layout = .ios
    configuration.groups = ["group.x": "../group", "group.y": folder("all/b/../none")]
    let found = try ContainerDirectory(folder("all"), configuration: configuration)
    #expect(found.containers.map(\.name) == ["a", "b"] && found.skipped == ["group"])
  }

  @Test("A container itself, a directory without any, a file and nothing are refused")
  func refused() throws {
    try make("a/Documents", "a/Library/Preferences", "empty")
    let itself = error { _ = try ContainerDirectory(folder("all/a")) }
    #expect(itself?.code == .notAContainer && itself?.message.contains("name its parent directory") == true)
    #expect(error { _ = try ContainerDirectory(folder("all/empty")) }?.code == .notFound)
    #expect(error { _ = try ContainerDirectory(folder("gone")) }?.code == .notFound)
    try Data().write(to: URL(fileURLWithPath: folder("file")))
    #expect(error { _ = try ContainerDirectory(folder("file")) }?.code == .notAContainer)
  }
}

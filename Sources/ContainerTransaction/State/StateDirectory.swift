import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// Drydock's own directory of a container, open to its owner only, and ignored unless it is (``Directory/stateDirectory(_:)``): `.drydock-<hash of the name>/` beside it, or
/// `.drydock-state/` in it where changes are made in place. A container has both when it was once changed in one way
/// and once in the other.
///
/// It holds `journal` (one record a line), `stage/<transaction>/` (what is being prepared),
/// `undo/<transaction>/` (what the last transactions replaced), `conflict/<transaction>/` (concurrent
/// changes of an app that could not be applied), `files` (``CommittedFiles``), and, once a
/// setting was moved into the vault, `moved` (the settings, ``Sealing``) and `sealed` (the conflict copies that are encrypted).
package struct StateDirectory: Sendable {
  /// Where it is, with the strategy of a commit that it is for.
  package enum Place: String, Sendable, CaseIterable {
    /// In the directory that the container is in: for an atomic exchange, by which any program finds the container
    /// wholly old or wholly new at every moment.
    case beside = "exchange"
    /// In the container's root: for a journaled replacement, path by path by a plan that is written down first. Another
    /// program could see a mixture while it lasts.
    case inside = "in-place"
  }

  package let directory: Directory
  /// The open directory that it is in: the one that the container is in, or the container's root.
  package let parent: Directory
  /// The name of the container's root as seen from ``parent``: one component, two inside a bundle, none (the root) for a
  /// state inside.
  package let rootName: ContainerPath
  package let place: Place

  static let journal: ContainerPath = "journal"
  static let stage: ContainerPath = "stage"
  static let undo: ContainerPath = "undo"
  static let conflict: ContainerPath = "conflict"

  /// Where the state of a container is, and how its root is reached from there.
  private typealias Location = (parent: String, name: ContainerPath, rootName: ContainerPath)

  private static func location(_ container: Container, _ place: Place) throws -> Location {
    if place == .inside { return (container.root, ContainerPath.stateDirectory, .root) }
    let (parent, anchor) = try ContainerPath.split(container.anchor)
    // A name may have 255 bytes, so the sibling has a hash of it rather than the name itself.
    return (
      parent, try name(beside: anchor.nameString),
      try ContainerPath(anchor.nameString + container.root.dropFirst(container.anchor.count))
    )
  }

  /// The name of the state of something of this name, beside it.
  static func name(beside name: String) throws -> ContainerPath {
    try ContainerPath(".drydock-" + SHA256.hash(Array(name.utf8)).hex.prefix(16))
  }

  private init(_ location: Location, parent: Directory, place: Place) throws {
    self.parent = parent
    self.place = place
    directory = try parent.stateDirectory(location.name)
    rootName = location.rootName
  }

  /// Opens the state of a container, making the directory when there is none. One that is made inside leaves the root's
  /// time as it was.
  ///
  /// - Throws: ``DrydockError``: `permission` when its place cannot be written; `foreignState` when what is there does not
  ///   count.
  package static func create(for container: Container, _ place: Place = .beside) throws -> StateDirectory {
    let location = try location(container, place)
    let parent = try Directory(location.parent, isScratch: container.isScratch)
    let time = try parent.status().modified
    if try parent.status(location.name) == nil {
      try parent.createDirectories(location.name)
      // Only a time: who is not the owner of the root cannot set it.
      if place == .inside { try? parent.setModified(time, of: .root) }
    }
    let state = try StateDirectory(location, parent: parent, place: place)
    for folder in [stage, undo, conflict] { try state.directory.createDirectories(folder) }
    return state
  }

  /// Opens the state of a container in one place, nil when there is none.
  ///
  /// - Throws: ``DrydockError`` with code `foreignState` when what is there does not count.
  package static func existing(for container: Container, _ place: Place = .beside) throws -> StateDirectory? {
    let location = try location(container, place)
    // Where the container itself is not there yet, nothing is in it.
    if place == .inside, FollowedStatus.identity(location.parent) == nil { return nil }
    let parent = try Directory(location.parent, isScratch: container.isScratch)
    guard try parent.status(location.name) != nil else { return nil }
    return try StateDirectory(location, parent: parent, place: place)
  }

  /// All there is of a container's state. What is beside it and may not be opened counts as absent: an exchange
  /// that was interrupted leaves the container whole.
  ///
  /// - Throws: ``DrydockError`` with code `foreignState` when something there does not count.
  package static func all(of container: Container) throws -> [StateDirectory] {
    let found = try readable(of: container)
    if let foreign = found.foreign.first { throw foreign }
    return found.states
  }

  /// The state for reading only: what does not count is left out, each with the reason.
  ///
  /// - Parameter isRequired: whether to throw when the state beside the container cannot be read, instead of leaving
  ///   it out: unknown transactions are not the same as none.
  static func readable(of container: Container, isRequired: Bool = false) throws -> (
    states: [StateDirectory], foreign: [DrydockError]
  ) {
    var found: (states: [StateDirectory], foreign: [DrydockError]) = ([], [])
    for place in Place.allCases {
      do {
        if let state = try existing(for: container, place) { found.states.append(state) }
      } catch let error as DrydockError where error.code == .foreignState {
        found.foreign.append(error)
      } catch let error as DrydockError where error.code == .permission && place == .beside {
        guard isRequired else { continue }
        let location = try location(container, place)
        let owner = try Directory(location.parent).status(location.name).map {
          $0.user == 0 ? "root" : "user \($0.user)"
        }
        throw DrydockError(
          .permission,
          "the container's state directory cannot be read, so its transactions are unknown: it belongs to "
            + "\(owner ?? "another user"); run it as its owner, or as root",
          path: error.path ?? container.root, cause: error)
      }
    }
    return found
  }

  /// The directory that the container's root is a name in.
  func rootParent() throws -> Directory {
    rootName.parent.isRoot ? parent : try parent.directory(rootName.parent)
  }

  /// Makes the bundle that a new container's root is to be in, with what Xcode expects in one.
  ///
  /// - Returns: whether its directory was made.
  func createBundle(of container: Container) throws -> Bool {
    let bundle = rootName.parent
    if bundle.isRoot { return false }
    let isNew = try parent.status(bundle) == nil
    if isNew { try parent.createDirectory(bundle) }
    let info = Container.bundleInfo.rebased(from: .root, to: bundle)
    if try parent.status(info) == nil {
      let content = PropertyListFile(format: .xml, root: ["CFBundleIdentifier": .string(container.app)])
      try parent.create(info, content.encoded())
    }
    return isNew
  }

  /// Removes the bundle of a container whose creation failed.
  func removeEmptyBundle() {
    guard (try? parent.status(rootName)) == nil else { return }
    try? parent.removeFile(Container.bundleInfo.rebased(from: .root, to: rootName.parent))
    try? parent.removeDirectory(rootName.parent)
  }

  /// Removes the directory when no transaction was ever begun, so that a refusal leaves nothing behind.
  func removeIfUnused() {
    // Only empty directories go, and nothing depends on their going.
    guard (try? directory.status(Self.journal)) == nil else { return }
    for folder in [Self.stage, Self.undo, Self.conflict] { try? directory.removeDirectory(folder) }
    let time = try? parent.status().modified
    if let name = try? ContainerPath.split(directory.path).name { try? parent.removeDirectory(name) }
    if place == .inside, let time { try? parent.setModified(time, of: .root) }
  }

  static func folder(_ kind: ContainerPath, _ transaction: TransactionID) throws -> ContainerPath {
    try kind.appending(transaction.description)
  }
}

extension Directory {
  /// Opens a directory of Drydock's state. Anyone who can write beside it could forge one, so it counts only when it
  /// belongs to this user or to root and no other user can write in it.
  func stateDirectory(_ name: ContainerPath) throws -> Directory {
    func refusal(_ reason: String) -> DrydockError {
      DrydockError(
        .foreignState, "the state directory is not used: \(reason)",
        path: full(name))
    }
    func check(_ status: FileStatus) throws {
      guard status.type == .directory else { throw refusal("it is not a directory; move it away") }
      guard status.user == geteuid() || status.user == 0 else {
        throw refusal("it belongs to user \(status.user); run this as that user, or move it away")
      }
      guard status.mode & 0o022 == 0 else {
        throw refusal("other users can write in it; inspect it, then run chmod go-w, or move it away")
      }
    }
    // Checked before it is opened, and again after: it may have been replaced in between.
    if let status = try status(name) { try check(status) }
    let opened = try directory(name)
    try check(opened.status())
    return opened
  }
}

/// What the state directory keeps as JSON: the undo's record, the plan of a commit in place, the journal's lines.
extension Encodable {
  /// Its JSON, with sorted keys, on one line.
  func stateRecord() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(self))
  }
}

extension Directory {
  func replaceRecord(_ file: ContainerPath, with record: some Encodable) throws {
    try replace(file, with: record.stateRecord())
  }

  /// Reads a record's file.
  ///
  /// - Parameters:
  ///   - limit: the largest size that is read.
  ///   - damaged: what it means that the file is none.
  func record<Record: Decodable>(
    _ file: ContainerPath, limit: Int = 1 << 30, damaged: String
  ) throws -> Record {
    do {
      return try JSONDecoder().decode(Record.self, from: Data(contents(file, limit: limit)))
    } catch let error where error is DecodingError || (error as? DrydockError)?.code == .badPath {
      throw DrydockError(.damagedState, damaged, path: full(file), cause: error)
    }
  }

  /// Reads the only field of a record's file.
  func record<Value: Decodable>(
    _ file: ContainerPath, field: String, limit: Int = 1 << 30, damaged: String
  ) throws -> Value {
    let record: [String: Value] = try record(file, limit: limit, damaged: damaged)
    guard let value = record[field] else {
      throw DrydockError(.damagedState, damaged, path: full(file))
    }
    return value
  }
}

/// Names a transaction: the UTC second it began in, and 32 random bits, so that names sort by time.
public struct TransactionID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Such as `20261120T101500Z-1f2e3d4c`.
  public let description: String

  package static func new() throws -> TransactionID {
    let random = try RandomBytes.make(4).hex
    return TransactionID(UTCTime.compact(Date()) + "-" + random)
  }

  init(_ text: String) { description = text }

  /// Whether it has the form of one: any other text in a record could be a path.
  static func isWellFormed(_ text: String) -> Bool { text.hasForm("00000000T000000Z-ffffffff") }

  public init(from decoder: any Decoder) throws {
    description = try decoder.text("the id of a transaction", Self.isWellFormed)
  }

  public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

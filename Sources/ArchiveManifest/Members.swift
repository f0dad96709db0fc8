import ArchiveFile
import Cryptography
import DrydockErrors
import FileSystem
import Foundation

/// How paths of a container are named in an archive: `container/<path>`, and of its groups `groups/<id>/<path>`.
package struct MemberNames {
  package static let manifest = "manifest.sqlite"
  /// In an encrypted archive, the vault's items that may leave their device.
  package static let vault = "vault.json"
  /// Readable by its owner alone, where stock tools unpack it.
  package static let vaultMode: UInt16 = 0o600
  private static let root = "container"
  private static let groupRoot = "groups/"
  /// Before the name of a path's member that has only changed blocks of its content.
  private static let pages = "pages/"

  let groups: Set<String>

  /// The name of a path's member; `container` for the root, `groups/<id>` for a group's.
  package func name(of path: ContainerPath) -> [UInt8] {
    if path.isRoot { return Array(Self.root.utf8) }
    if let group = path.inGroup, groups.contains(group.id) {
      return Array(Self.groupRoot.utf8) + path.bytes.dropFirst(ContainerPath.groups.bytes.count + 1)
    }
    return Array((Self.root + "/").utf8) + path.bytes
  }

  /// The path that a member represents; nil for any other member.
  func path(of name: [UInt8]) -> ContainerPath? {
    if name.elementsEqual(Self.root.utf8) { return .root }
    let path: ContainerPath?
    if name.starts(with: Self.groupRoot.utf8) {
      path = try? ContainerPath(
        bytes: ContainerPath.groups.bytes + [0x2f] + name.dropFirst(Self.groupRoot.utf8.count))
    } else if name.starts(with: (Self.root + "/").utf8) {
      path = try? ContainerPath(bytes: name.dropFirst(Self.root.utf8.count + 1))
    } else {
      return nil
    }
    // Each path has one name.
    guard let path, self.name(of: path) == name else { return nil }
    return path
  }

  /// The name of a path's member with changed blocks; nil when it would be too long or too deep.
  package func pagesName(of path: ContainerPath) -> [UInt8]? {
    let name = Array(Self.pages.utf8) + name(of: path)
    return (try? MemberName.validate(name)) == nil ? nil : name
  }

  /// The path that a member has content of, whole or some blocks; nil for any other member.
  func path(ofContent name: [UInt8]) -> ContainerPath? {
    path(of: name.starts(with: Self.pages.utf8) ? Array(name.dropFirst(Self.pages.utf8.count)) : name)
  }

  package func member(_ entry: ManifestEntry, _ kind: ArchiveMember.Kind) -> ArchiveMember {
    ArchiveMember(name: name(of: entry.path), kind: kind, metadata: entry.metadata)
  }

  /// The name that an archive's member of an entry has.
  func name(of entry: ManifestEntry, in archive: ArchiveID) -> [UInt8] {
    entry.isWhole(in: archive) ? name(of: entry.path) : pagesName(of: entry.path) ?? []
  }
}

extension ArchiveHeader {
  package var memberNames: MemberNames { MemberNames(groups: Set(groups ?? [])) }
}

extension ManifestEntry {
  /// Whether the tar of an archive has a member of this entry. An incremental one has no content that is in another archive,
  /// and no link to such a file.
  func hasMember(in archive: ArchiveID) -> Bool {
    if !isFile { return true }
    return hardLink == nil ? size == 0 || extents.need(archive) : linkArchive == archive
  }

  /// Whether the member that the archive has of this entry is more than some blocks.
  package func isWhole(in archive: ArchiveID) -> Bool {
    !isFile || size == 0 || hardLink != nil || extents.single?.archive == archive
  }

  /// Whether a member of the archive's tar is this entry, content aside.
  func agrees(
    with member: ArchiveMember, at offset: UInt64, in archive: ArchiveID, _ names: MemberNames
  ) -> Bool {
    guard member.name == names.name(of: self, in: archive), member.metadata == metadata else { return false }
    switch member.kind {
    case .directory: return kind == .directory
    case .symbolicLink(let target): return kind == .symbolicLink && linkTarget == target
    case .hardLink(let target): return hardLink.map { names.name(of: $0) } == target
    case .special: return false
    case .file(let length):
      guard isFile, hardLink == nil else { return false }
      return size == 0
        ? length == 0
        : extents.member(in: archive).map { ($0.offset, $0.length) == (offset, length) } ?? false
    }
  }
}

/// What an archive's own manifest says must be in its tar, from the end of one content to the start of the next: the headers of
/// the entries without content, and last the header of the one that has it. A content takes twelve bytes; the entries are
/// read again when they are compared.
package struct ExpectedMembers: Sendable {
  /// The places of all contents in the tar stream, in their order, and the rows of their entries.
  private var offsets: [UInt64] = []
  private var rows: [UInt32] = []
  /// The number of the archive's own entries.
  fileprivate private(set) var count: UInt32 = 0
  fileprivate let replaced: [UInt64: (path: ContainerPath, length: UInt64)]
  fileprivate let vault: MemberLocation?
  fileprivate let names: MemberNames
  fileprivate let path: String
  fileprivate let archive: ArchiveID
  let manifest: ManifestReader

  /// - Parameter path: of the archive, for messages.
  package init(_ manifest: ManifestReader, vault: MemberLocation?, path: String) throws {
    replaced = try manifest.replacedMembers()
    (self.vault, self.path, self.manifest) = (vault, path, manifest)
    (names, archive) = (manifest.header.memberNames, manifest.header.archive)
  }

  /// Adds all own entries of the archive, in their order.
  package mutating func add(_ entry: ManifestEntry) {
    count += 1
    guard let content = entry.extents.member(in: archive) else { return }
    offsets.append(content.offset)
    rows.append(count)
  }

  /// Adds all own entries at once, without reading each.
  package mutating func addAll() throws {
    count = try manifest.ownContents { row, offset in
      offsets.append(offset)
      rows.append(row)
    }
  }

  /// Whether a member of the tar is one of the archive's own, as the format has it, content aside: mode, owner
  /// and time are those that stock tools give to the unpacked file.
  fileprivate func isOwn(_ member: ArchiveMember, _ name: String, mode: UInt16 = 0o644) -> Bool {
    manifest.header.captured.map {
      member == .file(name, size: member.contentSize, mode: mode, modified: $0)
    } ?? false
  }

  fileprivate var contents: Int { offsets.count }

  /// The number of the content that has a byte of the tar stream, if one has it.
  fileprivate func content(at offset: UInt64) -> Int? {
    let next = offsets.indices.first(since: { offsets[$0] > offset })
    return next == 0 ? nil : next - 1
  }

  fileprivate func offset(ofContent number: Int) -> UInt64 { offsets[number] }

  /// The rows after a content, up to that of the next one.
  fileprivate func rows(after content: Int?) -> Range<UInt32> {
    let (next, first) = content.map { ($0 + 1, rows[$0] + 1) } ?? (0, 1)
    return first..<(next < rows.count ? rows[next] : count) + 1
  }

  fileprivate func row(ofContent number: Int) -> UInt32 { rows[number] }
}

/// Which contents of an archive are read. If all are, what comes after the last one is compared, too.
package struct ReadContents {
  private let members: ExpectedMembers
  private var isRead: [Bool]

  /// - Parameter members: with all entries.
  package init(of members: ExpectedMembers) {
    self.members = members
    isRead = Array(repeating: false, count: members.contents)
  }

  package var isComplete: Bool { isRead.allSatisfy { $0 } }

  /// Adds the content that has a byte of the tar stream.
  package mutating func add(at offset: UInt64) {
    if let content = members.content(at: offset) { isRead[content] = true }
  }
}

/// Compares members of a tar, one after the other, with what the manifest says: another program that unpacks the archive must
/// not find anything else there. On one thread; from the first member to the last, or only in front of the contents that are
/// read.
package final class MemberCheck {
  private let ranges: RangeReader
  private let expected: ExpectedMembers
  private let entries: EntryRows<ManifestEntry>
  /// Nil before the first member, and where reading failed.
  private var walk: HeaderWalk?
  /// Where the next member's header is.
  private var position: UInt64 = 0
  /// Where the content of the last member is.
  package private(set) var offset: UInt64 = 0
  /// The last member of an entry, or of an earlier version of one.
  private var last: (path: ContainerPath, isDirectory: Bool, isReplaced: Bool)?
  private var replacedCount = 0
  /// The contents whose headers were checked: the pieces of one content may change between some all the time. Most are read
  /// in their order, and ranges of a million take no room.
  private var checked = IndexSet()

  package init(_ ranges: RangeReader, _ expected: ExpectedMembers, _ entries: EntryRows<ManifestEntry>? = nil)
  {
    (self.ranges, self.expected) = (ranges, expected)
    self.entries = entries ?? expected.manifest.entries()
  }

  // MARK: All members

  /// Goes to the first member, which is the header; or to the one after a content.
  package func start(after content: Int? = nil) throws {
    guard let content else {
      walk = nil
      position = 0
      last = nil
      return try expect(ArchiveHeader.memberName, next())
    }
    let entry = try entries.required(Int64(expected.row(ofContent: content)))
    guard let place = entry.extents.member(in: expected.archive) else {
      throw damaged("no content of \(entry.path)")
    }
    let start = place.offset + place.length
    if start != position { walk = nil }
    position = start
    last = (path: entry.path, isDirectory: false, isReplaced: false)
  }

  /// Compares the next member with the next of the archive's own entries, content aside. These are in order, so that no name
  /// can occur twice.
  package func expect(_ entry: ManifestEntry) throws {
    guard entry.hasMember(in: expected.archive) else { return }
    var member = try next()
    while try isReplaced(member) { member = try next() }
    guard entry.agrees(with: member, at: offset, in: expected.archive, expected.names),
      follows(entry.path), entry.isFile || last?.path != entry.path
    else { throw damaged("\(entry.path) in the tar is not what the manifest says") }
    last = (path: entry.path, isDirectory: entry.kind == .directory, isReplaced: false)
  }

  /// Checks what comes after the last entry: the vault's items where there are any, the manifest, and nothing else.
  package func expectEnd(_ manifest: MemberLocation) throws {
    var vault = expected.vault
    var member = try next()
    while offset != manifest.offset {
      if let place = vault, (place.offset, place.length) == (offset, member.contentSize),
        expected.isOwn(member, MemberNames.vault, mode: MemberNames.vaultMode)
      {
        vault = nil
      } else if try !isReplaced(member) {
        throw damaged("\(member.printableName) is in the tar and not in the manifest")
      }
      member = try next()
    }
    try expect(MemberNames.manifest, member)
    guard vault == nil else { throw damaged("\(MemberNames.vault) is not where the manifest says") }
    guard member.kind == .file(size: manifest.length) else {
      throw damaged("\(MemberNames.manifest) in the tar has another size than the archive announces")
    }
    try DrydockError.locating(expected.path) { try ranges.checkEnd(after: position) }
  }

  /// When all members were compared: throws for an earlier version of a file that the manifest lists and the tar does not have.
  package func requireReplacedMembers() throws {
    guard replacedCount == expected.replaced.count else {
      throw damaged("a file is listed as stored twice, and is not")
    }
  }

  // MARK: Members in front of a content

  /// Checks the headers in front of the content that a place is in.
  ///
  /// - Throws: `DrydockError`, with code `damaged` where tar and manifest disagree.
  package func check(contentAt offset: UInt64) throws {
    guard let content = expected.content(at: offset) else {
      throw damaged("no entry has the content at \(offset)")
    }
    if checked.contains(content) { return }
    try check(after: content == 0 ? nil : content - 1)
    let start = expected.offset(ofContent: content)
    guard self.offset == start else {
      throw damaged("the content at \(start) is not where the manifest says")
    }
    checked.insert(content)
  }

  /// Checks what comes after the last content, and that the manifest is the last member.
  package func checkRest(_ manifest: MemberLocation) throws {
    try check(after: expected.contents == 0 ? nil : expected.contents - 1)
    try expectEnd(manifest)
  }

  private func check(after content: Int?) throws {
    try start(after: content)
    for row in expected.rows(after: content) { try expect(entries.required(Int64(row))) }
  }

  // MARK: One member

  private func next() throws -> ArchiveMember {
    do {
      return try DrydockError.locating(expected.path) {
        let walk = try self.walk ?? ranges.headers(from: position)
        self.walk = walk
        let (member, offset) = try walk.next()
        (self.offset, position) = (offset, walk.position)
        return member
      }
    } catch {
      walk = nil
      throw error
    }
  }

  /// Whether a member is an earlier version of a file, whose last version, if there is one, follows.
  private func isReplaced(_ member: ArchiveMember) throws -> Bool {
    // A full archive has whole contents only.
    let path =
      expected.manifest.isIncremental
      ? expected.names.path(ofContent: member.name) : expected.names.path(of: member.name)
    guard let path, let replaced = expected.replaced[offset], replaced == (path, member.contentSize)
    else { return false }
    guard case .file = member.kind, follows(path) else {
      throw damaged("\(path) in the tar is not what the manifest says")
    }
    last = (path: path, isDirectory: false, isReplaced: true)
    replacedCount += 1
    return true
  }

  /// Whether a path comes after the last one and is not below a file or link, or is the same one in a later version.
  private func follows(_ path: ContainerPath) -> Bool {
    guard let last else { return true }
    if last.path == path { return last.isReplaced }
    return last.path < path && (last.isDirectory || !path.isInside(last.path))
  }

  private func expect(_ name: String, _ member: ArchiveMember) throws {
    guard member.name == Array(name.utf8) else {
      throw damaged("\(member.printableName) is in the tar where \(name) must be")
    }
    guard expected.isOwn(member, name) else {
      throw damaged(
        "\(name) in the tar has another mode, owner, time or attribute than the format prescribes")
    }
  }

  private func damaged(_ what: String) -> DrydockError { DrydockError(.damaged, what, path: expected.path) }
}

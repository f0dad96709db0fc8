import ArchiveFile
import DrydockErrors
import FileSystem

/// What must be in an archive's tar from the end of one content to the start of the next: the headers of the entries
/// that have none, and last the header of the one that has it.
struct MemberGap: Sendable {
  /// Where the first header starts.
  var start: UInt64
  /// The entries, in their order.
  var entries: [ManifestEntry]
}

/// The gaps of an archive, from its entries in their order.
struct MemberGaps: Sendable {
  /// By the place of the content behind them.
  private(set) var gaps: [UInt64: MemberGap] = [:]
  /// What comes after the last content.
  private(set) var rest = MemberGap(start: 0, entries: [])

  mutating func add(_ entry: ManifestEntry) {
    rest.entries.append(entry)
    guard entry.size > 0, entry.hardLink == nil, let offset = entry.offset else { return }
    gaps[offset] = rest
    rest = MemberGap(start: offset + RangeReader.padded(entry.size), entries: [])
  }
}

/// Compares the tar with the manifest where content is read, on one thread: another program that takes the archive
/// apart must not find anything else there.
final class MemberCheck {
  private let ranges: RangeReader
  private let gaps: MemberGaps
  private let superseded: [UInt64: SupersededMember]
  private let vault: VaultMember?
  private let names: MemberNames
  private let path: String
  private var walk: HeaderWalk?

  init(
    _ ranges: RangeReader, _ gaps: MemberGaps, superseded: [UInt64: SupersededMember], vault: VaultMember?,
    names: MemberNames, path: String
  ) {
    (self.ranges, self.gaps, self.superseded, self.path) = (ranges, gaps, superseded, path)
    self.names = names
    self.vault = vault
  }

  /// Checks the headers in front of a content.
  ///
  /// - Throws: `DrydockError`, or ``DrydockError`` with code `damaged`.
  func check(contentAt offset: UInt64) throws {
    guard let gap = gaps.gaps[offset] else { throw damaged("there is no entry for the content at \(offset)") }
    try check(gap, until: offset, last: nil)
  }

  /// Checks what comes after the last content, and that the manifest does at last.
  func checkRest(manifestAt offset: UInt64) throws {
    try check(gaps.rest, until: offset, last: MemberNames.manifest)
  }

  private func check(_ gap: MemberGap, until end: UInt64, last: String?) throws {
    do {
      let walk =
        try self.walk.flatMap { $0.position == gap.start ? $0 : nil } ?? ranges.headers(from: gap.start)
      self.walk = walk
      var entries = gap.entries[...]
      if gap.start == 0 { try expect(ArchiveHeader.memberName, try walk.next().member) }
      while let entry = entries.first {
        let (member, offset) = try walk.next()
        if isSuperseded(member, offset) { continue }
        guard names.name(of: entry.path) == member.name, entry.agrees(with: member, at: offset, names) else {
          throw damaged("\(entry.path) in the tar is not what the manifest says")
        }
        entries.removeFirst()
        if entries.isEmpty && last == nil && offset != end {
          throw damaged("the content of \(entry.path) is not where the manifest says")
        }
      }
      guard let last else { return }
      var vault = vault
      while true {
        let (member, offset) = try walk.next()
        if offset == end {
          try expect(last, member)
          guard vault == nil else { throw damaged("\(MemberNames.vault) is not where the manifest says") }
          return
        }
        if vault?.agrees(with: member, at: offset) ?? false {
          vault = nil
          continue
        }
        guard isSuperseded(member, offset) else {
          throw damaged("\(member.printableName) is in the tar and not in the manifest")
        }
      }
    } catch {
      walk = nil
      throw (error as? DrydockError)?.at(path) ?? error
    }
  }

  private func isSuperseded(_ member: ArchiveMember, _ offset: UInt64) -> Bool {
    guard let path = names.path(of: member.name) else { return false }
    return superseded[offset] == SupersededMember(path: path, length: member.contentSize)
  }

  private func expect(_ name: String, _ member: ArchiveMember) throws {
    guard member.name == Array(name.utf8) else {
      throw damaged("\(member.printableName) is in the tar where \(name) must be")
    }
  }

  private func damaged(_ what: String) -> DrydockError { DrydockError(.damaged, what, path: path) }
}

extension ManifestEntry {
  /// Whether a member of the tar is this entry, content aside.
  func agrees(with member: ArchiveMember, at offset: UInt64, _ names: MemberNames) -> Bool {
    let found = FileMetadata(
      mode: member.mode, user: member.userID, group: member.groupID, modified: member.modified,
      attributes: member.attributes.map {
        ExtendedAttribute(name: String(decoding: $0.name, as: UTF8.self), value: $0.value)
      }, isNoDump: member.isNoDump)
    guard found == metadata else { return false }
    switch member.kind {
    case .directory: return kind == .directory
    case .symbolicLink(let target): return kind == .symbolicLink && linkTarget == target
    case .hardLink(let target): return hardLink.map { names.name(of: $0) } == target
    case .file(let length):
      return isFile && hardLink == nil && length == size && (size == 0 || offset == self.offset)
    }
  }
}

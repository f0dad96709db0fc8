import AppContainer
import ArchiveFile
import DrydockErrors
import FileSystem

extension Repository {
  /// One archive of a repository, as its header says, whatever its file is named.
  public struct Item: Sendable {
    public var path: String
    public var header: Archive.Header
    package var encryption: ArchiveEncryption?
    /// The bytes of the archive without encryption.
    var contentSize: UInt64
    var file: PlaceFile
    /// In bytes.
    public var size: UInt64 { file.size }
    package var signature = SignatureState.none
    /// Sorted; they are not in the archive, but in a file beside it.
    public internal(set) var tags: [String] = []

    /// App and instance, which together own archives: `com.example.notes/red`.
    public var owner: String { ArchiveLabel(header).owner }
    public var fileName: String { lastName(path) }
  }

  /// An encrypted archive that no key at hand opens.
  public struct LockedArchive: Sendable {
    public var path: String
    /// The fields of its name, which may be false; nil when it was named by hand.
    package var label: ArchiveLabel?
    package var encryption: ArchiveEncryption
    var file: PlaceFile
    /// In bytes.
    public var size: UInt64 { file.size }
    public var error: DrydockError
    package var signature = SignatureState.none
    /// Sorted; readable without a key.
    public internal(set) var tags: [String] = []
    public var fileName: String { lastName(path) }
  }

  public struct Unreadable: Sendable {
    public var path: String
    public var reason: String
    public var error: any Error

    var fileName: String { lastName(path) }

    /// The beginning of the id that its name has; nil for a name that was given by hand.
    package var id: String? { ArchiveName.label(of: fileName)?.id }
  }

  public struct Listing: Sendable {
    public let repository: String
    /// The archives that can be read, oldest first; those of one second in the order of writing. A time that
    /// the archives themselves contradict does not count.
    public internal(set) var items: [Item] = []
    /// The encrypted ones that no key at hand opens, in the same order as far as their names have a time.
    public internal(set) var locked: [LockedArchive] = []
    /// Files that are named like an archive and cannot be read, by name.
    public internal(set) var unreadable: [Unreadable] = []
    /// The ids of archives whose tags cannot be read.
    var unknownTags: Set<String> = []

    init(repository: String) { self.repository = repository }

    /// How many digits of an id distinguish all in the list, 8 or more.
    package func idLength() -> Int {
      let ids = Set(items.map(\.header.archive.description)).sorted()
      let shared = zip(ids, ids.dropFirst()).map { zip($0, $1).prefix { $0 == $1 }.count }
      return max(8, (shared.max() ?? 0) + 1)
    }

    /// Only the archives of an app and of an instance, and files of which that is not known.
    package func filtered(app: String?, instance: String?) -> Listing {
      var listing = self
      let selection = ArchiveSelection(app: app, instance: instance)
      listing.items.removeAll { !selection.contains(ArchiveLabel($0.header)) }
      listing.locked.removeAll { $0.label.map { !selection.contains($0) } ?? false }
      return listing
    }

    /// Only archives of that time or later, and files of which the time is not known.
    ///
    /// - Parameter time: `2026-11-14`, or another beginning of a time, in UTC.
    /// - Throws: `DrydockError` with code `malformed` for any other text.
    package func since(_ time: String) throws -> Listing {
      guard let limit = ArchiveTime.beginning(time) else {
        throw DrydockError(
          .malformed, "\(time.printable) is not a time; write 2026-11-14 or 2026-11-14T12:00:00Z, in UTC")
      }
      return selecting { $0.time.prefix(limit.count) >= limit }
    }

    /// Only the newest archives of each app and instance, and files of which that is not known.
    package func newest(_ count: Int) -> Listing {
      var (seen, selected): ([String: Int], Set<String>) = ([:], [])
      for entry in entries.reversed() {
        guard let archive = entry.ordered else { continue }
        let owner = archive.label.nameKey
        seen[owner, default: 0] += 1
        if seen[owner, default: 0] <= count { selected.insert(archive.path) }
      }
      return selecting { selected.contains($0.path) }
    }

    private func selecting(_ isSelected: (ArchiveOrder.Ordered) -> Bool) -> Listing {
      var listing = self
      listing.items.removeAll { !isSelected($0.ordered) }
      listing.locked.removeAll { $0.ordered.map { !isSelected($0) } ?? false }
      return listing
    }

    mutating func sort() {
      items = ArchiveOrder.sorted(items, path: { $0.path }, order: { $0.ordered })
      locked = ArchiveOrder.sorted(locked, path: { $0.path }, order: { $0.ordered })
    }
  }
}

func lastName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

extension Repository.Listing {
  /// An archive that a reference may mean.
  private struct Candidate {
    var path: String
    var label: ArchiveLabel
    /// The time that counts, which may differ from the label's.
    var time: String
    var item: Repository.Item?

    var fileName: String { lastName(path) }

    /// Whether that is its app, instance or owner; of a locked one only the form in its name is known.
    func isOf(_ owner: String, _ part: ArchiveSelection.Part) -> Bool {
      ArchiveSelection(owner, part)?.contains(label) ?? false
    }
  }

  /// The path of an archive by the name of its file, the beginning of its id (4 digits or more),
  /// `INSTANCE@latest`, `INSTANCE@2026-11-14` (the newest one at or before that time), and where several apps
  /// match `APP/INSTANCE@latest`. Without an instance, `latest` and a time mean the container's, if there are archives of it,
  /// or else the only one that there is.
  ///
  /// Of encrypted archives that no key opens, the names count.
  ///
  /// - Parameter container: what the archive is for. Its instance counts before the one that was restored into it last.
  /// - Throws: `DrydockError`: `notFound`, or `ambiguousArchive` with the candidates.
  public func find(_ name: String, for container: Container? = nil) throws -> String {
    let files = items.map(\.path) + locked.map(\.path) + unreadable.map(\.path)
    if let file = files.first(where: { lastName($0) == name }) { return file }
    switch try ArchiveReference(name, repository: repository) {
    case .id(let prefix): return try withID(prefix)
    case .newest(let owner, let limit):
      let when = name.lastIndex(of: "@").map { String(name[name.index(after: $0)...]) } ?? name
      let candidates = candidates
      let owned =
        owner.map { archives(of: $0, candidates) } ?? container.flatMap { archives(of: $0, candidates) }
        ?? candidates
      return try newest(among: owned, of: candidates, owner, notAfter: limit, when)
    }
  }

  /// Nil when there are none.
  private func archives(of container: Container, _ candidates: [Candidate]) -> [Candidate]? {
    func matching(_ selections: [ArchiveSelection]) -> [Candidate]? {
      let found = candidates.filter { candidate in selections.contains { $0.contains(candidate.label) } }
      return found.isEmpty ? nil : found
    }
    return matching([ArchiveSelection(app: container.app, instance: container.instance)])
      ?? (try? Restore.lastRestored(container)).flatMap { matching(ArchiveSelection.all(source: $0)) }
  }

  /// All that have a label, oldest first.
  private var candidates: [Candidate] {
    entries.compactMap { entry in
      guard let ordered = entry.ordered else { return nil }
      switch entry {
      case .item(let item):
        return Candidate(path: item.path, label: ordered.label, time: ordered.time, item: item)
      case .locked(let locked):
        return Candidate(path: locked.path, label: ordered.label, time: ordered.time, item: nil)
      }
    }
  }

  /// Names have no instances: those that headers have are added.
  mutating func nameOwners() {
    let owners = owners
    for index in locked.indices {
      locked[index].label = locked[index].label.map { known($0, owners) }
    }
  }

  /// The labels of headers by what names have of their owners. Where that is the same of two owners, there is none: which of
  /// them an archive is of that no key opens is not known.
  var owners: [String: ArchiveLabel] {
    var found: [String: ArchiveLabel?] = [:]
    for label in items.map({ ArchiveLabel($0.header) }) {
      if let other = found[label.nameKey], other?.ownerKey != label.ownerKey {
        found[label.nameKey] = .some(nil)
      } else {
        found[label.nameKey] = label
      }
    }
    return found.compactMapValues { $0 }
  }

  /// A name's label, with app and instance as in a header that has them.
  ///
  /// - Parameter owners: those of the listing.
  func known(_ label: ArchiveLabel, _ owners: [String: ArchiveLabel]) -> ArchiveLabel {
    guard label.mark != nil, let owner = owners[label.nameKey] else { return label }
    var known = label
    (known.app, known.instance, known.mark) = (owner.app, owner.instance, nil)
    return known
  }

  private func withID(_ prefix: String) throws -> String {
    let found = candidates.filter {
      let id = $0.label.id.lowercased()
      // A name may have less of the id than the prefix.
      return id.hasPrefix(prefix) || ($0.item == nil && prefix.hasPrefix(id))
        || (prefix.utf8.count > 8 && $0.fileName.contains("_" + prefix))
    }
    // A readable one is preferred to its locked copies.
    guard let best = found.first(where: { $0.item != nil }) ?? found.first else {
      throw error(.notFound, "no archive matches \(prefix); `drydock list` lists the archives")
    }
    guard found.allSatisfy({ $0.label.mayBe(best.label) }) else {
      let digits = idLength()
      let candidates = found.map {
        "\($0.label.id.prefix(digits)) (\($0.label.time), \($0.label.instance))"
      }
      throw error(
        .ambiguousArchive,
        "\(prefix) matches \(found.count) archives; give more of the id: \(candidates.listed(10))")
    }
    // Copies of one archive, encrypted or not: any of them.
    guard Set(found.compactMap(\.item?.contentSize)).count <= 1 else {
      throw error(
        .ambiguousArchive,
        "\(found.count) files with the id \(prefix) differ in size; find the good one with `drydock verify` and give its "
          + "file: \(found.map(\.fileName).listed(10))")
    }
    return best.path
  }

  private func newest(
    among owned: [Candidate], of candidates: [Candidate], _ owner: String?, notAfter limit: String?,
    _ when: String
  ) throws -> String {
    let owners = Set(owned.map(\.label.ownerKey))
    guard let oldest = owned.first else {
      let there = Set(candidates.map(\.label.ownerKey)).map { named($0, when, candidates) }.sorted()
      throw error(
        .notFound,
        there.isEmpty
          ? "no readable archives" + (unreadable.first.map { "; \($0.fileName): \($0.reason)" } ?? "")
          : "no archive matches \(owner.map { $0 + "@" } ?? "")\(when); there are \(there.listed(10))")
    }
    guard owners.count == 1 else {
      throw error(
        .ambiguousArchive,
        "there are archives of \(owners.count) instances; use INSTANCE@\(when): "
          + owners.map { named($0, when, candidates) }.sorted().listed(10))
    }
    guard
      let found = owned.last(where: { candidate in
        limit.map { candidate.time.prefix($0.count) <= $0 } ?? true
      })
    else {
      throw error(.notFound, "no archive is as old as \(when); the oldest is of \(oldest.label.time)")
    }
    try requireNewest(found, notAfter: limit, when)
    // A readable one is preferred to its locked copies.
    return candidates.last { $0.item != nil && $0.label.id.hasPrefix(found.label.id) }?.path ?? found.path
  }

  /// Nobody gets an older archive without knowing it.
  private func requireNewest(_ found: Candidate, notAfter limit: String?, _ when: String) throws {
    guard let newer = newestUnreadable(of: found.label, after: found.time, notAfter: limit) else {
      return
    }
    let code = (newer.error as? DrydockError)?.code ?? .damaged
    throw error(
      code,
      "\(lastName(newer.path)) is newer than what else is \(when), and cannot be read (\(newer.reason)); to take the newest "
        + "that can be read, give its id: \(found.label.id.prefix(idLength()))")
  }

  /// The newest archive of an owner that cannot be read, if its name has a later time than another one's, or that of another one.
  func newestUnreadable(
    of other: ArchiveLabel, after time: String, notAfter limit: String? = nil
  ) -> Repository.Unreadable? {
    unreadable.last { file in
      guard let label = ArchiveName.label(of: file.fileName), label.nameKey == other.nameKey else {
        return false
      }
      let isNewer = label.time > time || (label.time == time && !label.mayBe(other))
      return isNewer && limit.map { label.time.prefix($0.count) <= $0 } ?? true
    }
  }

  /// The archives of an `APP/INSTANCE`, else of an instance, else of an app.
  private func archives(of owner: String, _ candidates: [Candidate]) -> [Candidate] {
    for part in ArchiveSelection.Part.allCases {
      let found = candidates.filter { $0.isOf(owner, part) }
      if !found.isEmpty { return found }
    }
    return []
  }

  /// The shortest reference to an owner: its instance alone where no other app has one of that name.
  private func named(_ key: String, _ when: String, _ candidates: [Candidate]) -> String {
    guard let label = candidates.first(where: { $0.label.ownerKey == key })?.label else { return key }
    let isAlone = Set(archives(of: label.instance, candidates).map(\.label.ownerKey)) == [key]
    return (isAlone ? label.instance : label.owner) + "@" + when
  }

  private func error(_ code: DrydockError.Code, _ message: String) -> DrydockError {
    DrydockError(code, message.printable, path: repository)
  }
}

/// The archives of an app, of an instance, or of one instance of an app, by their exact names.
struct ArchiveSelection {
  enum Part: CaseIterable { case owner, instance, app }

  var app: String?, instance: String?

  init(app: String?, instance: String?) { (self.app, self.instance) = (app, instance) }

  /// From a text that a person wrote: `APP/INSTANCE`, or one of both; nil for one without a slash.
  init?(_ text: String, _ part: Part) {
    switch part {
    case .app: app = text
    case .instance: instance = text
    case .owner:
      guard let slash = text.firstIndex(of: "/") else { return nil }
      (app, instance) = (String(text[..<slash]), String(text[text.index(after: slash)...]))
    }
  }

  /// What the source of a restore may mean, an app and an instance with a space between: names may have spaces.
  static func all(source: String) -> [ArchiveSelection] {
    source.indices.filter { source[$0] == " " }.map {
      ArchiveSelection(app: String(source[..<$0]), instance: String(source[source.index(after: $0)...]))
    }
  }

  /// A file's name has only the form of the app, and the mark of the instance.
  func contains(_ label: ArchiveLabel) -> Bool {
    if let app {
      let isSame =
        label.mark != nil
        ? ArchiveName.plain(app) == ArchiveName.plain(label.app) : app.utf8.elementsEqual(label.app.utf8)
      if !isSame { return false }
    }
    guard let instance else { return true }
    if ArchiveLabel.isMark(instance) { return label.nameKey == ArchiveLabel.nameKey(label.app, instance) }
    if instance.utf8.elementsEqual(label.instance.utf8) { return true }
    return label.mark.map { $0 == ArchiveName.mark(app: label.app, instance: instance) } ?? false
  }
}

/// A reference to one archive of a repository.
enum ArchiveReference: Equatable {
  case id(String)
  /// The newest one, of an owner and not later than a time.
  case newest(of: String?, notAfter: String?)

  /// Fewer digits would soon match another archive.
  private static let shortestID = 4

  /// - Throws: `DrydockError` with code `notFound` for any other text.
  init(_ text: String, repository: String) throws {
    if let at = text.lastIndex(of: "@") {
      // The name of an instance may have an `@` itself.
      let (owner, when) = (String(text[..<at]), String(text[text.index(after: at)...]))
      guard when == "latest" || ArchiveTime.beginning(when) != nil else {
        throw DrydockError(
          .notFound,
          "\(text.printable) has no valid time; use INSTANCE@latest, INSTANCE@2026-11-14 or "
            + "INSTANCE@2026-11-14T12:00:00Z, in UTC", path: repository)
      }
      self = .newest(of: owner, notAfter: ArchiveTime.beginning(when))
    } else if text == "latest" {
      self = .newest(of: nil, notAfter: nil)
    } else if text.contains("-"), let time = ArchiveTime.beginning(text) {
      self = .newest(of: nil, notAfter: time)
    } else {
      guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
        throw DrydockError(
          .notFound,
          "no archive matches \(text.printable); give the beginning of an id, INSTANCE@latest or INSTANCE@2026-11-14: "
            + "see `drydock list`", path: repository)
      }
      guard text.count >= Self.shortestID else {
        throw DrydockError(
          .notFound, "\(text) is too short for an id; give \(Self.shortestID) digits of it or more",
          path: repository)
      }
      self = .id(text.lowercased())
    }
  }
}

extension String {
  /// With control characters escaped, which would act on a terminal: an archive's own texts may be hostile.
  package var printable: String {
    let isActive = { (scalar: Unicode.Scalar) in
      scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
    }
    guard unicodeScalars.contains(where: isActive) else { return self }
    return unicodeScalars.map {
      isActive($0)
        ? "\\u{\(String($0.value, radix: 16))}" : String($0)
    }.joined()
  }
}

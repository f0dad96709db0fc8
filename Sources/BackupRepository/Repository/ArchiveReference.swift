import ArchiveManifest
import AppContainer
import DrydockErrors
import Formats

extension Repository.Listing {
  /// The path of an archive by the name of its file, the beginning of its id (4 digits or more), `INSTANCE@latest`,
  /// `INSTANCE@2026-11-14` (the newest one at or before that time), and where several apps match `APP/INSTANCE@latest`.
  /// Without an instance, `latest` and a time mean the container's, if there are archives of it, or else the only one
  /// that there is.
  ///
  /// Of encrypted archives that no key opens, the names count.
  ///
  /// - Parameter container: what the archive is for. Its instance counts before the one that was restored into it last.
  /// - Throws: `DrydockError`: `notFound`, or `ambiguousArchive` with the candidates.
  public func find(_ name: String, for container: Container? = nil) throws -> String {
    let files = archives.map(\.path) + unreadable.map(\.path)
    if let file = files.first(where: { lastName($0) == name }) { return file }
    // The name of an instance may have an `@` itself.
    let at = name.lastIndex(of: "@")
    let owner = at.map { String(name[..<$0]) }
    let when = at.map { String(name[name.index(after: $0)...]) } ?? name
    let limit = owner != nil || when.contains("-") ? UTCTime.beginning(when) : nil
    guard when == "latest" || limit != nil else {
      guard owner == nil else {
        throw error(
          .notFound,
          "\(name) has no valid time; use INSTANCE@latest, INSTANCE@2026-11-14 or INSTANCE@2026-11-14T12:00:00Z, in UTC"
        )
      }
      return try withID(name)
    }
    let candidates = archives.filter { $0.label != nil }
    let owned =
      owner.map { archives(of: $0, candidates) } ?? container.flatMap { archives(of: $0, candidates) }
      ?? candidates
    return try newest(among: owned, of: candidates, owner, notAfter: limit, when)
  }

  /// Nil when there are none.
  private func archives(of container: Container, _ candidates: [StoredArchive]) -> [StoredArchive]? {
    let own = candidates.filter { $0.isOf(app: container.app, instance: container.instance) }
    guard own.isEmpty else { return own }
    guard let source = try? Restore.lastRestored(container) else { return nil }
    // An app and an instance with a space between: names may have spaces.
    let spaces = source.indices.filter { source[$0] == " " }
    let restored = candidates.filter { archive in
      spaces.contains {
        archive.isOf(app: String(source[..<$0]), instance: String(source[source.index(after: $0)...]))
      }
    }
    return restored.isEmpty ? nil : restored
  }

  /// Fewer digits would soon match another archive.
  private static let shortestID = 4

  private func withID(_ text: String) throws -> String {
    guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
      throw error(
        .notFound,
        "no archive matches \(text); give the beginning of an id, INSTANCE@latest or INSTANCE@2026-11-14")
    }
    guard text.count >= Self.shortestID else {
      throw error(.notFound, "\(text) is too short for an id; give \(Self.shortestID) digits of it or more")
    }
    let prefix = text.lowercased()
    let found = archives.filter {
      guard $0.label != nil else { return false }
      let id = $0.id.lowercased()
      // A name may have less of the id than the prefix.
      return id.hasPrefix(prefix) || ($0.isLocked && prefix.hasPrefix(id))
        || (prefix.utf8.count > 8 && $0.fileName.contains("_" + prefix))
    }
    // A readable one is preferred to its locked copies.
    guard let best = found.first(where: { !$0.isLocked }) ?? found.first else {
      throw error(.notFound, "no archive matches \(prefix)")
    }
    guard found.allSatisfy({ $0.id.hasPrefix(best.id) || best.id.hasPrefix($0.id) }) else {
      let digits = idLength()
      let candidates = found.map {
        "\($0.id.prefix(digits)) (\($0.time), \($0.instance))"
      }
      throw error(
        .ambiguousArchive,
        "\(prefix) matches \(found.count) archives; give more of the id: \(candidates.listed(10))")
    }
    // Copies of one archive, encrypted or not: any of them.
    guard Set(found.compactMap(\.contentSize)).count <= 1 else {
      throw error(
        .ambiguousArchive,
        "\(found.count) files with the id \(prefix) differ in size; find the good one, and give its "
          + "file: \(found.map(\.fileName).listed(10))")
    }
    return best.path
  }

  private func newest(
    among owned: [StoredArchive], of candidates: [StoredArchive], _ owner: String?, notAfter limit: String?,
    _ when: String
  ) throws -> String {
    let owners = Set(owned.map(\.ownerKey))
    guard let oldest = owned.first else {
      let there = Set(candidates.map(\.ownerKey)).map { named($0, when, candidates) }.sorted()
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
        limit.map { candidate.effectiveTime.prefix($0.count) <= $0 } ?? true
      })
    else {
      throw error(.notFound, "no archive is as old as \(when); the oldest is of \(oldest.time)")
    }
    // Nobody gets an older archive without knowing it.
    if let label = found.label,
      let newer = newestUnreadable(of: label, after: found.effectiveTime, notAfter: limit)
    {
      throw error(
        (newer.error as? DrydockError)?.code ?? .damaged,
        "\(newer.fileName) is newer than what else is \(when), and cannot be read (\(newer.reason)); to take the "
          + "newest that can be read, give its id: \(found.id.prefix(idLength()))")
    }
    // A readable one is preferred to its locked copies.
    return candidates.last { !$0.isLocked && $0.id.hasPrefix(found.id) }?.path ?? found.path
  }

  /// The newest archive of an owner that cannot be read, if its name has a later time than another one's, or that of
  /// another one.
  func newestUnreadable(
    of other: ArchiveLabel, after time: String, notAfter limit: String? = nil
  ) -> Repository.Unreadable? {
    unreadable.last { file in
      guard let label = ArchiveLabel(fileName: file.fileName), label.nameKey == other.nameKey else {
        return false
      }
      let isNewer = label.time > time || (label.time == time && !label.mayBe(other))
      return isNewer && limit.map { label.time.prefix($0.count) <= $0 } ?? true
    }
  }

  /// The archives of an `APP/INSTANCE`, else of an instance, else of an app.
  private func archives(of owner: String, _ candidates: [StoredArchive]) -> [StoredArchive] {
    func matching(app: String?, instance: String?) -> [StoredArchive]? {
      let found = candidates.filter { $0.isOf(app: app, instance: instance) }
      return found.isEmpty ? nil : found
    }
    let whole = owner.firstIndex(of: "/").flatMap {
      matching(app: String(owner[..<$0]), instance: String(owner[owner.index(after: $0)...]))
    }
    return whole ?? matching(app: nil, instance: owner) ?? matching(app: owner, instance: nil) ?? []
  }

  /// The shortest reference to an owner: its instance alone where no other app has one of that name.
  private func named(_ key: String, _ when: String, _ candidates: [StoredArchive]) -> String {
    guard let archive = candidates.first(where: { $0.ownerKey == key }) else { return key }
    let isAlone = Set(archives(of: archive.instance, candidates).map(\.ownerKey)) == [key]
    return (isAlone ? archive.instance : archive.owner) + "@" + when
  }

  private func error(_ code: DrydockError.Code, _ message: String) -> DrydockError {
    DrydockError(code, message.printable, path: repository)
  }
}

import AppContainer
import DrydockErrors

/// Finding the archive that a person means.
extension Repository.Listing {
  /// An archive that can be meant: of a sealed one its name tells what it is.
  private struct Candidate {
    var path: String
    var label: ArchiveLabel
    /// The time that counts, which may be another than the label's.
    var time: String
    /// Nil for a sealed one.
    var item: Repository.Item?

    var fileName: String { lastName(path) }

    /// Whether that is its app, instance or owner: as text, or of a sealed one as a name would have it.
    func isOf(_ owner: String, _ part: KeyPath<ArchiveLabel, String>) -> Bool {
      let own = label[keyPath: part]
      return own == owner
        || (item == nil && ArchiveName.plain(own, .max) == ArchiveName.plain(owner, .max))
    }
  }

  /// The path of the archive that a person means: the name of its file, the beginning of its id (4 digits or more),
  /// `INSTANCE@latest`, `INSTANCE@2026-11-14` (the newest not later, by the time that counts), and where that fits several apps
  /// `APP/INSTANCE@latest`. Without an instance, `latest` and a time mean the only one that there is.
  ///
  /// Encrypted archives that no key at hand opens count as what their names say.
  ///
  /// - Throws: ``DrydockError``: `notFound`, or `ambiguous` with the candidates and what to say instead.
  package func find(_ name: String) throws -> String {
    let files = items.map(\.path) + sealed.map(\.path) + unreadable.map(\.path)
    if let file = files.first(where: { lastName($0) == name }) { return file }
    switch try ArchiveReference(name, repository: repository) {
    case .id(let prefix): return try withID(prefix)
    case .newest(let owner, let limit):
      let when = name.lastIndex(of: "@").map { String(name[name.index(after: $0)...]) } ?? name
      return try newest(of: owner, notAfter: limit, when)
    }
  }

  /// All that have a label, oldest first.
  private var candidates: [Candidate] {
    entries.compactMap { entry in
      guard let place = entry.place else { return nil }
      switch entry {
      case .item(let item):
        return Candidate(path: item.path, label: place.label, time: place.time, item: item)
      case .sealed(let sealed):
        return Candidate(path: sealed.path, label: known(place.label), time: place.time, item: nil)
      }
    }
  }

  /// What a name says, with app and instance as the only header has them that would give this name.
  private func known(_ label: ArchiveLabel) -> ArchiveLabel {
    let owners = Set(
      items.map { ArchiveLabel($0.header) }.filter {
        ArchiveName.plain($0.app, 95) == label.app && ArchiveName.plain($0.instance, 95) == label.instance
      }.map { [$0.app, $0.instance] })
    guard owners.count == 1, let owner = owners.first else { return label }
    return ArchiveLabel(app: owner[0], instance: owner[1], time: label.time, id: label.id)
  }

  private func withID(_ prefix: String) throws -> String {
    let found = candidates.filter {
      let id = $0.label.id.lowercased()
      // A name may have less of the id than is asked for.
      return id.hasPrefix(prefix) || ($0.item == nil && prefix.hasPrefix(id))
    }
    // One that can be read stands for its copies.
    guard let best = found.first(where: { $0.item != nil }) ?? found.first else {
      throw error(.notFound, "no archive is \(prefix); `drydock list -r` shows what there is")
    }
    guard found.allSatisfy({ $0.label.mayBe(best.label) }) else {
      let candidates = found.map {
        "\($0.label.id.prefix(idLength)) (\($0.label.time), \($0.label.instance))"
      }
      throw error(
        .ambiguous, "\(prefix) fits \(found.count) archives; give more of the id: \(list(candidates))")
    }
    // Copies of one archive, encrypted or not: any of them.
    guard Set(found.compactMap(\.item?.contentSize)).count <= 1 else {
      throw error(
        .ambiguous,
        "\(found.count) files say that they are \(prefix), and their sizes differ; `drydock verify --data` tells "
          + "which is good, give its file: \(list(found.map(\.fileName)))")
    }
    return best.path
  }

  private func newest(of owner: String?, notAfter limit: String?, _ when: String) throws -> String {
    let candidates = candidates
    let owned = owner.map { archives(of: $0, candidates) } ?? candidates
    let owners = Set(owned.map(\.label.owner))
    guard let oldest = owned.first else {
      let there = Set(candidates.map(\.label.owner)).sorted().map { named($0, when, candidates) }
      throw error(
        .notFound,
        there.isEmpty
          ? "there are no archives that can be read"
          : "no archive is \(owner.map { $0 + "@" } ?? "")\(when); there are \(list(there))")
    }
    guard owners.count == 1 else {
      throw error(
        .ambiguous,
        "there are archives of \(owners.count) instances; say INSTANCE@\(when): "
          + list(owners.sorted().map { named($0, when, candidates) }))
    }
    guard
      let found = owned.last(where: { candidate in
        limit.map { candidate.time.prefix($0.count) <= $0 } ?? true
      })
    else {
      throw error(.notFound, "no archive is of \(when) or before; the oldest is of \(oldest.label.time)")
    }
    // One that can be read stands for its copies.
    return candidates.last { $0.item != nil && $0.label.id.hasPrefix(found.label.id) }?.path ?? found.path
  }

  /// Those of an `APP/INSTANCE`, else of an instance, else of an app.
  private func archives(of owner: String, _ candidates: [Candidate]) -> [Candidate] {
    for part in [\.owner, \.instance, \.app] as [KeyPath<ArchiveLabel, String>] {
      let found = candidates.filter { $0.isOf(owner, part) }
      if !found.isEmpty { return found }
    }
    return []
  }

  /// What to say for an owner: its instance alone where no other app has one of that name.
  private func named(_ owner: String, _ when: String, _ candidates: [Candidate]) -> String {
    let instance = candidates.first { $0.label.owner == owner }?.label.instance ?? owner
    let isAlone = Set(archives(of: instance, candidates).map(\.label.owner)) == [owner]
    return (isAlone ? instance : owner) + "@" + when
  }

  private func list(_ candidates: [String]) -> String {
    let more = candidates.count - 10
    return candidates.prefix(10).joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
  }

  private func error(_ code: DrydockError.Code, _ message: String) -> DrydockError {
    DrydockError(code, message.printable, path: repository)
  }
}

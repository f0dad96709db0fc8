import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Storage

/// The tags of archives. An archive never changes, so they are in a file beside it, `<archive id>.tags.json`, which no key
/// is needed to read, and without which the archive is as good.
enum ArchiveTags {
  private static let suffix = ".tags.json"
  private static let sizeLimit = 1 << 20

  private struct Document: Codable {
    var archive: String
    var tags: [String]
  }

  /// The id of the archive whose tags a file has; nil for any other file.
  static func id(ofFile name: [UInt8]) -> String? {
    let text = String(decoding: name, as: UTF8.self)
    guard text.hasSuffix(suffix) else { return nil }
    return Archive.ID(String(text.dropLast(suffix.count)))?.description
  }

  static func read(of id: String, in place: any Place) throws -> [String] {
    let name = file(id)
    do {
      let bytes = try place.contents(name, limit: sizeLimit)
      let document = try JSONDecoder().decode(Document.self, from: Data(bytes))
      guard document.archive == id else { throw DrydockError(.damaged, "its tags are another archive's") }
      return Set(try document.tags.map(valid)).sorted()
    } catch {
      throw DrydockError(
        .damaged, "tags cannot be read: \(DrydockError.reason(of: error)); repair or remove the file",
        path: place.full(name), cause: error)
    }
  }

  /// Writes the tags, on disk when this returns; without any the file is removed.
  static func write(_ tags: [String], of id: String, in place: any Place) throws {
    if tags.isEmpty { return try remove(of: id, in: place) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let document = try encoder.encode(Document(archive: id, tags: tags))
    try place.put(file(id), [UInt8](document) + [UInt8(ascii: "\n")])
  }

  static func remove(of id: String, in place: any Place) throws {
    try place.remove(file(id))
  }

  private static func file(_ id: String) -> ContainerPath { ContainerPath(name: Array((id + suffix).utf8)) }

  /// A tag that a list and a rule can name.
  ///
  /// - Throws: `DrydockError` with code `usage`.
  @discardableResult
  static func valid(_ tag: String) throws -> String {
    guard (1...100).contains(tag.count), !tag.contains(","), tag == tag.trimmingCharacters(in: .whitespaces),
      !tag.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else {
      throw DrydockError(
        .usage,
        "`\(tag.printable.prefix(100))` is not a tag; a tag has 1 to 100 characters, no comma and no control characters"
      )
    }
    return tag
  }
}

extension Repository {
  /// Changes the tags of an archive, which itself stays as it is.
  ///
  /// - Parameters:
  ///   - archive: as for ``Listing/find(_:for:)``.
  ///   - keys: what opens encrypted ones: the first tag of one needs its whole id, which is in it.
  ///   - lockTimeout: seconds to wait for those who write into the repository.
  /// - Returns: all tags that the archive has now, sorted.
  /// - Throws: `DrydockError`: `notFound`, `ambiguousArchive`, `locked`, `noIdentity`, `usage` for an invalid tag.
  @discardableResult
  public func tag(
    _ archive: String, adding: [String] = [], removing: [String] = [], keys: AgeKeys = AgeKeys(),
    lockTimeout: Double = 0
  ) throws -> [String] {
    for tag in adding + removing { try ArchiveTags.valid(tag) }
    // Exclusive, so that of two changes at once none is lost.
    let place = try locked(exclusive: true, timeout: lockTimeout)
    let listing = try list(place, keys)
    let found = try listing.find(archive)
    let id = try listing.id(ofArchive: found, in: place)
    let present = try place.list().names.contains { ArchiveTags.id(ofFile: $0) == id }
    let old = try present ? ArchiveTags.read(of: id, in: place) : []
    let new = Set(old).subtracting(removing).union(adding).sorted()
    if new != old { try ArchiveTags.write(new, of: id, in: place) }
    return new
  }
}

extension Repository.Listing {
  /// Reads the files of tags among the names in the repository.
  mutating func readTags(_ names: [[UInt8]], in place: any Place) throws {
    var (byID, unknown): ([String: [String]], Set<String>) = ([:], [])
    OrderedWork.run(names.compactMap(ArchiveTags.id), jobs: place.parallelReads) { id in
      Result { try ArchiveTags.read(of: id, in: place) }
    } deliver: { id, result in
      switch result {
      case .success(let tags): byID[id] = tags
      case .failure(let error):
        unknown.insert(id)
        unreadable.append(.init(path: (error as? DrydockError)?.path ?? id, error))
      }
    }
    // A name has the beginning of the id.
    let byPrefix = Dictionary(grouping: byID.keys) { $0.prefix(8) }
    for index in archives.indices {
      guard let label = archives[index].label else { continue }
      let found = byPrefix[label.id.prefix(8), default: []].filter { $0.hasPrefix(label.id) }
      archives[index].tags = Set(found.flatMap { byID[$0] ?? [] }).sorted()
      archives[index].hasUnknownTags = unknown.contains { $0.hasPrefix(label.id) }
    }
  }

  /// The whole id of an archive.
  fileprivate func id(ofArchive path: String, in place: any Place) throws -> String {
    guard let archive = archives.first(where: { $0.path == path }) else {
      throw unreadable.first { $0.path == path }?.error
        ?? DrydockError(.notFound, "no such archive", path: path)
    }
    guard let error = archive.error else { return archive.id }
    // A name has the beginning of the id; the file of its tags has all of it.
    let ids = try place.list().names.compactMap(ArchiveTags.id).filter { id in
      archive.label.map { id.hasPrefix($0.id) } ?? false
    }
    guard ids.count == 1, let id = ids.first else { throw error }
    return id
  }
}

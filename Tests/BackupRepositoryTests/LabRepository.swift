import FileSystem
import Foundation
import Storage
import TestSupport
import Testing

@testable import BackupRepository

/// The files of a lab's repository, wherever it is: what a test sees and changes there without the product's help.
extension Lab {
  /// The directory with the files, also that of the SFTP server, which runs on this machine; nil for S3.
  var folder: String? {
    guard let place else { return repository }
    return place.directory.map { "\($0)/\(lastName(repository))" }
  }

  private var server: any Place { get throws { try Places.open(repository) } }

  /// The names of all files, sorted; a lock that somebody has is `locks/NAME`.
  func storedNames() throws -> [String] {
    guard place != nil else { return try names(in: repository) }
    guard let folder else {
      return try [ContainerPath.root, "locks"].flatMap { try server.files($0).map(\.name.description) }
    }
    let names = try self.names(in: folder)
    let locks = names.contains("locks") ? try self.names(in: "\(folder)/locks") : []
    // The folder itself stays.
    return names.filter { $0 != "locks" } + locks.map { "locks/\($0)" }
  }

  private func names(in directory: String) throws -> [String] {
    try RawFiles.names(in: Array(directory.utf8)).map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  func stored(_ path: String) throws -> [UInt8] {
    if let folder { return [UInt8](try RawFiles.read(Array("\(folder)/\(lastName(path))".utf8))) }
    return try Places.open(repository).contents(ContainerPath(lastName(path)), limit: .max)
  }

  func store(_ path: String, _ bytes: [UInt8]) throws {
    if let folder { return try RawFiles.write(bytes, to: Array("\(folder)/\(lastName(path))".utf8)) }
    try server.put(ContainerPath(lastName(path)), bytes)
  }

  func removeStored(_ path: String) throws {
    if let folder { return try RawFiles.remove(Array("\(folder)/\(lastName(path))".utf8)) }
    try server.remove(ContainerPath(lastName(path)))
  }

  func isStored(_ path: String) throws -> Bool { try storedNames().contains(lastName(path)) }

  func localCopy(of path: String) throws -> String {
    guard place != nil, path.hasPrefix(repository + "/") else { return path }
    if let folder { return "\(folder)/\(lastName(path))" }
    try make(directory("copies"))
    let copy = directory("copies/\(lastName(path))")
    try RawFiles.write(stored(path), to: Array(copy.utf8))
    return copy
  }

  /// Runs a script in the lab's directory, where `repository` has the repository's files: of a remote place, copies, from
  /// which it gets what the script changes. S3 gives what is new the present time.
  @discardableResult
  func changeRepository(_ script: String) throws -> String {
    guard place != nil else { return try shell(script) }
    let copies = directory("repository")
    if let folder {
      _ = try shell("cp -a '\(folder)' repository; rmdir repository/locks 2> /dev/null || :")
      let output = try shell(script)
      _ = try shell("find '\(folder)' -mindepth 1 -delete; cp -a repository/. '\(folder)'; rm -r repository")
      return output
    }
    try make(copies)
    var before: [String: [UInt8]] = [:]
    for file in try server.files(.root) {
      let name = file.name.description
      let (path, bytes) = ("\(copies)/\(name)", try stored(name))
      try RawFiles.write(bytes, to: Array(path.utf8))
      let modified = Date(timeIntervalSince1970: Double(file.modified) / 1e9)
      try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: path)
      before[name] = bytes
    }
    let output = try shell(script)
    let names = try self.names(in: copies)
    for name in names {
      let bytes = [UInt8](try RawFiles.read(Array("\(copies)/\(name)".utf8)))
      if bytes != before[name] { try store(name, bytes) }
    }
    for name in before.keys where !names.contains(name) { try removeStored(name) }
    try RawFiles.remove(Array(copies.utf8))
    return output
  }

  /// Expects that nobody touches the repository meanwhile, but for locks.
  func expectUnchangedRepository(
    at location: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) throws {
    guard let folder else {
      let before = try server.files(.root)
      try body()
      #expect(try server.files(.root) == before, sourceLocation: location)
      return
    }
    let locks = place == nil ? [] : ["", "locks"]
    let before = try TreeListing(folder).without(locks)
    try body()
    expectSame(try TreeListing(folder).without(locks), as: before, at: location)
  }
}

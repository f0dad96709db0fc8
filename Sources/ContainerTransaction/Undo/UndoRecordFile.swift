import DrydockErrors
import FileSystem
import SystemPackage

extension UndoRecord {
  /// Writes the file, a part of the changes at a time: encoding all of them takes two kilobytes of memory for each.
  func write(in folder: Directory) throws {
    var rest = self
    rest.changes = ChangeRecords()
    // The first key of all.
    let (start, end) = (Array(#"{"changes":["#.utf8), try StateRecord.encode(rest))
    guard end.starts(with: start) else {
      return try folder.create(Self.file, StateRecord.encode(self))
    }
    let file = try folder.createFile(Self.file)
    defer { try? file.close() }
    try DrydockError.translating("cannot write", folder.full(Self.file)) {
      _ = try file.writeAll(start)
      for first in stride(from: 0, to: changes.count, by: 1000) {
        let part = try StateRecord.encode(Array(changes[first...].prefix(1000)))
        _ = try file.writeAll((first == 0 ? [] : [UInt8(ascii: ",")]) + part.dropFirst().dropLast())
      }
      _ = try file.writeAll(end.dropFirst(start.count))
    }
  }
}

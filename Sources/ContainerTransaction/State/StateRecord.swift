import AppContainer
import Foundation

/// What the state directory keeps as JSON: the undo's record, the plan of a commit in place, the journal's lines.
enum StateRecord {
  /// With sorted keys, on one line.
  static func encode(_ record: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return [UInt8](try encoder.encode(record))
  }

  /// Reads a record's file.
  ///
  /// - Parameter damaged: what it means that the file is none.
  /// - Throws: ``TransactionError`` with code `damagedState`.
  static func read<Record: Decodable>(
    _ file: ContainerPath, in folder: Directory, damaged: String
  ) throws -> Record {
    do {
      return try JSONDecoder().decode(Record.self, from: Data(folder.contents(file, limit: 1 << 30)))
    } catch let error as DecodingError {
      throw TransactionError(.damagedState, damaged, path: folder.full(file), cause: error)
    }
  }
}

import AppContainer
import DrydockErrors
import FileSystem
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
  /// - Parameters:
  ///   - limit: the largest size that is read.
  ///   - damaged: what it means that the file is none.
  /// - Throws: ``DrydockError`` with code `damagedState`.
  static func read<Record: Decodable>(
    _ file: ContainerPath, in folder: Directory, limit: Int = 1 << 30, damaged: String
  ) throws -> Record {
    do {
      return try JSONDecoder().decode(Record.self, from: Data(folder.contents(file, limit: limit)))
    } catch let error where error is DecodingError || (error as? DrydockError)?.code == .badPath {
      throw DrydockError(.damagedState, damaged, path: folder.full(file), cause: error)
    }
  }
}

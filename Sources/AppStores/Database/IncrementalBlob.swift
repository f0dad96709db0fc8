import DrydockErrors
import GRDB
import GRDBSQLite

/// The bytes of a text or blob in a table with row IDs, read and written in pieces, so that their size does not matter.
package struct IncrementalBlob: ~Copyable {
  private static let pieceSize = 1 << 20

  package let count: Int
  private let handle: OpaquePointer

  /// - Throws: `DatabaseError` when there is no such row, or its value is neither text nor a blob.
  package init(
    _ db: Database, table: String, column: String, row: Int64, isWritable: Bool = false
  ) throws {
    var opened: OpaquePointer?
    let code = sqlite3_blob_open(
      db.sqliteConnection, "main", table, column, row, isWritable ? 1 : 0, &opened)
    guard code == SQLITE_OK, let opened else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(db.sqliteConnection)))
    }
    (handle, count) = (opened, Int(sqlite3_blob_bytes(opened)))
  }

  deinit { sqlite3_blob_close(handle) }

  /// Calls a body with each piece, in order.
  package borrowing func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let piece = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, min(count, Self.pieceSize)), alignment: 16)
    defer { piece.deallocate() }
    var offset = 0
    while offset < count {
      let length = min(count - offset, Self.pieceSize)
      try check(sqlite3_blob_read(handle, piece.baseAddress, Int32(length), Int32(offset)))
      try body(UnsafeRawBufferPointer(rebasing: piece[..<length]))
      offset += length
    }
  }

  /// Overwrites bytes; the size stays.
  package borrowing func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
    try check(sqlite3_blob_write(handle, bytes.baseAddress, Int32(bytes.count), Int32(offset)))
  }

  private borrowing func check(_ code: Int32) throws {
    guard code != SQLITE_OK else { return }
    throw DatabaseError(resultCode: ResultCode(rawValue: code), message: "a value cannot be read or written")
  }
}

/// Rows of a manifest's entries by their numbers, which are in the order of their paths; for one thread. After a neighbour of the
/// last row several are read at once.
package final class EntryRows<Value> {
  let manifest: ManifestReader
  private let read: (_ after: Int64, _ limit: Int) throws -> [Value]
  private var page: [Value] = []
  /// The row before those of the page.
  private var start: Int64 = 0

  init(_ manifest: ManifestReader, read: @escaping (_ after: Int64, _ limit: Int) throws -> [Value]) {
    (self.manifest, self.read) = (manifest, read)
  }

  /// A row; nil after the last one.
  package func value(_ row: Int64) throws -> Value? {
    let end = start + Int64(page.count)
    if row <= start || row > end {
      (page, start) = (try read(row - 1, row == end + 1 ? 200 : 1), row - 1)
    }
    return page.isEmpty ? nil : page[Int(row - start) - 1]
  }

  /// A row that the manifest must have.
  package func required(_ row: Int64) throws -> Value {
    guard let value = try value(row) else { throw manifest.wrong("no entry \(row)") }
    return value
  }
}

import DrydockErrors
import FileSystem

/// A small value for each of many paths, in the order of the paths. The bytes of all paths are in one buffer: a million
/// arrays take several times the memory.
struct PathTable<Value> {
  private var bytes: [UInt8] = []
  /// Where each path ends in the buffer.
  private var ends: [Int] = []
  private var values: [Value] = []
  private var last: ContainerPath?

  /// Adds a path behind all others.
  ///
  /// - Throws: `DrydockError` with code `damaged` when it does not belong there.
  mutating func append(_ path: ContainerPath, _ value: Value) throws {
    guard last.map({ $0 < path }) ?? true else {
      throw DrydockError(.damaged, "entries out of order (\(path))")
    }
    last = path
    bytes += path.bytes
    ends.append(bytes.count)
    values.append(value)
  }

  /// The value of a path; nil when it was not added.
  subscript(path: ContainerPath) -> Value? {
    var (low, high) = (0, values.count)
    while low < high {
      let middle = (low + high) / 2
      switch order(of: middle, path) {
      case 0: return values[middle]
      case ..<0: low = middle + 1
      default: high = middle
      }
    }
    return nil
  }

  /// Below 0 when a path of the table comes before another one, above 0 when it comes after it: see `ContainerPath.<`.
  private func order(of index: Int, _ path: ContainerPath) -> Int {
    let start = index == 0 ? 0 : ends[index - 1]
    let count = ends[index] - start
    return bytes.withUnsafeBufferPointer { all in
      path.bytes.withUnsafeBufferPointer { other in
        for position in 0..<Swift.min(count, other.count) {
          let (a, b) = (all[start + position], other[position])
          if a == b { continue }
          let slash = UInt8(ascii: "/")
          return a == slash || (b != slash && a < b) ? -1 : 1
        }
        return count - other.count
      }
    }
  }
}

extension PathTable: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { values.count }

  subscript(position: Int) -> (path: ContainerPath, value: Value) {
    let start = position == 0 ? 0 : ends[position - 1]
    return (ContainerPath(unchecked: Array(bytes[start..<ends[position]])), values[position])
  }
}

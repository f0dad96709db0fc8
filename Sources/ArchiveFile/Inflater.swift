import CLibZ
import DrydockErrors

/// Reads a zlib stream piece by piece. The only file that imports zlib.
package final class Inflater {
  private static let pieceSize = 256 << 10
  /// Its address must not change, because zlib keeps it.
  private let stream: UnsafeMutablePointer<z_stream>
  private let source: () throws -> [UInt8]?
  private var input: [UInt8] = []
  private var used = 0
  /// Whether the last piece was full, so that zlib may hold more without further input.
  private var mayHoldMore = false
  private var isFinished = false

  /// - Parameter source: the next compressed bytes; nil at their end.
  package init(_ source: @escaping () throws -> [UInt8]?) throws {
    self.source = source
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    guard inflateInit_(stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      stream.deallocate()
      throw DrydockError(.io, "zlib could not start: out of memory; free some and try again")
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  /// The next bytes, at most 256 KiB; nil at the end of the stream.
  ///
  /// - Throws: `DrydockError`: `damaged`, `truncated`, and what the source throws.
  package func next() throws -> [UInt8]? {
    while !isFinished {
      if used == input.count, !mayHoldMore {
        guard let more = try source() else {
          throw DrydockError.truncated("its compressed data ends too early")
        }
        (input, used) = (more, 0)
        continue
      }
      let piece = try inflateOnce()
      if !piece.isEmpty { return piece }
    }
    return nil
  }

  /// The bytes after the stream's end that were read with it; nil when the source has no more.
  package func rest() throws -> [UInt8]? {
    guard used == input.count else {
      defer { used = input.count }
      return Array(input[used...])
    }
    return try source()
  }

  private func inflateOnce() throws -> [UInt8] {
    var result = Z_OK
    let piece = input.withUnsafeMutableBufferPointer { input in
      [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { output, count in
        stream.pointee.next_in = input.baseAddress.map { $0 + used }
        stream.pointee.avail_in = UInt32(input.count - used)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(Self.pieceSize)
        result = inflate(stream, Z_NO_FLUSH)
        used = input.count - Int(stream.pointee.avail_in)
        count = Self.pieceSize - Int(stream.pointee.avail_out)
      }
    }
    mayHoldMore = piece.count == Self.pieceSize
    switch result {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: isFinished = true
    case Z_MEM_ERROR: throw DrydockError(.io, "zlib is out of memory; free some and try again")
    default:
      let reason = stream.pointee.msg.map { String(cString: $0) } ?? "it needs a dictionary"
      throw DrydockError.damaged("its compressed data is damaged: \(reason)")
    }
    return piece
  }
}

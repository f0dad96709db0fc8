#if os(Linux)
  import Cryptography
  import Foundation
  import TestSupport

  /// Looks for bytes in all memory of this process that can be written to.
  enum MemoryScan {
    /// How many copies of a secret there are besides `needle` itself. Its last half counts: over the first bytes of
    /// memory that was given back the allocator writes notes of its own.
    static func copies(of needle: SecretBytes) throws -> Int {
      let file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { throw SystemFailure(call: "open", path: Array("/proc/self/mem".utf8)) }
      defer { close(file) }
      let window = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
      defer { window.deallocate() }
      return try needle.withBytes { whole in
        let needle = UnsafeRawBufferPointer(rebasing: whole[(whole.count / 2)...])
        let own = [range(UnsafeRawBufferPointer(window)), range(needle)]
        var found: Set<UInt> = []
        for region in try regions() {
          // Windows overlap by the length of the needle, so that none is missed at their borders.
          for start in stride(from: region.lowerBound, to: region.upperBound, by: window.count - needle.count)
          {
            let length = min(window.count, Int(region.upperBound - start))
            let count = pread(file, window.baseAddress, length, off_t(truncatingIfNeeded: start))
            // Another thread may have given a region back meanwhile.
            guard count > 0 else { continue }
            places(of: needle, in: UnsafeRawBufferPointer(rebasing: window[..<count])).forEach {
              found.insert(start + UInt($0))
            }
          }
        }
        return found.count { place in !own.contains { $0.contains(place) } }
      }
    }

    private static func places(of needle: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer) -> [Int] {
      var places: [Int] = []
      guard let base = bytes.baseAddress, let what = needle.baseAddress, let first = needle.first else {
        return []
      }
      var start = 0
      while start + needle.count <= bytes.count,
        let hit = memchr(base + start, Int32(first), bytes.count - needle.count - start + 1)
      {
        let place = UnsafeRawPointer(hit) - base
        if memcmp(hit, what, needle.count) == 0 { places.append(place) }
        start = place + 1
      }
      return places
    }

    private static func range(_ bytes: UnsafeRawBufferPointer) -> Range<UInt> {
      let start = UInt(bitPattern: bytes.baseAddress)
      return start..<(start + UInt(bytes.count))
    }

    /// The kernel gives this file in pieces, and Foundation stops after the first one.
    private static func maps() throws -> String {
      let file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { throw SystemFailure(call: "open", path: Array("/proc/self/maps".utf8)) }
      defer { close(file) }
      var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
      while true {
        let count = read(file, &piece, piece.count)
        guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
        bytes += piece[..<count]
      }
    }

    private static func regions() throws -> [Range<UInt>] {
      let lines = try maps().split(separator: "\n")
      return lines.compactMap { line in
        let fields = line.split(separator: " ")
        let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
        // What is larger is address space that a sanitizer keeps for itself.
        guard fields[1].hasPrefix("rw"), ends.count == 2, ends[1] - ends[0] < 1 << 32 else { return nil }
        return ends[0]..<ends[1]
      }
    }
  }
#endif

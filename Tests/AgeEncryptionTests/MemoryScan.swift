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
      var (places, start) = ([Int](), 0)
      while let hit = firstPlace(of: needle, in: UnsafeRawBufferPointer(rebasing: bytes[start...])) {
        places.append(start + hit)
        start += hit + 1
      }
      return places
    }

    private static func range(_ bytes: UnsafeRawBufferPointer) -> Range<UInt> {
      let start = UInt(bitPattern: bytes.baseAddress)
      return start..<(start + UInt(bytes.count))
    }

    private static func regions() throws -> [Range<UInt>] {
      let maps = String(decoding: try RawFiles.read(Array("/proc/self/maps".utf8)), as: UTF8.self)
      let lines = maps.split(separator: "\n")
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

import Foundation

/// Text that is equal only when the Unicode scalars are. To Swift's `String`, é equals e with a combining accent; to the
/// files and databases of an app they differ.
///
/// As a property wrapper it makes the synthesized comparison of a type exact.
@propertyWrapper
package struct ExactText: Sendable {
  package var text: String

  package var wrappedValue: String {
    get { text }
    set { text = newValue }
  }

  package init(_ text: String) { self.text = text }

  package init(wrappedValue: String) { text = wrappedValue }
}

extension ExactText: Hashable, Comparable {
  package static func == (left: Self, right: Self) -> Bool {
    left.text.utf8.count == right.text.utf8.count && order(left, right) == 0
  }

  /// By scalars, which is the order of the UTF-8 bytes.
  package static func < (left: Self, right: Self) -> Bool {
    let order = order(left, right)
    return order == 0 ? left.text.utf8.count < right.text.utf8.count : order < 0
  }

  /// The order of the common prefix length.
  private static func order(_ left: Self, _ right: Self) -> Int32 {
    left.withBytes { left in
      right.withBytes { right in
        guard let first = left.baseAddress, let second = right.baseAddress else { return 0 }
        return memcmp(first, second, min(left.count, right.count))
      }
    }
  }

  /// Without copying, unless Foundation on Apple's systems made the string.
  private func withBytes<T>(_ body: (UnsafeBufferPointer<UInt8>) -> T) -> T {
    if let result = text.utf8.withContiguousStorageIfAvailable(body) { return result }
    return Array(text.utf8).withUnsafeBufferPointer(body)
  }

  package func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

extension ExactText: Codable, ExpressibleByStringLiteral, CustomStringConvertible {
  package init(from decoder: any Decoder) throws { text = try String(from: decoder) }

  package func encode(to encoder: any Encoder) throws { try text.encode(to: encoder) }

  package init(stringLiteral value: String) { text = value }

  package var description: String { text }
}

extension String {
  /// Whether both have the same Unicode scalars.
  package func isExactly(_ other: String) -> Bool { ExactText(self) == ExactText(other) }
}

extension Sequence<String> {
  /// Whether one of the texts has the same Unicode scalars.
  package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}

/// The bytes of text files. A checkout on Windows (git's `autocrlf`) has CRLF in place of every line feed.
package enum TextFile {
  /// The text of a UTF-8 file, without a byte order mark; nil when it is something else.
  package static func utf8(_ bytes: [UInt8]) -> [UInt8]? {
    let text = bytes.starts(with: TextEncoding.mark) ? Array(bytes.dropFirst(3)) : bytes
    return String(validating: text, as: UTF8.self) == nil ? nil : text
  }

  /// The lines of a text, without the line feeds. A carriage return before one belongs to its line. After the last line
  /// feed there is one more line, which may be empty.
  package static func lines(_ bytes: [UInt8]) -> some Sequence<ArraySlice<UInt8>> {
    // One at a time: an array has 32 bytes for each line, which may be empty.
    sequence(state: 0) { start in
      guard start <= bytes.count else { return nil }
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
      defer { start = end + 1 }
      return bytes[start..<end]
    }
  }

  /// The number of the first line with the marker of a merge conflict: one of these characters seven times, and nothing or a
  /// space after it.
  package static func conflictLine(in bytes: [UInt8], marks: String) -> Int? {
    let marks = Array(marks.utf8)
    return bytes.withUnsafeBufferPointer { bytes in
      var (start, number) = (0, 1)
      while start + 7 <= bytes.count {
        if marks.contains(bytes[start]), bytes[start..<start + 7].allSatisfy({ $0 == bytes[start] }),
          start + 7 == bytes.count || [0x20, 0x0D, 0x0A].contains(bytes[start + 7])
        {
          return number
        }
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        (start, number) = (end + 1, number + 1)
      }
      return nil
    }
  }

  /// With a line feed for each CRLF.
  package static func normalized(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.contains(0x0D) else { return bytes }
    return bytes.indices.filter { bytes[$0] != 0x0D || $0 + 1 == bytes.count || bytes[$0 + 1] != 0x0A }
      .map { bytes[$0] }
  }

  /// The text as it was before such a checkout. A file with other line ends besides was never converted: its CRLF are meant.
  package static func committed(_ bytes: [UInt8]) -> [UInt8] {
    let isConverted = bytes.indices.allSatisfy { bytes[$0] != 0x0A || ($0 > 0 && bytes[$0 - 1] == 0x0D) }
    return isConverted ? normalized(bytes) : bytes
  }

  /// A file as it was before such a checkout, if it is text.
  package static func withoutCheckout(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.contains(0x0D) || bytes.first == 0xEF, !bytes.contains(0), let text = utf8(bytes) else {
      return bytes
    }
    return normalized(text)
  }
}

/// Suggests the known word closest to a mistyped one.
package enum NearestWord {
  /// The candidate with the smallest edit distance (a swap of neighbours counts one), or nil when none is close.
  package static func to(_ word: String, among candidates: [String]) -> String? {
    let typed = Array(word.lowercased().unicodeScalars)
    let limit = max(1, typed.count / 4)
    var best: (distance: Int, word: String)?
    for candidate in candidates {
      let known = Array(candidate.lowercased().unicodeScalars)
      guard abs(known.count - typed.count) <= limit else { continue }
      let distance = distance(typed, known)
      if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
    }
    return best?.word
  }

  /// The end of an error message: "did you mean `x`?", or the known words.
  package static func hint(for word: String, among candidates: [String]) -> String {
    if let near = to(word, among: candidates) { return "did you mean `\(near)`?" }
    if candidates.isEmpty { return "no names are known here" }
    return "known here: " + candidates.sorted().joined(separator: ", ")
  }

  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    if left.isEmpty || right.isEmpty { return left.count + right.count }
    var older = [Int](repeating: 0, count: right.count + 1)
    var previous = Array(0...right.count)
    for row in 1...left.count {
      var current = [row] + [Int](repeating: 0, count: right.count)
      for column in 1...right.count {
        let cost = left[row - 1] == right[column - 1] ? 0 : 1
        current[column] = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + cost)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          current[column] = min(current[column], older[column - 2] + 1)
        }
      }
      older = previous
      previous = current
    }
    return previous[right.count]
  }
}

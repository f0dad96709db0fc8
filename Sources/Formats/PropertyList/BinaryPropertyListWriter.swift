import Foundation

/// Encodes the binary format: keys in order, equal values once, so that the same value gives the same bytes, and what a
/// file shares stays shared.
///
/// All objects lie one behind the other in one buffer, each once: settings may have half a million of them.
struct BinaryPropertyListWriter {
  /// Leaves as they are in a file; containers as their marker and the numbers of what is in them, 4 bytes each.
  private var objects: [UInt8] = []
  /// Where each object begins, and where the next one will.
  private var starts = [0]
  private var hashes: [Int] = []
  /// The numbers of the objects by their hashes, -1 for none: a table with open addressing, never more than half full.
  private var slots = [Int32](repeating: -1, count: 64)

  private static let (array, dictionary): (UInt8, UInt8) = (0xA0, 0xD0)

  /// The bytes of a whole file.
  static func write(_ value: PropertyListValue) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    let top = writer.add(value)
    return writer.file(top)
  }

  // MARK: Adding

  private mutating func add(_ value: PropertyListValue) -> Int32 {
    switch value {
    case .array(let values): return add(Self.array, values.map { add($0) })
    case .dictionary(let values):
      let sorted = values.sorted()
      var numbers: [Int32] = []
      numbers.reserveCapacity(2 * sorted.count)
      for pair in sorted { numbers.append(add(.string(pair.key))) }
      for pair in sorted { numbers.append(add(pair.value)) }
      return add(Self.dictionary, numbers)
    default:
      Self.append(value, to: &objects)
      return number()
    }
  }

  private mutating func add(_ container: UInt8, _ numbers: [Int32]) -> Int32 {
    objects.append(container)
    numbers.withUnsafeBytes { objects.append(contentsOf: $0) }
    return number()
  }

  /// The number of the object that was appended: a new one, or that of its equal, and it goes again.
  private mutating func number() -> Int32 {
    let start = starts[starts.count - 1]
    let length = objects.count - start
    let found = objects.withUnsafeBytes { bytes in
      let added = UnsafeRawBufferPointer(rebasing: bytes[start...])
      var hasher = Hasher()
      hasher.combine(bytes: added)
      let hash = hasher.finalize()
      var slot = hash & (slots.count - 1)
      while slots[slot] >= 0 {
        let other = Int(slots[slot])
        if hashes[other] == hash, starts[other + 1] - starts[other] == length,
          bytes[starts[other]..<starts[other + 1]].elementsEqual(added)
        {
          return (slot, hash, true)
        }
        slot = (slot + 1) & (slots.count - 1)
      }
      return (slot, hash, false)
    }
    let (slot, hash, isKnown) = found
    if isKnown {
      objects.removeLast(length)
      return slots[slot]
    }
    let number = Int32(hashes.count)
    slots[slot] = number
    hashes.append(hash)
    starts.append(objects.count)
    if 2 * hashes.count > slots.count { grow() }
    return number
  }

  private mutating func grow() {
    slots = [Int32](repeating: -1, count: 4 * slots.count)
    for (number, hash) in hashes.enumerated() {
      var slot = hash & (slots.count - 1)
      while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
      slots[slot] = Int32(number)
    }
  }

  // MARK: The file

  /// The numbers of what is in an object; none for a leaf.
  private func contents(_ number: Int32) -> [Int32] {
    let range = starts[Int(number)]..<starts[Int(number) + 1]
    guard isContainer(number) else { return [] }
    return objects.withUnsafeBytes { bytes in
      stride(from: range.lowerBound + 1, to: range.upperBound, by: 4).map {
        bytes.loadUnaligned(fromByteOffset: $0, as: Int32.self)
      }
    }
  }

  private func isContainer(_ number: Int32) -> Bool {
    [Self.array, Self.dictionary].contains(objects[starts[Int(number)]])
  }

  /// The objects as Apple's systems write them, a container before what is in it: what is equal is known only once all of it
  /// was added.
  private func order(from top: Int32) -> (order: [Int32], places: [UInt32]) {
    var places = [UInt32](repeating: .max, count: hashes.count)
    var order: [Int32] = []
    order.reserveCapacity(hashes.count)
    func visit(_ number: Int32) {
      guard places[Int(number)] == .max else { return }
      places[Int(number)] = UInt32(order.count)
      order.append(number)
      for inner in contents(number) { visit(inner) }
    }
    visit(top)
    return (order, places)
  }

  private func file(_ top: Int32) -> [UInt8] {
    let (order, places) = order(from: top)
    let referenceSize = Self.width(UInt64(order.count))
    var bytes = BinaryPropertyList.magic
    bytes.reserveCapacity(objects.count + objects.count / 2)
    var offsets: [Int] = []
    offsets.reserveCapacity(order.count)
    for number in order {
      offsets.append(bytes.count)
      let range = starts[Int(number)]..<starts[Int(number) + 1]
      guard isContainer(number) else {
        bytes.append(contentsOf: objects[range])
        continue
      }
      let contents = contents(number)
      let kind = objects[range.lowerBound]
      Self.append(marker: kind, kind == Self.dictionary ? contents.count / 2 : contents.count, to: &bytes)
      for inner in contents { Self.append(UInt64(places[Int(inner)]), referenceSize, to: &bytes) }
    }
    let table = bytes.count
    let offsetSize = Self.width(UInt64(table))
    for offset in offsets { Self.append(UInt64(offset), offsetSize, to: &bytes) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [UInt64(order.count), 0, UInt64(table)] { Self.append(number, 8, to: &bytes) }
    return bytes
  }

  // MARK: Leaves

  private static func append(_ value: PropertyListValue, to bytes: inout [UInt8]) {
    switch value {
    case .boolean(let value): bytes.append(value ? 0x09 : 0x08)
    case .integer(let value): append(integer: value, to: &bytes)
    case .unsigned(let value):
      bytes.append(0x14)
      append(0, 8, to: &bytes)
      append(value, 8, to: &bytes)
    case .real(let value):
      bytes.append(0x23)
      append(value.bitPattern, 8, to: &bytes)
    case .single(let value):
      bytes.append(0x22)
      append(UInt64(value.bitPattern), 4, to: &bytes)
    case .date(let date):
      bytes.append(0x33)
      append(date.timeIntervalSinceReferenceDate.bitPattern, 8, to: &bytes)
    case .data(let data):
      append(marker: 0x40, data.count, to: &bytes)
      bytes += data
    case .string(let text):
      if text.utf8.allSatisfy({ $0 < 0x80 }) {
        append(marker: 0x50, text.utf8.count, to: &bytes)
        bytes += text.utf8
      } else {
        append(marker: 0x60, text.utf16.count, to: &bytes)
        for unit in text.utf16 { append(UInt64(unit), 2, to: &bytes) }
      }
    case .unknown(let opaque):
      if opaque.marker == 0x60 {
        append(marker: 0x60, opaque.payload.count / 2, to: &bytes)
      } else {
        bytes.append(opaque.marker)
      }
      bytes += opaque.payload
    case .array, .dictionary: return
    }
  }

  /// One, two and four bytes are unsigned in this format, eight are signed.
  private static func append(integer value: Int64, to bytes: inout [UInt8]) {
    let (marker, size): (UInt8, Int) =
      switch value {
      case 0...0xFF: (0x10, 1)
      case 0x100...0xFFFF: (0x11, 2)
      case 0x1_0000...0xFFFF_FFFF: (0x12, 4)
      default: (0x13, 8)
      }
    bytes.append(marker)
    append(UInt64(bitPattern: value), size, to: &bytes)
  }

  private static func append(marker kind: UInt8, _ count: Int, to bytes: inout [UInt8]) {
    bytes.append(kind | UInt8(min(count, 15)))
    if count >= 15 { append(integer: Int64(count), to: &bytes) }
  }

  private static func width(_ value: UInt64) -> Int {
    switch value {
    case 0...0xFF: 1
    case 0x100...0xFFFF: 2
    case 0x1_0000...0xFFFF_FFFF: 4
    default: 8
    }
  }

  private static func append(_ value: UInt64, _ size: Int, to bytes: inout [UInt8]) {
    for index in 0..<size { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * (size - 1 - index)))) }
  }
}

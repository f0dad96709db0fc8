import Foundation

/// Encodes the binary format: keys in order, equal values once, so that the same value gives the same bytes, and what a
/// file shares stays shared.
struct BinaryPropertyListWriter {
  private enum Object: Hashable {
    case leaf([UInt8])
    case array([Int])
    case dictionary(keys: [Int], values: [Int])

    func hash(into hasher: inout Hasher) {
      switch self {
      case .leaf(let bytes): bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
      case .array(let values): hasher.combine(values)
      case .dictionary(let keys, let values):
        hasher.combine(keys)
        hasher.combine(values)
      }
    }
  }

  private var objects: [Object] = []
  private var indexes: [Object: Int] = [:]

  /// The bytes of a whole file.
  static func write(_ value: PropertyListValue) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    let top = writer.add(value)
    return writer.file(of: writer.order(from: top))
  }

  /// The objects as Apple's systems write them, a container before what is in it: what is equal is known only once all of it
  /// was added.
  private func order(from top: Int) -> [Object] {
    var numbers = [Int?](repeating: nil, count: objects.count)
    var order: [Int] = []
    func visit(_ index: Int) {
      guard numbers[index] == nil else { return }
      numbers[index] = order.count
      order.append(index)
      switch objects[index] {
      case .leaf: return
      case .array(let values): values.forEach(visit)
      case .dictionary(let keys, let values): (keys + values).forEach(visit)
      }
    }
    visit(top)
    let number = { (index: Int) in numbers[index] ?? 0 }
    return order.map { index in
      switch objects[index] {
      case .leaf: objects[index]
      case .array(let values): .array(values.map(number))
      case .dictionary(let keys, let values): .dictionary(keys: keys.map(number), values: values.map(number))
      }
    }
  }

  private mutating func add(_ value: PropertyListValue) -> Int {
    switch value {
    case .array(let values): return add(.array(values.map { add($0) }))
    case .dictionary(let values):
      let sorted = values.sorted()
      let keys = sorted.map { add(.string($0.key)) }
      return add(.dictionary(keys: keys, values: sorted.map { add($0.value) }))
    default: return add(.leaf(Self.leaf(value)))
    }
  }

  private mutating func add(_ object: Object) -> Int {
    if let known = indexes[object] { return known }
    indexes[object] = objects.count
    objects.append(object)
    return objects.count - 1
  }

  private func file(of objects: [Object]) -> [UInt8] {
    let referenceSize = Self.width(UInt64(objects.count))
    var bytes = BinaryPropertyList.magic
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      switch object {
      case .leaf(let leaf): bytes += leaf
      case .array(let references):
        bytes += Self.marker(0xA0, references.count)
        for reference in references { Self.append(UInt64(reference), referenceSize, to: &bytes) }
      case .dictionary(let keys, let values):
        bytes += Self.marker(0xD0, keys.count)
        for reference in keys + values { Self.append(UInt64(reference), referenceSize, to: &bytes) }
      }
    }
    let table = bytes.count
    let offsetSize = Self.width(UInt64(table))
    for offset in offsets { Self.append(UInt64(offset), offsetSize, to: &bytes) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    bytes += Self.bigEndian(UInt64(objects.count), 8) + Self.bigEndian(0, 8)
    return bytes + Self.bigEndian(UInt64(table), 8)
  }

  private static func leaf(_ value: PropertyListValue) -> [UInt8] {
    switch value {
    case .boolean(let value): return [value ? 0x09 : 0x08]
    case .integer(let value): return integer(value)
    case .unsigned(let value): return [0x14] + bigEndian(0, 8) + bigEndian(value, 8)
    case .real(let value): return [0x23] + bigEndian(value.bitPattern, 8)
    case .single(let value): return [0x22] + bigEndian(UInt64(value.bitPattern), 4)
    case .date(let date): return [0x33] + bigEndian(date.timeIntervalSinceReferenceDate.bitPattern, 8)
    case .data(let bytes): return marker(0x40, bytes.count) + bytes
    case .string(let text):
      if text.utf8.allSatisfy({ $0 < 0x80 }) { return marker(0x50, text.utf8.count) + Array(text.utf8) }
      return marker(0x60, text.utf16.count) + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    case .unknown(let opaque):
      if opaque.marker == 0x60 { return marker(0x60, opaque.payload.count / 2) + opaque.payload }
      return [opaque.marker] + opaque.payload
    case .array, .dictionary: return []
    }
  }

  /// One, two and four bytes are unsigned in this format, eight are signed.
  private static func integer(_ value: Int64) -> [UInt8] {
    switch value {
    case 0...0xFF: [0x10, UInt8(value)]
    case 0x100...0xFFFF: [0x11] + bigEndian(UInt64(value), 2)
    case 0x1_0000...0xFFFF_FFFF: [0x12] + bigEndian(UInt64(value), 4)
    default: [0x13] + bigEndian(UInt64(bitPattern: value), 8)
    }
  }

  private static func marker(_ kind: UInt8, _ count: Int) -> [UInt8] {
    count < 15 ? [kind | UInt8(count)] : [kind | 0x0F] + integer(Int64(count))
  }

  private static func width(_ value: UInt64) -> Int {
    switch value {
    case 0...0xFF: 1
    case 0x100...0xFFFF: 2
    case 0x1_0000...0xFFFF_FFFF: 4
    default: 8
    }
  }

  private static func bigEndian(_ value: UInt64, _ size: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    append(value, size, to: &bytes)
    return bytes
  }

  private static func append(_ value: UInt64, _ size: Int, to bytes: inout [UInt8]) {
    for index in 0..<size { bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * (size - 1 - index)))) }
  }
}

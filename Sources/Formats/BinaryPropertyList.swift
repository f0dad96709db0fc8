import DrydockErrors
import Foundation

/// Decodes the binary property list format without trusting any number in it. Not Foundation's implementation: its reader
/// crashes on corrupt files (a flipped byte that makes a set, or a key of the wrong kind), and its writer orders keys
/// differently in every process, so that the same settings would give different bytes and another snapshot id.
struct BinaryPropertyListReader {
  static let magic = Array("bplist00".utf8)
  private static let trailerLength = 32
  /// The most bytes that a file may expand to where values are shared: as many as it could have as XML, which shares none.
  private static let expandedLimit = 16 << 20
  /// The bytes of a value besides its content.
  private static let weight = 16

  private let bytes: [UInt8]
  private let objectCount: Int
  private let referenceSize: Int
  private let offsetSize: Int
  private let tableStart: Int
  private var decoded: [MeasuredValue] = []
  /// The index of each object in `decoded`; -1 before it is read.
  private var known: [Int32]

  private let weightLimit: Int

  /// The top object of a file.
  static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
    var reader = try BinaryPropertyListReader(bytes)
    let top = try reader.number(at: bytes.count - 16, size: 8)
    return try reader.object(top, depth: 0).value
  }

  private init(_ bytes: [UInt8]) throws {
    let trailer = bytes.count - Self.trailerLength
    guard trailer > Self.magic.count else { throw Self.damaged("too short") }
    self.bytes = bytes
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    let count = Self.bigEndian(bytes[(trailer + 8)..<(trailer + 16)])
    let table = Self.bigEndian(bytes[(trailer + 24)..<(trailer + 32)])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), count > 0,
      count <= UInt64(trailer), count < UInt64(Int32.max), table >= 8, table < UInt64(trailer),
      Int(count) * offsetSize <= trailer - Int(table)
    else { throw Self.damaged("invalid trailer") }
    // A list of many small values has one or two bytes for each.
    weightLimit = max(Self.expandedLimit, 24 * bytes.count)
    objectCount = Int(count)
    known = Array(repeating: -1, count: Int(count))
    tableStart = Int(table)
  }

  private static func bigEndian(_ slice: ArraySlice<UInt8>) -> UInt64 {
    slice.reduce(0) { $0 << 8 | UInt64($1) }
  }

  private func slice(_ start: Int, _ count: Int) throws -> ArraySlice<UInt8> {
    guard count >= 0, start >= 0, start <= tableStart, count <= tableStart - start else {
      throw Self.damaged("an object reaches beyond the file")
    }
    return bytes[start..<start + count]
  }

  /// An unsigned number; the caller has checked the range.
  private func number(at start: Int, size: Int) throws -> Int {
    guard let value = Int(exactly: Self.bigEndian(bytes[start..<start + size])) else {
      throw Self.damaged("a number is out of range")
    }
    return value
  }

  private mutating func object(_ index: Int, depth: Int) throws -> MeasuredValue {
    guard index < objectCount else { throw Self.damaged("a reference to a missing object") }
    let known = known[index] < 0 ? nil : decoded[Int(known[index])]
    // This also ends an object that contains itself, and catches one that was read before at a smaller depth.
    guard depth + (known?.height ?? 0) <= PropertyListValue.depthLimit else {
      throw Self.damaged("nested too deeply")
    }
    if let known { return known }
    let start = try number(at: tableStart + index * offsetSize, size: offsetSize)
    guard start >= 8, let marker = try slice(start, 1).first else {
      throw Self.damaged("an object reaches beyond the file")
    }
    let result =
      marker & 0xF0 == 0xA0 || marker & 0xF0 == 0xD0
      ? try container(marker, start + 1, depth: depth) : try leaf(marker, start + 1)
    self.known[index] = Int32(decoded.count)
    decoded.append(result)
    return result
  }

  private func leaf(_ marker: UInt8, _ start: Int) throws -> MeasuredValue {
    let value = try simple(marker, start)
    return switch value {
    case .string(let text): MeasuredValue(value: value, weight: Self.weight + text.utf8.count)
    case .data(let bytes): MeasuredValue(value: value, weight: Self.weight + bytes.count)
    default: MeasuredValue(value: value, weight: Self.weight)
    }
  }

  private func simple(_ marker: UInt8, _ start: Int) throws -> PropertyListValue {
    switch marker {
    case 0x08: return .boolean(false)
    case 0x09: return .boolean(true)
    case 0x00, 0x0F: return .unknown(PropertyListValue.Opaque(marker: marker, payload: []))
    case 0x10, 0x11, 0x12: return .integer(Int64(Self.bigEndian(try slice(start, 1 << Int(marker & 0x0F)))))
    case 0x13: return .integer(Int64(bitPattern: Self.bigEndian(try slice(start, 8))))
    case 0x14: return wide(try slice(start, 16))
    case 0x22: return .single(Float(bitPattern: UInt32(Self.bigEndian(try slice(start, 4)))))
    case 0x23: return .real(Double(bitPattern: Self.bigEndian(try slice(start, 8))))
    case 0x33:
      let seconds = Double(bitPattern: Self.bigEndian(try slice(start, 8)))
      return .date(.init(timeIntervalSinceReferenceDate: seconds))
    case 0x40...0x4F:
      let (count, begin) = try count(marker, start)
      return .data(Array(try slice(begin, count)))
    case 0x50...0x6F: return try text(marker, start)
    case 0x80...0x8F:
      let payload = try slice(start, Int(marker & 0x0F) + 1)
      return .unknown(PropertyListValue.Opaque(marker: marker, payload: Array(payload)))
    default: throw Self.damaged("an object of unknown kind \(marker)")
    }
  }

  /// An integer of 128 bits: a number if it fits 64 bits, else preserved.
  private func wide(_ payload: ArraySlice<UInt8>) -> PropertyListValue {
    let low = Self.bigEndian(payload.suffix(8))
    guard payload.prefix(8).allSatisfy({ $0 == 0 }) else {
      return .unknown(PropertyListValue.Opaque(marker: 0x14, payload: Array(payload)))
    }
    return Int64(exactly: low).map { .integer($0) } ?? .unsigned(low)
  }

  private func text(_ marker: UInt8, _ start: Int) throws -> PropertyListValue {
    let (count, begin) = try count(marker, start)
    if marker & 0xF0 == 0x50 {
      let payload = try slice(begin, count)
      guard payload.allSatisfy({ $0 < 0x80 }) else {
        throw Self.damaged("text that is not ASCII")
      }
      return .string(String(decoding: payload, as: UTF8.self))
    }
    guard count <= bytes.count else { throw Self.damaged("an object reaches beyond the file") }
    let payload = try slice(begin, count * 2)
    var units: [UInt16] = []
    units.reserveCapacity(count)
    for index in stride(from: payload.startIndex, to: payload.endIndex, by: 2) {
      units.append(UInt16(payload[index]) << 8 | UInt16(payload[index + 1]))
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      // A lone surrogate cannot be in a Swift string, and must not be lost.
      return .unknown(PropertyListValue.Opaque(marker: 0x60, payload: Array(payload)))
    }
    return .string(text)
  }

  private mutating func container(
    _ marker: UInt8, _ start: Int, depth: Int
  ) throws -> MeasuredValue {
    let (count, begin) = try count(marker, start)
    guard count <= bytes.count else { throw Self.damaged("an object reaches beyond the file") }
    let isDictionary = marker & 0xF0 == 0xD0
    _ = try slice(begin, count * referenceSize * (isDictionary ? 2 : 1))
    var result = MeasuredValue(value: .boolean(false), weight: Self.weight)
    func reference(_ index: Int) throws -> Int {
      try number(at: begin + index * referenceSize, size: referenceSize)
    }
    if !isDictionary {
      var values: [PropertyListValue] = []
      values.reserveCapacity(count)
      for index in 0..<count {
        values.append(try element(try reference(index), of: &result, depth: depth))
      }
      result.value = .array(values)
      return result
    }
    var values = PropertyListDictionary()
    values.reserveCapacity(count)
    for index in 0..<count {
      guard case .string(let key) = try element(try reference(index), of: &result, depth: depth) else {
        throw Self.damaged("a key that is not text")
      }
      let value = try element(try reference(count + index), of: &result, depth: depth)
      // The key may be a secret.
      guard values.updateValue(value, forKey: key) == nil else {
        throw Self.damaged("a dictionary has a key twice")
      }
    }
    result.value = .dictionary(values)
    return result
  }

  /// Reads a value of a container and counts its bytes.
  private mutating func element(
    _ index: Int, of container: inout MeasuredValue, depth: Int
  ) throws -> PropertyListValue {
    let element = try object(index, depth: depth + 1)
    container.count(element)
    guard container.weight <= weightLimit else {
      throw Self.damaged(
        "the values that it shares expand to more than \(weightLimit >> 20) MiB")
    }
    return element.value
  }

  /// The count of an object, from its marker or the integer after it, and the start of its content.
  private func count(_ marker: UInt8, _ start: Int) throws -> (count: Int, begin: Int) {
    guard marker & 0x0F == 0x0F else { return (Int(marker & 0x0F), start) }
    guard let kind = try slice(start, 1).first, (0x10...0x13).contains(kind) else {
      throw Self.damaged("a count that is not an integer")
    }
    let size = 1 << Int(kind & 0x0F)
    _ = try slice(start + 1, size)
    return (try number(at: start + 1, size: size), start + 1 + size)
  }

  private static func damaged(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the binary property list is corrupt: \(what)")
  }
}

/// Encodes the format deterministically: keys in order, equal values once.
///
/// All objects are in one buffer, since settings may have half a million of them.
struct BinaryPropertyListWriter {
  /// Leaves as in the file; containers as their marker and the numbers of their elements, 4 bytes each.
  private var objects: [UInt8] = []
  /// The start of each object, and of the next one.
  private var starts = [0]
  private var hashes: [Int] = []
  /// The numbers of the objects by hash, -1 for none: a table with open addressing, at most half full.
  private var slots = [Int32](repeating: -1, count: 64)

  private static let (array, dictionary): (UInt8, UInt8) = (0xA0, 0xD0)

  static func write(_ value: PropertyListValue) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    let top = writer.add(value)
    return writer.file(top)
  }

  // MARK: Adding

  private mutating func add(_ value: PropertyListValue) -> Int32 {
    switch value {
    case .array(let values): return add(Self.array, values.map { add($0) })
    case .set(let values): return add(Self.array, values.strings.map { add(.string($0)) })
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

  /// The number of the object just appended: a new one, or that of an equal object, whose copy is removed.
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

  /// The numbers of an object's elements; none for a leaf.
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

  /// The order in which Apple's systems write objects, a container before its elements.
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
    var bytes = BinaryPropertyListReader.magic
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
    case .integer(let value), .long(let value): append(integer: value, to: &bytes)
    case .int(let value): append(integer: Int64(value), to: &bytes)
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
    case .array, .dictionary, .set: return
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

import DrydockErrors

/// What reader and writer of the binary format share. Why not Foundation's: its reader crashes on damaged files
/// (a flipped byte that makes a set or a key of the wrong kind), and its writer orders keys anew in every
/// process, so that the same settings would give other bytes and another snapshot id.
package enum BinaryPropertyList {
  package static let magic = Array("bplist00".utf8)
  static let trailerLength = 32

  static func damaged(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the binary property list is damaged or cut: \(what)")
  }
}

/// Decodes the binary format without trusting any number in it.
package struct BinaryPropertyListReader {
  /// Deeper nesting is not written by anybody, and would exhaust the stack.
  private static let depthLimit = 200
  /// How many bytes a file may expand to where values are shared: as many as it could have as XML, which shares none.
  private static let expandedLimit = 16 << 20
  /// What a value takes beside its content.
  private static let weight = 16

  private let bytes: [UInt8]
  private let objectCount: Int
  private let referenceSize: Int
  private let offsetSize: Int
  private let tableStart: Int
  private var decoded: [Decoded] = []
  /// Where each object is in it; -1 for one that was not read yet.
  private var known: [Int32]

  private let weightLimit: Int

  /// A value, with the bytes that it expands to, and the levels of nesting in it.
  private struct Decoded {
    var value: PropertyListValue
    var weight: Int
    var height = 0
  }

  /// The top object of a file.
  package static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
    var reader = try BinaryPropertyListReader(bytes)
    let top = try reader.number(at: bytes.count - 16, size: 8)
    return try reader.object(top, depth: 0).value
  }

  private init(_ bytes: [UInt8]) throws {
    let trailer = bytes.count - BinaryPropertyList.trailerLength
    guard trailer > BinaryPropertyList.magic.count else { throw BinaryPropertyList.damaged("too short") }
    self.bytes = bytes
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    let count = Self.bigEndian(bytes[(trailer + 8)..<(trailer + 16)])
    let table = Self.bigEndian(bytes[(trailer + 24)..<(trailer + 32)])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), count > 0,
      count <= UInt64(trailer), count < UInt64(Int32.max), table >= 8, table < UInt64(trailer),
      Int(count) * offsetSize <= trailer - Int(table)
    else { throw BinaryPropertyList.damaged("its trailer makes no sense") }
    // A list of many small values has a byte or two for each.
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
      throw BinaryPropertyList.damaged("an object reaches beyond the file")
    }
    return bytes[start..<start + count]
  }

  /// An unsigned number anywhere in the file (the caller has checked the range).
  private func number(at start: Int, size: Int) throws -> Int {
    guard let value = Int(exactly: Self.bigEndian(bytes[start..<start + size])) else {
      throw BinaryPropertyList.damaged("a number is out of range")
    }
    return value
  }

  private mutating func object(_ index: Int, depth: Int) throws -> Decoded {
    guard index < objectCount else { throw BinaryPropertyList.damaged("a reference to no object") }
    let known = known[index] < 0 ? nil : decoded[Int(known[index])]
    // An object that holds itself ends here, too; so does one that was read before it is put deeper.
    guard depth + (known?.height ?? 0) <= Self.depthLimit else {
      throw BinaryPropertyList.damaged("nested too deeply")
    }
    if let known { return known }
    let start = try number(at: tableStart + index * offsetSize, size: offsetSize)
    guard start >= 8, let marker = try slice(start, 1).first else {
      throw BinaryPropertyList.damaged("an object reaches beyond the file")
    }
    let result =
      marker & 0xF0 == 0xA0 || marker & 0xF0 == 0xD0
      ? try container(marker, start + 1, depth: depth) : try leaf(marker, start + 1)
    self.known[index] = Int32(decoded.count)
    decoded.append(result)
    return result
  }

  private func leaf(_ marker: UInt8, _ start: Int) throws -> Decoded {
    let value = try simple(marker, start)
    return switch value {
    case .string(let text): Decoded(value: value, weight: Self.weight + text.utf8.count)
    case .data(let bytes): Decoded(value: value, weight: Self.weight + bytes.count)
    default: Decoded(value: value, weight: Self.weight)
    }
  }

  private func simple(_ marker: UInt8, _ start: Int) throws -> PropertyListValue {
    switch marker {
    case 0x08: return .boolean(false)
    case 0x09: return .boolean(true)
    case 0x00, 0x0F: return .unknown(PropertyListOpaque(marker: marker, payload: []))
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
      return .unknown(PropertyListOpaque(marker: marker, payload: Array(payload)))
    default: throw BinaryPropertyList.damaged("an object of the unknown kind \(marker)")
    }
  }

  /// 128 bits: what fits 64 is a number, the rest passes through.
  private func wide(_ payload: ArraySlice<UInt8>) -> PropertyListValue {
    let low = Self.bigEndian(payload.suffix(8))
    guard payload.prefix(8).allSatisfy({ $0 == 0 }) else {
      return .unknown(PropertyListOpaque(marker: 0x14, payload: Array(payload)))
    }
    return Int64(exactly: low).map { .integer($0) } ?? .unsigned(low)
  }

  private func text(_ marker: UInt8, _ start: Int) throws -> PropertyListValue {
    let (count, begin) = try count(marker, start)
    if marker & 0xF0 == 0x50 {
      let payload = try slice(begin, count)
      guard payload.allSatisfy({ $0 < 0x80 }) else {
        throw BinaryPropertyList.damaged("text that is not ASCII")
      }
      return .string(String(decoding: payload, as: UTF8.self))
    }
    guard count <= bytes.count else { throw BinaryPropertyList.damaged("an object reaches beyond the file") }
    let payload = try slice(begin, count * 2)
    var units: [UInt16] = []
    units.reserveCapacity(count)
    for index in stride(from: payload.startIndex, to: payload.endIndex, by: 2) {
      units.append(UInt16(payload[index]) << 8 | UInt16(payload[index + 1]))
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      // Half a surrogate pair cannot be a Swift string; it must not be lost either.
      return .unknown(PropertyListOpaque(marker: 0x60, payload: Array(payload)))
    }
    return .string(text)
  }

  private mutating func container(
    _ marker: UInt8, _ start: Int, depth: Int
  ) throws -> Decoded {
    let (count, begin) = try count(marker, start)
    guard count <= bytes.count else { throw BinaryPropertyList.damaged("an object reaches beyond the file") }
    let isDictionary = marker & 0xF0 == 0xD0
    _ = try slice(begin, count * referenceSize * (isDictionary ? 2 : 1))
    var result = Decoded(value: .boolean(false), weight: Self.weight)
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
        throw BinaryPropertyList.damaged("a key that is not text")
      }
      let value = try element(try reference(count + index), of: &result, depth: depth)
      // What it is may be a secret.
      guard values.updateValue(value, forKey: key) == nil else {
        throw BinaryPropertyList.damaged("a dictionary has a key twice")
      }
    }
    result.value = .dictionary(values)
    return result
  }

  /// A value of a container, whose bytes it counts.
  private mutating func element(
    _ index: Int, of container: inout Decoded, depth: Int
  ) throws -> PropertyListValue {
    let element = try object(index, depth: depth + 1)
    container.weight += element.weight
    container.height = max(container.height, element.height + 1)
    guard container.weight <= weightLimit else {
      throw BinaryPropertyList.damaged(
        "the values that it shares expand to more than \(weightLimit >> 20) MiB")
    }
    return element.value
  }

  /// The count of an object and where its content starts: in the marker, or in the integer after it.
  private func count(_ marker: UInt8, _ start: Int) throws -> (count: Int, begin: Int) {
    guard marker & 0x0F == 0x0F else { return (Int(marker & 0x0F), start) }
    guard let kind = try slice(start, 1).first, (0x10...0x13).contains(kind) else {
      throw BinaryPropertyList.damaged("a count that is not an integer")
    }
    let size = 1 << Int(kind & 0x0F)
    _ = try slice(start + 1, size)
    return (try number(at: start + 1, size: size), start + 1 + size)
  }
}

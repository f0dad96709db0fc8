/// Whole messages in memory. Files of any size go through `AgeWriter` and `AgeReader`.
package enum Age {
  /// Encrypts bytes: a binary age file.
  ///
  /// - Throws: `DrydockError`.
  package static func seal(_ plain: UnsafeRawBufferPointer, to lock: AgeLock) throws -> [UInt8] {
    var file: [UInt8] = []
    file.reserveCapacity(plain.count + plain.count / 4096 + 4096)
    try withoutActuallyEscaping({ file.append(contentsOf: $0) }) { sink in
      let writer = try AgeWriter(to: lock, sink: sink)
      try writer.write(plain)
      try writer.finish()
    }
    return file
  }

  /// Encrypts secret bytes: a binary age file.
  ///
  /// - Throws: `DrydockError`.
  package static func seal(_ plain: SecretBytes, to lock: AgeLock) throws -> [UInt8] {
    try plain.withBytes { try seal($0, to: lock) }
  }

  /// Decrypts an age file, binary or armored: all of it or nothing.
  ///
  /// - Throws: `DrydockError`.
  package static func open(_ file: [UInt8], with keys: AgeKeys) throws -> SecretBytes {
    let file = try withoutArmor(file)
    let reader = try AgeReader(size: UInt64(file.count), keys: keys) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
    return try SecretBytes(count: Int(reader.plainSize)) { try reader.read(into: $0, at: 0) }
  }

  /// The header of an age file, binary or armored: how it is encrypted, which needs no key.
  ///
  /// - Throws: `DrydockError` (`.header`, `.armor`).
  package static func header(of file: [UInt8]) throws -> AgeHeader {
    let file = try withoutArmor(file)
    return try AgeHeader.read(size: UInt64(file.count)) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
  }

  private static func withoutArmor(_ file: [UInt8]) throws -> [UInt8] {
    var position = 0
    let source = BufferedSource { target in
      let part = file[position...].prefix(target.count)
      target.copyBytes(from: part)
      position += part.count
      return part.count
    }
    guard try ArmorReader.isPresent(source) else { return file }
    let armor = ArmorReader(source)
    var binary: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = try piece.withUnsafeMutableBytes({ try armor.read(into: $0) }), count > 0 {
      binary += piece[..<count]
    }
    return binary
  }
}

import CPlatform
import DrydockErrors

/// One extended attribute: its name with the namespace (`user.` on Linux) and its value.
package struct ExtendedAttribute: Hashable, Sendable, Codable {
  /// The name, such as `user.com.apple.metadata:com_apple_backup_excludeItem`.
  package var name: String
  /// The value's bytes.
  package var value: [UInt8]

  /// An attribute from its parts.
  package init(name: String, value: [UInt8]) {
    self.name = name
    self.value = value
  }

  /// Compares bytes: two spellings of one text in Unicode are two names to a file system.
  package static func == (left: Self, right: Self) -> Bool {
    left.name.utf8.elementsEqual(right.name.utf8) && left.value == right.value
  }
}

extension Directory {
  /// All extended attributes of a path below, sorted by name, of a link itself when it is one.
  ///
  /// A file system without attributes, and a link on Linux (which cannot have `user.` ones), give none.
  package func attributes(_ below: ContainerPath) throws -> [ExtendedAttribute] {
    try withParent(of: below) { parent, name in
      try attributeNames(parent, name, below).sorted().compactMap { attribute in
        try attributeValue(parent, name, attribute, below).map {
          ExtendedAttribute(name: attribute, value: $0)
        }
      }
    }
  }

  /// The names of the extended attributes of a path below, in no order; one call for most paths.
  package func attributeNames(of below: ContainerPath) throws -> [String] {
    try withParent(of: below) { try attributeNames($0, $1, below) }
  }

  /// One extended attribute's value, nil when it is not set.
  package func attribute(_ attribute: String, of below: ContainerPath) throws -> [UInt8]? {
    try withParent(of: below) { try attributeValue($0, $1, attribute, below) }
  }

  /// Sets an extended attribute.
  package func setAttribute(_ attribute: ExtendedAttribute, of below: ContainerPath) throws {
    let result = try withParent(of: below) { parent, name in
      attribute.value.withUnsafeBytes {
        platform_set_attribute(parent, name, attribute.name, $0.baseAddress, $0.count)
      }
    }
    guard result == 0 else {
      throw DrydockError.lastCall("cannot set the extended attribute \(attribute.name)", full(below))
    }
  }

  /// Removes an extended attribute; one that is not set is no error.
  package func removeAttribute(_ attribute: String, of below: ContainerPath) throws {
    let result = try withParent(of: below) { platform_remove_attribute($0, $1, attribute) }
    guard result == 0 || currentErrno() == .noData || currentErrno() == .attributeNotFound else {
      throw DrydockError.lastCall("cannot remove the extended attribute \(attribute)", full(below))
    }
  }

  private func attributeNames(
    _ parent: Int32, _ name: UnsafePointer<CChar>, _ path: ContainerPath
  ) throws -> [String] {
    // Most lists are empty or small: one call; a larger one says so with ERANGE, and may grow between two calls.
    var capacity = 1024
    while true {
      let names = withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { list -> [String]? in
        let filled = platform_list_attributes(parent, name, list.baseAddress, list.count)
        guard filled >= 0 else { return nil }
        return list.prefix(filled).split(separator: 0).map {
          String(decoding: $0.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
      }
      if let names { return names }
      guard currentErrno() == .outOfRange else { break }
      let needed = platform_list_attributes(parent, name, nil, 0)
      guard needed >= 0 else { break }
      capacity = max(needed, 1)
    }
    if currentErrno().meansNoAttributes { return [] }
    throw DrydockError.lastCall("cannot list the extended attributes", full(path))
  }

  private func attributeValue(
    _ parent: Int32, _ name: UnsafePointer<CChar>, _ attribute: String, _ path: ContainerPath
  ) throws -> [UInt8]? {
    // Most values are small: one call; a larger one says so with ERANGE.
    var value = [UInt8](repeating: 0, count: 256)
    while true {
      let size = platform_get_attribute(parent, name, attribute, &value, value.count)
      if size >= 0 { return Array(value.prefix(size)) }
      guard currentErrno() == .outOfRange else { break }
      let needed = platform_get_attribute(parent, name, attribute, nil, 0)
      guard needed >= 0 else { break }
      value = [UInt8](repeating: 0, count: max(needed, 1))
    }
    if currentErrno().meansNoAttributes { return nil }
    throw DrydockError.lastCall("cannot read the extended attribute \(attribute)", full(path))
  }
}

import AppStores
import Cryptography
import DrydockErrors
import Formats
import Foundation

/// The keychain items in an encrypted device backup (`keychain-backup.plist`).
///
/// Each item is sealed with a key of its own, with all its attributes: whose it is shows only when it is opened.
struct KeychainBackup {
  /// The items of the given access groups.
  var items: [VaultItem] = []
  /// Items of the whole device that nothing but it can open, and items that are damaged.
  var deviceOnly = 0, unreadable = 0

  static let path = "keychain-backup.plist"

  init(_ bytes: [UInt8], keys: [UInt32: SecretBytes], accepts: (_ accessGroup: String) -> Bool) throws {
    let root: PropertyListDictionary
    do {
      root = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .damaged, "the backup's keychain cannot be read (\(error.message)); use another copy of the backup")
    }
    for itemClass in VaultItem.Class.allCases {
      guard case .array(let list)? = root[itemClass.code] else { continue }
      for case .dictionary(let fields) in list {
        guard case .data(let blob)? = fields["v_Data"] else {
          unreadable += 1
          continue
        }
        switch try KeychainBlob(blob)?.open(keys) {
        case nil: unreadable += 1
        case .deviceOnly?: deviceOnly += 1
        case .attributes(let attributes)?:
          guard let group = attributes.text("agrp"), accepts(group) else { continue }
          // The mark of a deleted item that other devices still have to learn of.
          if [.integer(1), .boolean(true)].contains(attributes["tomb"]) { continue }
          guard let item = VaultItem(itemClass, keychain: attributes) else {
            unreadable += 1
            continue
          }
          items.append(item)
        }
      }
    }
  }
}

/// One sealed item: a version (u32, little-endian), the number of its class, the length of the wrapped key and the key, and
/// the attributes, in DER, sealed with AES-256-GCM.
private struct KeychainBlob {
  enum Opened {
    case attributes(PropertyListDictionary)
    /// Of a class that is not for other devices, or with an access control, which the device's hardware checks.
    case deviceOnly
  }

  /// The version of items without an access control; it is the only one that a password opens.
  private static let version: UInt32 = 3
  private static let accessControlVersion: UInt32 = 6
  private let isSupported: Bool
  private var classID: UInt32 = 0
  private var wrapped: [UInt8] = [], sealed: [UInt8] = []

  /// Nil for a damaged one.
  init?(_ bytes: [UInt8]) {
    func number(_ place: Int) -> UInt32 {
      bytes[place..<place + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
    guard bytes.count >= 12 else { return nil }
    isSupported = number(0) == Self.version
    guard isSupported else {
      if number(0) == Self.accessControlVersion { return }
      return nil
    }
    classID = number(4)
    let length = Int(number(8))
    guard length <= bytes.count - 12 else { return nil }
    wrapped = Array(bytes[12..<12 + length])
    sealed = Array(bytes[(12 + length)...])
  }

  /// Nil when it is damaged.
  func open(_ keys: [UInt32: SecretBytes]) throws -> Opened? {
    guard isSupported, let classKey = keys[classID] else { return .deviceOnly }
    guard let key = try classKey.unwrapKey(wrapped),
      let plain = try EmptyNonceGCM.open(sealed, key: key)
    else { return nil }
    return plain.withBytes { plain in
      guard case .dictionary(let values)? = DERValue.read(Array(plain)) else { return nil }
      return .attributes(values)
    }
  }
}

/// Property lists in DER, as Apple's keychain writes attributes: a dictionary is a SET of SEQUENCEs of a UTF8String and a
/// value.
enum DERValue {
  private static let depthLimit = 32

  /// Nil for anything else, or something behind it.
  static func read(_ bytes: [UInt8]) -> PropertyListValue? {
    var rest = bytes[...]
    guard let value = value(&rest, 0), rest.isEmpty else { return nil }
    return value
  }

  private static func element(_ bytes: inout ArraySlice<UInt8>) -> (tag: UInt8, content: ArraySlice<UInt8>)? {
    guard let tag = bytes.popFirst(), let first = bytes.popFirst() else { return nil }
    var length = Int(first)
    if first >= 0x80 {
      let count = Int(first & 0x7F)
      guard (1...4).contains(count), bytes.count >= count else { return nil }
      length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
      bytes = bytes.dropFirst(count)
    }
    guard length <= bytes.count else { return nil }
    defer { bytes = bytes.dropFirst(length) }
    return (tag, bytes.prefix(length))
  }

  private static func value(_ bytes: inout ArraySlice<UInt8>, _ depth: Int) -> PropertyListValue? {
    guard depth < depthLimit, let element = element(&bytes) else { return nil }
    var content = element.content
    switch element.tag {
    case 0x01: return content.count == 1 ? .boolean(content.first != 0) : nil
    case 0x02:
      guard (1...8).contains(content.count), let first = content.first else { return nil }
      let start: UInt64 = first >= 0x80 ? .max : 0
      return .integer(Int64(bitPattern: content.reduce(start) { $0 << 8 | UInt64($1) }))
    case 0x04: return .data(Array(content))
    case 0x05: return content.isEmpty ? .unknown(.null) : nil
    case 0x0C: return String(validating: content, as: UTF8.self).map { .string($0) }
    case 0x18: return time(content).map { .date($0) }
    case 0x30:
      var values: [PropertyListValue] = []
      while !content.isEmpty {
        guard let value = value(&content, depth + 1) else { return nil }
        values.append(value)
      }
      return .array(values)
    case 0x31:
      var values: PropertyListDictionary = [:]
      while !content.isEmpty {
        guard let pair = Self.element(&content), pair.tag == 0x30 else { return nil }
        var rest = pair.content
        guard case .string(let key)? = value(&rest, depth + 1), let own = value(&rest, depth + 1),
          rest.isEmpty,
          values.updateValue(own, forKey: key) == nil
        else { return nil }
      }
      return .dictionary(values)
    default: return nil
    }
  }

  /// GeneralizedTime: `20261120101500Z`, also with a fraction of a second.
  private static func time(_ bytes: ArraySlice<UInt8>) -> Date? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard
      let match = text.wholeMatch(
        of: /([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})(\.[0-9]{1,9})?Z/)
    else { return nil }
    let (_, year, month, day, hour, minute, second, fraction) = match.output
    return try? Date(
      "\(year)-\(month)-\(day)T\(hour):\(minute):\(second)Z", strategy: .iso8601
    ).addingTimeInterval(fraction.flatMap { Double("0" + $0) } ?? 0)
  }
}

extension VaultItem {
  /// The keychain's codes of the attributes that a vault has.
  private static let codes: [(code: String, attribute: VaultItem.Attribute)] = [
    ("svce", .service), ("acct", .account), ("agrp", .accessGroup), ("labl", .label), ("desc", .description),
    ("icmt", .comment), ("srvr", .server), ("sdmn", .securityDomain), ("ptcl", .protocol),
    ("atyp", .authenticationType), ("port", .port), ("path", .path), ("issr", .issuer),
    ("slnr", .serialNumber),
    ("ctyp", .certificateType), ("klbl", .applicationLabel), ("atag", .applicationTag), ("kcls", .keyClass),
    ("bsiz", .keySize),
  ]
  /// What only the keychain of a device uses.
  private static let own: Set<String> = [
    "v_Data", "pdmn", "sync", "cdat", "mdat", "tomb", "musr", "sha1", "persistref",
  ]

  /// An item from the attributes that a keychain has of it. Those without a place in a vault become unknown fields,
  /// `keychain_` and the code.
  ///
  /// Nil when its accessibility is unknown: it decides where the item may go.
  init?(_ itemClass: VaultItem.Class, keychain: PropertyListDictionary) {
    guard let accessibility = keychain.text("pdmn").flatMap({ Accessibility($0) }) else { return nil }
    var value: [UInt8] = []
    if case .data(let bytes)? = keychain["v_Data"] { value = bytes }
    self.init(itemClass, accessibility: accessibility, value: SecretBytes(wiping: &value))
    for (code, attribute) in Self.codes { self[attribute] = keychain[code].flatMap(Self.text) }
    if itemClass == .key { self[.keyType] = keychain["type"].flatMap(Self.text) }
    switch keychain["sync"] {
    case .integer(let number)?: isSynchronizable = number != 0
    case .boolean(let flag)?: isSynchronizable = flag
    default: break
    }
    if case .date(let date)? = keychain["cdat"] { created = UTCTime.text(date) }
    if case .date(let date)? = keychain["mdat"] { modified = UTCTime.text(date) }
    let known = Self.own.union(Self.codes.map(\.code)).union(itemClass == .key ? ["type"] : [])
    for (code, value) in keychain.sorted() where !known.contains(code) {
      guard let text = Self.text(value), !text.isEmpty else { continue }
      setUnknown("keychain_" + code, .string(JSONString(text)))
    }
  }

  /// Data that is text as text, other data in base64.
  private static func text(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): return text
    case .integer(let number): return String(number)
    case .boolean(let flag): return flag ? "1" : "0"
    case .date(let date): return UTCTime.text(date)
    case .data(let bytes):
      let text = String(validating: bytes, as: UTF8.self)
      guard let text, !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
        return Data(bytes).base64EncodedString()
      }
      return text
    default: return nil
    }
  }
}

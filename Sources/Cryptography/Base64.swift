import Foundation

/// Base64 with the standard alphabet, and one text only for the same bytes: without padding as in age headers, or with it.
package enum Base64 {
  package static func encode(_ bytes: [UInt8]) -> [UInt8] {
    Array(Data(bytes).base64EncodedString().utf8.prefix { $0 != UInt8(ascii: "=") })
  }

  /// The bytes; nil for another character, wrong padding, more than 64 KiB, an impossible length, or unused bits that are not zero.
  package static func decode(_ text: some Collection<UInt8>, isPadded: Bool = false) -> [UInt8]? {
    guard text.count <= 1 << 16 else { return nil }
    let padding = Data(repeating: UInt8(ascii: "="), count: isPadded ? 0 : (4 - text.count % 4) % 4)
    guard let data = Data(base64Encoded: Data(text) + padding) else { return nil }
    let bytes = [UInt8](data)
    return (isPadded ? Array(data.base64EncodedData()) : encode(bytes)).elementsEqual(text) ? bytes : nil
  }
}

/// One entry of an age header: the file key wrapped in one way, for one recipient.
struct Stanza: Sendable {
  /// How the key is wrapped: `X25519`, `scrypt`, or something that others understand.
  let type: String
  /// What follows the type on its line.
  let arguments: [String]
  /// The wrapped key.
  let body: [UInt8]

  /// The width at which the text of the body is wrapped.
  static let columns = 64
  static let prefix = Array("-> ".utf8)

  /// The lines of the stanza, with their line breaks. The last line of the body is always shorter than 64 columns,
  /// and is empty where nothing is left for it.
  var encoded: [UInt8] {
    var text = Self.prefix + Array(([type] + arguments).joined(separator: " ").utf8) + [UInt8(ascii: "\n")]
    var rest = Base64.encode(body)[...]
    while rest.count >= Self.columns {
      text += rest.prefix(Self.columns) + [UInt8(ascii: "\n")]
      rest = rest.dropFirst(Self.columns)
    }
    return text + rest + [UInt8(ascii: "\n")]
  }
}

/// What the name of a file or directory says: `0001_name` is number 1, called `name`.
struct MigrationName {
  let number: Int
  let name: String

  /// One to nine digits, an underscore, and letters, digits, `_` or `-`; nil for anything else.
  init?(_ text: some StringProtocol) {
    guard let bar = text.firstIndex(of: "_"), text[..<bar].utf8.count <= 9,
      text[..<bar].allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(text[..<bar]), number > 0
    else { return nil }
    let name = String(text[text.index(after: bar)...])
    guard Self.isName(name) else { return nil }
    (self.number, self.name) = (number, name)
  }

  /// Whether a text can be the part after the number.
  static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
  }
}

/// XML and HTML, as far as a value has a name beside it: `<string name="k">v</string>`, `<int name="k" value="v"/>`,
/// `<k>v</k>`, and `<key>k</key><string>v</string>` of a property list.
enum Markup {
  /// The values with their names, in order.
  static func values(in text: String) -> [(name: String, range: Range<String.Index>)] {
    var found: [(name: String, range: Range<String.Index>)] = []
    var key: String?
    for match in text.matches(of: #/<(?<tag>[A-Za-z][\w.:\-]*)(?<attributes>[^<>]*)>(?<content>[^<>]*)/#) {
      let attributes = match.attributes.matches(
        of: #/(?<name>[\w.:\-]+)\s*=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)')/#)
      let named = attributes.first { ["name", "key"].contains($0.name.lowercased()) }
      let called = named.flatMap { $0.double ?? $0.single }.map { unescaped($0) }
      let name = called ?? key ?? String(match.tag)
      for attribute in attributes where attribute.range != named?.range {
        guard let value = attribute.double ?? attribute.single else { continue }
        let isValue = attribute.name.lowercased() == "value"
        found.append((isValue ? name : String(attribute.name), value.startIndex..<value.endIndex))
      }
      if match.tag == "key" {
        key = unescaped(match.content)
      } else if match.content.contains(where: { !$0.isWhitespace }) {
        found.append((name, match.content.startIndex..<match.content.endIndex))
        key = nil
      }
    }
    return found
  }

  static func escaped(_ text: String) -> String {
    [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&apos;")]
      .reduce(text) { $0.replacing($1.0, with: $1.1) }
  }

  static func unescaped(_ text: Substring) -> String {
    Unescaped.meaning(of: String(text), .markup) ?? String(text)
  }
}

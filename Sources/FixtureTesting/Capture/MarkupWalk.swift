import AppContainer
import Foundation

/// Takes XML and HTML apart, as far as it has names beside values: `<string name="k">v</string>`, `<int name="k" value="v"/>`,
/// `<k>v</k>`, and the pair of a property list. What is between, such as remarks, is looked at as text.
enum MarkupWalk {
  static func text<Visitor: LeafVisitor>(
    _ text: String, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int
  ) throws -> String {
    var result = ""
    var end = text.startIndex
    // Of a property list: the key stands before its value.
    var key: String?
    func take(_ range: Range<String.Index>, _ name: String) throws {
      let old = String(text[range])
      let new = try value(old, name, place, &visitor, depth: depth)
      result += try visitor.text(String(text[end..<range.lowerBound]), place) + new
      end = range.upperBound
    }
    for match in text.matches(of: #/<(?<tag>[A-Za-z][\w.:\-]*)(?<attributes>[^<>]*)>(?<content>[^<>]*)/#) {
      let attributes = match.attributes.matches(
        of: #/(?<name>[\w.:\-]+)\s*=\s*(?:"(?<double>[^"]*)"|'(?<single>[^']*)')/#)
      let named = attributes.first { ["name", "key"].contains($0.name.lowercased()) }
      let called = named.flatMap { $0.double ?? $0.single }.map { unescaped(String($0)) }
      let name = called ?? key ?? String(match.tag)
      for attribute in attributes where attribute.range != named?.range {
        guard let value = attribute.double ?? attribute.single else { continue }
        let isValue = attribute.name.lowercased() == "value"
        try take(value.startIndex..<value.endIndex, isValue ? name : String(attribute.name))
      }
      let content = match.content
      if match.tag == "key" {
        key = unescaped(String(content))
      } else if content.contains(where: { !$0.isWhitespace }) {
        try take(content.startIndex..<content.endIndex, name)
        key = nil
      }
    }
    return result + (try visitor.text(String(text[end...]), place))
  }

  private static func value<Visitor: LeafVisitor>(
    _ source: String, _ name: String, _ place: LeafPlace, _ visitor: inout Visitor, depth: Int
  ) throws -> String {
    let old = unescaped(source)
    let names = SecretFields([name: .string(old)], inside: place.name)
    let new = try ValueWalk.text(
      old, visitor.place(of: name, names[name], in: place), &visitor, depth: depth + 1)
    return old == new ? source : escaped(new)
  }

  private static let entities = [
    ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"),
  ]

  private static func unescaped(_ text: String) -> String {
    guard text.contains("&") else { return text }
    let numbered = text.replacing(#/&#(?:x(?<hex>[0-9A-Fa-f]{1,6})|(?<number>[0-9]{1,7}));/#) { match in
      let number = match.hex.flatMap { UInt32($0, radix: 16) } ?? match.number.flatMap { UInt32($0) }
      return number.flatMap(Unicode.Scalar.init).map(String.init) ?? String(match.0)
    }
    return entities.reduce(numbered) { $0.replacing($1.0, with: $1.1) }.replacing("&amp;", with: "&")
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;").replacing("'", with: "&apos;")
  }
}

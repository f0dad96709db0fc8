import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// An XML document of an S3 server: elements with text or other elements. Attributes are not used.
struct S3Document {
  var name: String
  var text = ""
  var children: [S3Document] = []

  /// The first child of that name.
  subscript(_ name: String) -> S3Document? { children.first { $0.name == name } }

  /// The children of that name.
  func all(_ name: String) -> [S3Document] { children.filter { $0.name == name } }

  /// The document; nil when it is not well-formed, nested too deeply, or has a document type: entities can read files and
  /// expand without limit.
  static func read(_ bytes: [UInt8]) -> S3Document? {
    guard bytes.firstRange(of: Array("<!DOCTYPE".utf8)) == nil, !bytes.contains(0) else { return nil }
    let reader = S3DocumentReader()
    let parser = XMLParser(data: Data(bytes))
    parser.shouldResolveExternalEntities = false
    parser.delegate = reader
    return parser.parse() ? reader.root : nil
  }
}

private final class S3DocumentReader: NSObject, XMLParserDelegate {
  private var open: [S3Document] = []
  private(set) var root: S3Document?
  private static let depthLimit = 16

  func parser(
    _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
    attributes: [String: String] = [:]
  ) {
    guard open.count < Self.depthLimit else { return parser.abortParsing() }
    open.append(S3Document(name: name))
  }

  func parser(_ parser: XMLParser, foundCharacters text: String) {
    if !open.isEmpty { open[open.count - 1].text += text }
  }

  func parser(
    _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
  ) {
    guard let closed = open.popLast() else { return }
    if open.isEmpty { root = closed } else { open[open.count - 1].children.append(closed) }
  }
}

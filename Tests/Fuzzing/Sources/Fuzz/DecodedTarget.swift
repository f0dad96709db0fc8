@testable import AppStores
@testable import ContainerDiff
@testable import Formats

extension FuzzTarget {
  /// What is decoded must be short when it is shown, and differ in nothing from itself.
  func decode(_ bytes: [UInt8]) {
    guard let document = DecodedDocument(bytes: bytes) else { return }
    let redactor = Redactor()
    let shown = redactor.shown(document, named: .plain)
    guard shown.count < 400 else { fatalError("what is shown is long") }
    _ = redactor.shownDecoded(.data(bytes), named: .suspicious)
    guard redactor.difference(from: document, to: document, named: .plain) == nil else {
      fatalError("a document differs from itself")
    }
    if let other = DecodedDocument(bytes: Array("{\"a\": [1]}".utf8)) {
      let difference = redactor.difference(from: document, to: other, named: .plain)
      guard difference?.fields.count ?? 0 <= ContainerDifference.DocumentFields.limit else {
        fatalError("too many fields")
      }
    }
  }
}

import AppStores
import AppContainer
import Formats

extension ContainerDifference.DocumentFields {
  /// The most fields that are listed.
  package static let limit = 20
}

extension Redactor {
  /// The most characters of a field of a document, and of its key.
  private static let fieldLength = 120, keyLength = 60

  /// What differs between two values that both hold a document; nil for others, and when nothing does.
  package func difference(
    from old: PropertyListValue, to new: PropertyListValue, named name: SecretName
  ) -> ContainerDifference.DocumentFields? {
    guard let old = document(in: old, named: name), let new = document(in: new, named: name) else {
      return nil
    }
    return difference(from: old, to: new, named: name)
  }

  package func difference(
    from old: DecodedDocument, to new: DecodedDocument, named name: SecretName
  ) -> ContainerDifference.DocumentFields? {
    if old.value.matches(new.value) { return nil }
    var difference = ContainerDifference.DocumentFields(fields: [], more: 0)
    // A secret of one field is one in the others.
    knowing([["": old.value], ["": new.value]]).compare(old.value, new.value, name, "", &difference)
    return difference.fields.isEmpty ? nil : difference
  }

  private func compare(
    _ old: PropertyListValue?, _ new: PropertyListValue?, _ name: SecretName, _ path: String,
    _ difference: inout ContainerDifference.DocumentFields
  ) {
    switch (old, new) {
    case (.dictionary(let old)?, .dictionary(let new)?):
      let (names, newNames) = (SecretFields(old, inside: name), SecretFields(new, inside: name))
      for key in old.differingKeys(from: new, isSame: { $0.matches($1) }) {
        let isSecret = names.isSecret(key: key.text) || newNames.isSecret(key: key.text)
        let shown = isSecret ? shown(secret: key.text) : Self.cut(key.text, Self.keyLength)
        let inner = max(names[key.text], newNames[key.text])
        compare(old[key], new[key], inner, path.isEmpty ? shown : "\(path).\(shown)", &difference)
      }
    case (.array(let old)?, .array(let new)?):
      for index in 0..<max(old.count, new.count) {
        let (old, new) = (
          old.indices.contains(index) ? old[index] : nil, new.indices.contains(index) ? new[index] : nil
        )
        if let old, let new, old.matches(new) { continue }
        compare(old, new, name, "\(path)[\(index)]", &difference)
      }
    default:
      guard difference.fields.count < ContainerDifference.DocumentFields.limit else {
        difference.more += 1
        return
      }
      let texts = [old, new].map { $0.map { Self.cut(shown($0, named: name), Self.fieldLength) } }
      difference.fields.append(.init(name: path.isEmpty ? "value" : path, before: texts[0], after: texts[1]))
    }
  }
}

import ContainerTransaction
import FileSystem

extension StepMemory {
  /// An extended attribute that the step changed.
  struct Attribute: Sendable, Codable, Equatable {
    var path: ContainerPath
    var name: String
    /// Nil where there was none, or is none now.
    var before, after: [UInt8]?
  }

  /// Notes the attributes of a path that differ.
  mutating func note(
    attributes path: ContainerPath, before: [ExtendedAttribute], after: [ExtendedAttribute]
  ) {
    for name in Set((before + after).map(\.name)).sorted() {
      let (old, new) = (before.value(of: name), after.value(of: name))
      if old != new { attributes.append(Attribute(path: path, name: name, before: old, after: new)) }
    }
  }

  /// Puts the attributes back that the step changed, where they still are what it wrote.
  ///
  /// - Returns: remarks on what was changed since, and stays.
  func revertAttributes(on stage: StagedContainer) throws -> [String] {
    try attributes.compactMap { attribute in
      guard var metadata = try stage.metadata(of: attribute.path) else {
        return "`\(attribute.path)` is gone: nothing to take back"
      }
      let now = metadata.attributes.value(of: attribute.name)
      if now == attribute.before { return nil }
      guard now == attribute.after else {
        return "the attribute \(attribute.name) of `\(attribute.path)` was changed since: left as it is"
      }
      metadata.attributes.removeAll { $0.name == attribute.name }
      if let value = attribute.before {
        metadata.attributes.append(ExtendedAttribute(name: attribute.name, value: value))
        metadata.attributes.sort { $0.name < $1.name }
      }
      try stage.setMetadata(metadata, of: attribute.path)
      return nil
    }
  }
}

extension [ExtendedAttribute] {
  fileprivate func value(of name: String) -> [UInt8]? { first { $0.name == name }?.value }
}

extension YAMLNode {
  /// A value that was never text, such as an argument that Swift code gives, as the node that says it. Dictionaries are
  /// sorted by key.
  package init(_ value: PropertyListValue, at position: YAMLPosition) {
    switch value {
    case .array(let values):
      self.init(values.map { YAMLNode($0, at: position) }, at: position)
    case .dictionary(let values):
      self.init(values.sorted().map { (.string($0.key), YAMLNode($0.value, at: position)) }, at: position)
    default:
      self.init(content: .scalar(YAMLScalar(value)), position: position)
    }
  }

  /// A list of nodes.
  package init(_ nodes: [YAMLNode], at position: YAMLPosition) {
    self.init(content: .sequence(nodes), position: position)
  }

  /// A mapping; its keys are scalars.
  package init(_ pairs: [(key: PropertyListValue, value: YAMLNode)], at position: YAMLPosition) {
    let pairs = pairs.map {
      YAMLMapping.Pair(key: YAMLScalar($0.key), keyPosition: position, value: $0.value)
    }
    self.init(content: .mapping(YAMLMapping(pairs: pairs)), position: position)
  }

  /// A word without quotes, which some arguments take for more than its text.
  package init(word: String, at position: YAMLPosition) {
    let scalar = YAMLScalar(value: .text(word), source: word, isPlain: true)
    self.init(content: .scalar(scalar), position: position)
  }
}

extension YAMLScalar {
  /// What is neither a simple value nor known to YAML is null, which every reader refuses.
  fileprivate init(_ value: PropertyListValue) {
    let (scalar, source): (Value, String) =
      switch value {
      case .string(let text): (.text(text), text)
      case .boolean(let bool): (.boolean(bool), "\(bool)")
      case .integer(let number): (.integer(number), "\(number)")
      case .unsigned(let number): (.unsigned(number), "\(number)")
      case .real(let real): (.real(real), "\(real)")
      case .single(let real): (.real(Double(real)), "\(real)")
      case .date(let date): (.date(date), YAMLDate.text(date))
      case .data(let bytes): (.data(bytes), "")
      case .array, .dictionary, .unknown: (.null, "")
      }
    self.init(value: scalar, source: source, isPlain: false)
  }
}

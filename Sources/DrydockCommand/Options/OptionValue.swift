import ArgumentParser

// An option is its help and the name of its value, as a help text shows them; a shell completes a `file` and a
// `directory`.

extension Option where Value: ExpressibleByArgument {
  init(name: NameSpecification = .long, _ help: String, value: String) {
    self.init(name: name, help: ArgumentHelp(help, valueName: value), completion: .ofValue(value))
  }

  init(wrappedValue: Value, name: NameSpecification = .long, _ help: String, value: String) {
    self.init(
      wrappedValue: wrappedValue, name: name, help: ArgumentHelp(help, valueName: value),
      completion: .ofValue(value))
  }
}

extension Option {
  init<Element: ExpressibleByArgument>(
    name: NameSpecification = .long, _ help: String, value: String, completion: CompletionKind? = nil
  ) where Value == Element? {
    self.init(
      name: name, help: ArgumentHelp(help, valueName: value), completion: completion ?? .ofValue(value))
  }

  init<Element: ExpressibleByArgument>(
    wrappedValue: [Element], name: NameSpecification = .long, _ help: String, value: String
  ) where Value == [Element] {
    self.init(
      wrappedValue: wrappedValue, name: name, help: ArgumentHelp(help, valueName: value),
      completion: .ofValue(value))
  }
}

extension CompletionKind? {
  fileprivate static func ofValue(_ name: String) -> CompletionKind? {
    switch name {
    case "file": .file()
    case "directory": .directory
    default: nil
    }
  }
}

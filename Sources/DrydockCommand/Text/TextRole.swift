import ArgumentParser
import Reports

extension TextRole {
  /// The terminal's own colours, so that they fit its background.
  private var code: Int? {
    switch self {
    case .error, .removed, .failed: 31
    case .added, .passed: 32
    case .warning, .changed, .known: 33
    case .note: 36
    case .notRun: nil
    }
  }

  func colored(_ text: String) -> String {
    guard let code else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }
}

enum ColorChoice: String, CaseIterable, ExpressibleByArgument {
  case auto, always, never
}

/// An error, warning or note for standard error.
struct Notice: Sendable {
  var role: TextRole
  var text: String

  init(_ role: TextRole, _ text: String) { (self.role, self.text) = (role, text) }
}

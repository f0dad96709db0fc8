import AppContainer
import Foundation

/// What `fixture.yaml` says of a captured container.
struct CapturedSetup {
  /// Directories that nothing is in.
  var directories: Set<ContainerPath> = []
  var excluded: Set<ContainerPath> = []
  var attributes: [ContainerPath: [ExtendedAttribute]] = [:]
  var modes: [ContainerPath: UInt16] = [:]
  var onlyInWAL: Set<ContainerPath> = []
  var vault: [CapturedItem]?

  /// The lines below `container:`; none when there is nothing to say.
  var lines: [String] {
    var lines = list("directories", directories) + list("excluded", excluded)
    if !attributes.isEmpty {
      lines.append("  attributes:")
      for (path, attributes) in attributes.sorted(by: { $0.key < $1.key }) {
        let values = attributes.map { "\(GoldenYAML.quoted($0.name)): \(Self.value($0.value))" }
        lines.append("    \(GoldenYAML.quoted(path.description)): {\(values.joined(separator: ", "))}")
      }
    }
    if !modes.isEmpty {
      lines.append("  modes:")
      for (path, mode) in modes.sorted(by: { $0.key < $1.key }) {
        lines.append("    \(GoldenYAML.quoted(path.description)): 0o\(String(mode, radix: 8))")
      }
    }
    lines += list("only-in-wal", onlyInWAL)
    if let vault {
      lines.append("  vault:" + (vault.isEmpty ? " []" : ""))
      for item in vault {
        for (number, field) in item.fields.enumerated() {
          let value = field.name == "accessible" ? field.value : GoldenYAML.quoted(field.value, isKey: false)
          lines.append("    \(number == 0 ? "- " : "  ")\(field.name): \(value)")
        }
      }
    }
    return lines
  }

  private func list(_ name: String, _ paths: Set<ContainerPath>) -> [String] {
    paths.isEmpty
      ? []
      : ["  \(name):"] + paths.sorted().map { "    - \(GoldenYAML.quoted($0.description, isKey: false))" }
  }

  private static func value(_ bytes: [UInt8]) -> String {
    if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
      return GoldenYAML.quoted(text, isKey: false)
    }
    return "!data \"\(Data(bytes).base64EncodedString())\""
  }
}

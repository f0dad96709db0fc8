import AppContainer
import ContainerDiff
import FileSystem
import Foundation

/// What `fixture.yaml` says of a captured container.
struct CapturedSetup {
  /// Directories that nothing is in.
  var directories: Set<ContainerPath> = []
  var excluded: Set<ContainerPath> = []
  var attributes: [ContainerPath: [ExtendedAttribute]] = [:]
  var modes: [ContainerPath: UInt16] = [:]
  var protection: [ContainerPath: ProtectionClass] = [:]
  var onlyInWAL: Set<ContainerPath> = []
  var verbatim: Set<ContainerPath> = []
  var vault: [CapturedItem]?

  /// The lines below `container:`; none when there is nothing to say.
  var lines: [String] {
    var lines = list("directories", directories) + list("excluded", excluded)
    if !attributes.isEmpty {
      lines.append("  attributes:")
      for (path, attributes) in attributes.sorted(by: { $0.key < $1.key }) {
        let values = attributes.map { "\(GoldenYAML.quoted($0.name)): \(Self.yaml($0.value))" }
        lines.append("    \(Self.key(path)): {\(values.joined(separator: ", "))}")
      }
    }
    if !modes.isEmpty {
      lines.append("  modes:")
      for (path, mode) in modes.sorted(by: { $0.key < $1.key }) {
        lines.append("    \(Self.key(path)): 0o\(String(mode, radix: 8))")
      }
    }
    if !protection.isEmpty {
      lines.append("  protection:")
      for (path, level) in protection.sorted(by: { $0.key < $1.key }) {
        lines.append("    \(Self.key(path)): \(level.rawValue)")
      }
    }
    lines += list("only-in-wal", onlyInWAL) + list("verbatim", verbatim)
    if let vault {
      lines.append("  vault:" + (vault.isEmpty ? " []" : ""))
      for item in vault {
        for (number, field) in item.fields.enumerated() {
          lines.append("    \(number == 0 ? "- " : "  ")\(field.name): \(field.yaml)")
        }
      }
    }
    return lines
  }

  private func list(_ name: String, _ paths: Set<ContainerPath>) -> [String] {
    paths.isEmpty ? [] : ["  \(name):"] + paths.sorted().map { "    - \(Self.key($0))" }
  }

  /// A path in quotes: to YAML a path can look like a number, or like anything else.
  private static func key(_ path: ContainerPath) -> String {
    GoldenYAML.quoted(path.isRoot ? "." : String(decoding: path.bytes, as: UTF8.self), isKey: false)
  }

  /// Bytes as `fixture.yaml` has them: as text where that is possible.
  static func yaml(_ bytes: [UInt8]) -> String {
    if !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) {
      return GoldenYAML.quoted(text, isKey: false)
    }
    return "!data \"\(Data(bytes).base64EncodedString())\""
  }
}

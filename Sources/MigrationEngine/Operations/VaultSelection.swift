import AppContainer
import Formats

/// Which vault items a step or a check is about: all that have every attribute that is named.
struct VaultSelection: Sendable, CustomStringConvertible {
  static let keys = [
    "class", "service", "service-prefix", "account", "account-prefix", "access-group", "synchronizable",
  ]

  private let itemClass: VaultItemClass?
  private let attributes: [VaultAttribute: String]
  private let prefixes: [VaultAttribute: String]
  private let isSynchronizable: Bool?
  let description: String

  init(reading reader: YAMLReader) throws {
    var words: [String] = []
    itemClass = try reader.choice("class")
    if let itemClass { words.append("class \(itemClass.rawValue)") }
    var attributes: [VaultAttribute: String] = [:]
    var prefixes: [VaultAttribute: String] = [:]
    for (key, attribute) in [("service", VaultAttribute.service), ("account", .account)] {
      let prefix = reader[key + "-prefix"]
      if let prefix, reader[key] != nil {
        throw prefix.position.error("name either `\(key)` or `\(key)-prefix`, not both")
      }
      attributes[attribute] = try reader.text(key)
      prefixes[attribute] = try reader.text(key + "-prefix")
      if let prefix, prefixes[attribute]?.isEmpty == true {
        throw prefix.position.error("every \(key) starts with an empty prefix")
      }
      if let text = attributes[attribute] { words.append(Self.words(key, text)) }
      if let text = prefixes[attribute] { words.append("\(key) `\(text)…`") }
    }
    attributes[.accessGroup] = try reader.text("access-group")
    if let group = attributes[.accessGroup] { words.append(Self.words("access group", group)) }
    isSynchronizable = try reader.boolean("synchronizable")
    if attributes.isEmpty && prefixes.isEmpty && itemClass == nil {
      throw reader.position.error(
        "\(reader.what) does not say which items: name a `service`, an `account` or a `service-prefix`")
    }
    self.attributes = attributes
    self.prefixes = prefixes
    description = words.joined(separator: ", ")
  }

  private static func words(_ what: String, _ text: String) -> String {
    text.isEmpty ? "no \(what)" : "\(what) `\(text)`"
  }

  /// The prefix of an attribute that the items were chosen by.
  func prefix(of attribute: VaultAttribute) -> String? { prefixes[attribute] }

  /// The items of a vault, in order.
  func items(of vault: Vault) -> [VaultItem] { vault.sorted.filter(matches) }

  private func matches(_ item: VaultItem) -> Bool {
    (itemClass == nil || itemClass == item.itemClass)
      && (isSynchronizable == nil || isSynchronizable == item.isSynchronizable)
      && attributes.allSatisfy { Array((item[$0] ?? "").utf8) == Array($1.utf8) }
      && prefixes.allSatisfy { (item[$0] ?? "").utf8.starts(with: $1.utf8) }
  }
}

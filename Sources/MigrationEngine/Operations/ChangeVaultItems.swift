import AppStores
import ContainerTransaction
import Cryptography
import Formats
import Foundation

struct ChangeVaultItems: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.rename",
      "Changes the service or account of items.",
      Argument<YAMLNode>(
        "to",
        "a new `service`, a new `account`, or both; for items selected by a prefix also a "
          + "new `service-prefix` or `account-prefix`"),
      IfMissing.argument, IfExists.argument, VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, account: auth, to: {account: session}}",
        after: "vault: {session: secret}")
    ) { to, ifMissing, ifExists, selection in
      Self(selection, ifMissing, ifExists, change: try renaming(selection, to))
    },
    OperationKind(
      "vault.move-to",
      "Moves items to another access group.",
      Argument<String>("to", "the access group; `''` for the app's own"), IfMissing.argument,
      IfExists.argument, VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, to: group.com.example}",
        after: "vault: {auth: {value: secret, access-group: group.com.example}}")
    ) { group, ifMissing, ifExists, selection in
      Self(selection, ifMissing, ifExists) { $0.accessGroup = group }
    },
    OperationKind(
      "vault.set-accessibility",
      "Sets the accessibility class of items.",
      Argument<VaultItem.Accessibility>("accessible", "the class"), IfMissing.argument,
      VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, accessible: afterFirstUnlockThisDeviceOnly}",
        after: "vault: {auth: {value: secret, accessible: afterFirstUnlockThisDeviceOnly}}")
    ) { accessibility, ifMissing, selection in
      Self(selection, ifMissing) { $0.accessibility = accessibility }
    },
    OperationKind(
      "vault.set-access-control",
      "Sets what a user must present to read items: the flags of access control.",
      Argument([
        "access-control": "required: a list of flags, or one flag; `[]` removes the access control"
      ]) { reader, _ in try accessControl(reader.required("access-control")) },
      IfMissing.argument, VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, access-control: [userPresence]}",
        after: "vault: {auth: {value: secret, access-control: userPresence}}")
    ) { control, ifMissing, selection in
      Self(selection, ifMissing) { $0.accessControl = control }
    },
    OperationKind(
      "vault.set-synchronizable",
      "Sets whether the keychain copies items to the user's other devices.",
      Argument<Bool>("to", "`true` or `false`"), IfMissing.argument, IfExists.argument,
      VaultSelection.argument,
      example: OperationExample(
        before: "vault: {auth: secret}", step: "{service: s, account: auth, to: true}",
        after: "vault: {auth: {value: secret, synchronizable: true}}")
    ) { isSynchronizable, ifMissing, ifExists, selection in
      Self(selection, ifMissing, ifExists) {
        $0.isSynchronizable = isSynchronizable
      }
    },
    OperationKind(
      "vault.delete",
      "Deletes items.",
      IfMissing.argument, VaultSelection.argument, destroysData: true,
      example: OperationExample(
        before: "vault: {auth: secret, old: token}",
        step: "{service: s, account: old, destructive: the server takes these tokens no longer}",
        after: "vault: {auth: secret}")
    ) { Self($1, $0, change: nil) },
  ]

  private typealias Change = @Sendable (inout VaultItem) -> Void

  private let selection: VaultSelection
  /// Nil when the items are removed.
  private let change: Change?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  private init(
    _ selection: VaultSelection, _ ifMissing: IfMissing, _ ifExists: IfExists = .fail,
    change: Change?
  ) {
    (self.selection, self.change) = (selection, change)
    (self.ifMissing, self.ifExists) = (ifMissing, ifExists)
  }

  /// The flags of a list; nil when it is empty.
  private static func accessControl(_ node: YAMLNode) throws -> VaultItem.AccessControl? {
    let known = VaultItem.AccessControl.Flag.allCases.map(\.rawValue)
    let flags = try node.texts("`access-control`").map { name in
      guard let flag = VaultItem.AccessControl.Flag(rawValue: name) else {
        throw node.position.error(
          "unknown flag `\(name)` in `access-control`; " + NearestWord.hint(for: name, among: known))
      }
      return flag
    }
    return flags.isEmpty ? nil : VaultItem.AccessControl(flags)
  }

  /// Sets the service or the account, or a prefix of these.
  private static func renaming(_ selection: VaultSelection, _ node: YAMLNode) throws -> Change {
    let attributes: [(key: String, attribute: VaultItem.Attribute)] = [
      ("service", .service), ("account", .account),
    ]
    let keys = attributes.map(\.key)
    let target = try YAMLReader(node, what: "`to` of vault.rename", keys: keys + keys.map { $0 + "-prefix" })
    var changes: [(attribute: VaultItem.Attribute, oldPrefix: String?, new: String)] = []
    for (key, attribute) in attributes {
      if let new = try target.text(key) { changes.append((attribute, nil, new)) }
      guard let node = target[key + "-prefix"] else { continue }
      if target[key] != nil {
        throw node.position.error("name either `\(key)` or `\(key)-prefix`, not both")
      }
      guard let old = selection.prefix(of: attribute) else {
        throw node.position.error("a prefix replaces a prefix: choose the items by `\(key)-prefix`, too")
      }
      changes.append((attribute, old, try node.text("`\(key)-prefix`")))
    }
    if changes.isEmpty {
      throw node.position.error("`to` names a new `service`, `account`, `service-prefix` or `account-prefix`")
    }
    return { [changes] item in
      for (attribute, oldPrefix, new) in changes {
        let rest = oldPrefix.map { (item[attribute] ?? "").utf8.dropFirst($0.utf8.count) }
        item[attribute] = new + (rest.map { String(decoding: $0, as: UTF8.self) } ?? "")
      }
    }
  }

  var effects: StepEffects {
    StepEffects(
      announcedLoss: change == nil ? .everything : .nothing,
      needsVault: true)
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    if let change { try edit.change(items, ifExists, by: change) } else { edit.remove(items) }
    return try edit.save(to: stage, &recorded)
  }
}

struct ConvertVaultItems: MigrationOperation {
  static let kinds = [
    OperationKind(
      "vault.convert",
      "Converts text items to JSON documents with named fields. Keys are sorted.",
      Argument(
        [
          "fields": "required: the field for the text; or, with `separator`, the fields for its parts",
          "separator": "the separator of the parts",
          "with": "additional fields, the same for each item",
        ], read: Form.init),
      Argument(
        "unmapped",
        "for a value that is not UTF-8, is already a JSON document, or has another number of parts: "
          + "`fail` (default), `keep`, `delete`", default: Unmapped.fail),
      IfMissing.argument, VaultSelection.argument,
      example: OperationExample(
        before: "vault: {mail: \"ada:secret\"}",
        step: "{service: s, account: mail, fields: [user, password], separator: \":\"}",
        after: "vault: {mail: '{\"password\":\"secret\",\"user\":\"ada\"}'}"),
      make: Self.init)
  ]

  private let form: Form
  private let unmapped: Unmapped
  private let ifMissing: IfMissing
  private let selection: VaultSelection

  var effects: StepEffects { StepEffects(needsVault: true) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try VaultEdit(stage)
    try edit.convert(edit.items(selection, ifMissing), unmapped, by: form.document)
    return try edit.save(to: stage, &recorded)
  }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    try PriorValues.required(recorded).revertItems(on: stage, inverse: form.text)
  }

  /// The documents that the texts become.
  private struct Form {
    /// The field of the text, or those of its parts.
    let fields: [String]
    let separator: String?
    /// More fields, the same for every item.
    let constants: [(key: String, value: JSONValue)]

    init(_ reader: YAMLReader, _: MigrationFiles) throws {
      let node = try reader.required("fields")
      let fields = try node.texts("`fields`")
      self.fields = fields
      separator = try reader.text("separator")
      if fields.isEmpty || Set(fields).count < fields.count {
        throw node.position.error("`fields` names each field of the document once")
      }
      if fields.count > 1, separator?.isEmpty ?? true {
        throw node.position.error("more than one field needs a `separator` that splits the text")
      }
      if fields.count == 1, let node = reader["separator"] {
        throw node.position.error("`separator` splits the text into several fields: name them in `fields`")
      }
      constants = try (reader["with"]?.pairs("`with`").pairs ?? []).map { pair in
        if fields.contains(pair.key.source) {
          throw pair.keyPosition.error("`\(pair.key.source)` is one of `fields`, too")
        }
        return (try pair.textKey("a field's name"), try pair.value.jsonValue())
      }
    }

    /// The text of a document with exactly these fields; nil for other documents.
    func text(of item: VaultItem) -> SecretBytes? {
      guard let document = object(in: item), document.members.count == fields.count + constants.count,
        constants.allSatisfy({ document[$0.key] != nil })
      else { return nil }
      let parts = fields.compactMap { field -> String? in
        if case .string(let text) = document[field] { text.text } else { nil }
      }
      guard parts.count == fields.count else { return nil }
      var bytes = Array(parts.joined(separator: separator ?? "").utf8)
      return SecretBytes(wiping: &bytes)
    }

    func document(of item: VaultItem) throws -> SecretBytes {
      guard let text = item.value.withBytes({ String(validating: $0, as: UTF8.self) }) else {
        throw ValueMismatch(reason: "its value is not UTF-8")
      }
      if object(in: item) != nil { throw ValueMismatch(reason: "its value is a JSON document already") }
      let parts = separator.map { text.components(separatedBy: $0) } ?? [text]
      guard parts.count == fields.count else {
        let count = parts.count == 1 ? "1 part" : "\(parts.count) parts"
        throw ValueMismatch(reason: "its value has \(count), and \(fields.count) fields are named")
      }
      let members = constants + zip(fields, parts).map { ($0, JSONValue.string(JSONString($1))) }
      let document = JSONObject(members.sorted { $0.key < $1.key })
      var bytes = JSONDocument(.object(document), isIndented: false).bytes
      return SecretBytes(wiping: &bytes)
    }

    private func object(in item: VaultItem) -> JSONObject? {
      let document = item.value.withBytes { try? JSONDocument(bytes: Array($0)) }
      if case .object(let object) = document?.value { return object } else { return nil }
    }
  }
}

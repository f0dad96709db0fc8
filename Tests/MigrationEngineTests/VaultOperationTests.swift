import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import Formats
import Foundation
import Testing

/// Each operation on the vault: what is there and what is not, what is kept, replaced and refused.
@Suite struct VaultOperationTests {
  /// An item as one line: its name, its class and its value.
  static func line(_ item: VaultItem) -> String {
    let value = item.value.withBytes { String(decoding: $0, as: UTF8.self) }
    return "\(item) \(item.accessibility.code) \(value)"
  }

  /// An item from its line; the name is `service/account` or `service/account [group]`.
  private func item(_ line: String) throws -> VaultItem {
    let match = try #require(line.wholeMatch(of: /([^\/]*)\/([^ ]*)(?: \[(.*)\])? (\w+) (.*)/))
    return VaultItem(
      service: String(match.1), account: String(match.2), accessGroup: match.3.map(String.init),
      accessibility: try #require(VaultItem.Accessibility(String(match.4))),
      value: SecretBytes(Array(String(match.5).utf8)))
  }

  /// What one step makes of settings and a vault; no vault when it is nil.
  private func outcome(
    _ step: String, _ items: [String]?, _ settings: PropertyListDictionary = [:]
  ) throws -> (items: [String]?, settings: PropertyListDictionary, notes: [String], error: String) {
    try Lab.with { lab in
      lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
      if !settings.isEmpty { try lab.set(settings) }
      if let items { try lab.put(items.map(item)) }
      let state = { (stage: StagedContainer) in
        (try stage.vault()?.sorted.map(Self.line), try stage.settings() ?? [:])
      }
      var (after, notes) = (try lab.look(state), [String]())
      let error = failure { try lab.tried(step) { (after, notes) = (try state($0), $1) } }
      // Texts without the test's directory: its name may contain a secret's text.
      let text = { [directory = lab.directory("")] (text: String) in text.replacing(directory, with: "") }
      return (after.0, after.1, notes.map(text), text(error.text))
    }
  }

  static let items = ["a.one/x ak 1", "a.one/y ck 2", "a.two/x ak 3", "b/x [g] ck 4"]

  @Test(
    arguments: [
      .gives(
        "vault.rename: {service: a.one, account: x, to: {account: z}}", items,
        ["a.one/y ck 2", "a.one/z ak 1", "a.two/x ak 3", "b/x [g] ck 4"]),
      .gives(
        "vault.rename: {service-prefix: a., to: {service-prefix: c.d.}}", items,
        ["b/x [g] ck 4", "c.d.one/x ak 1", "c.d.one/y ck 2", "c.d.two/x ak 3"]),
      .gives(
        "vault.rename: {account: x, access-group: g, to: {service: c, account: ''}}", items,
        ["a.one/x ak 1", "a.one/y ck 2", "a.two/x ak 3", "c [g] ck 4"]),
      .gives(
        "vault.rename: {service: nobody, to: {service: c}}", items, items,
        "no vault item has service `nobody`: skipped"),
      .fails(
        "vault.rename: {service: nobody, to: {service: c}, if-missing: fail}", items,
        "no vault item has service `nobody`"),
      .gives("vault.rename: {service: a, to: {service: c}}", nil, nil, "(no vault): skipped"),
      .fails(
        "vault.rename: {service: a.two, to: {service: a.one}}", items,
        "the vault item a.one/x exists already, so that a.two/x cannot be renamed to it"),
      .gives(
        "vault.rename: {service: a.two, to: {service: a.one}, if-exists: keep}", items, items,
        "the vault item a.one/x exists already: kept, and a.two/x too"),
      .gives(
        "vault.rename: {service: a.two, to: {service: a.one}, if-exists: replace}", items,
        ["a.one/x ak 3", "a.one/y ck 2", "b/x [g] ck 4"]),
      .fails(
        "vault.rename: {service: a.one, to: {account: z}}", items, "a.one/x and a.one/y both become a.one/z"),
      // Names move on: what an item leaves, another may take.
      .gives(
        "vault.rename: {account-prefix: n, to: {account-prefix: nn}}", ["s/n ak 1", "s/nn ak 2"],
        ["s/nn ak 1", "s/nnn ak 2"]),
      .gives(
        "vault.rename: {account-prefix: n, to: {account-prefix: nn}, if-exists: keep}",
        ["s/n ak 1", "s/nn ak 2", "t/nnn ak 3"], ["s/nn ak 1", "s/nnn ak 2", "t/nnnn ak 3"]),
      .gives(
        "vault.move-to: {service: a.one, to: h}", items,
        ["a.one/x [h] ak 1", "a.one/y [h] ck 2", "a.two/x ak 3", "b/x [g] ck 4"]),
      .gives(
        "vault.move-to: {access-group: g, to: ''}", items,
        ["a.one/x ak 1", "a.one/y ck 2", "a.two/x ak 3", "b/x ck 4"]),
      .fails(
        "vault.move-to: {service: b, access-group: '', to: g}", items + ["b/x ak 5"],
        "the vault item b/x [g] exists already"),
      .gives(
        "vault.move-to: {service: b, access-group: '', to: g, if-exists: replace}", items + ["b/x ak 5"],
        ["a.one/x ak 1", "a.one/y ck 2", "a.two/x ak 3", "b/x [g] ak 5"]),
      .gives(
        "vault.set-accessibility: {service-prefix: a., accessible: afterFirstUnlockThisDeviceOnly}", items,
        ["a.one/x cku 1", "a.one/y cku 2", "a.two/x cku 3", "b/x [g] ck 4"]),
      .gives(
        "vault.set-accessibility: {account: q, accessible: whenUnlocked}", items, items,
        "no vault item has account `q`: skipped"),
      .gives(
        "vault.convert: {service: a.two, fields: token, with: {version: 2, scopes: [a, b]}}", items,
        [
          "a.one/x ak 1", "a.one/y ck 2", #"a.two/x ak {"scopes":["a","b"],"token":"3","version":2}"#,
          "b/x [g] ck 4",
        ]),
      .gives(
        "vault.convert: {service: s, fields: [user, password], separator: ':'}",
        ["s/x ak me:it's \"quoted\""], [#"s/x ak {"password":"it's \"quoted\"","user":"me"}"#]),
      .fails(
        "vault.convert: {service: s, fields: [user, password], separator: ':'}", ["s/x ak a:b:c"],
        "the vault item s/x cannot be converted: its value has 3 parts, and 2 fields are named"),
      .gives(
        "vault.convert: {service: s, fields: [a, b], separator: ':', unmapped: keep}", ["s/x ak a"],
        ["s/x ak a"], "the vault item s/x: its value has 1 part, and 2 fields are named: left unchanged"),
      .gives(
        "vault.convert: {service: s, fields: [a, b], separator: ':', unmapped: delete}",
        ["s/x ak a", "s/y ak a:b"], [#"s/y ak {"a":"a","b":"b"}"#], "s/x: its value has 1 part"),
      .fails(
        "vault.convert: {service: s, fields: token}", [#"s/x ak {"token":"1"}"#],
        "its value is a JSON document already"),
      .gives("vault.delete: {service-prefix: a., destructive: gone}", items, ["b/x [g] ck 4"]),
      .gives("vault.delete: {service: b, destructive: gone}", ["b/x ak 1"], []),
      .gives(
        "vault.delete: {service: z, destructive: gone}", items, items,
        "no vault item has service `z`: skipped"),
    ] as [StepCase<[String]?>])
  func matrix(_ test: StepCase<[String]?>) throws {
    let result = try outcome(test.step, test.before)
    if let after = test.after ?? (test.says.contains("skipped") ? test.before : nil) {
      #expect(result.error == "no error" && result.items == after, "\(result)")
      #expect(result.notes.count == (test.says.isEmpty ? 0 : 1))
      #expect(result.notes.allSatisfy { $0.contains(test.says) }, "\(result.notes)")
    } else if test.before == nil {
      #expect(result.items == nil && result.notes.first?.contains(test.says) == true, "\(result)")
    } else {
      #expect(Set(result.items ?? []) == Set(test.before ?? []), "nothing was changed")
      #expect(result.error.hasPrefix("0001_test.yaml:2:5: vault."), "\(result.error)")
      #expect(result.error.contains(test.says), "\(result.error)")
    }
  }

  @Test func aMoveFromSettingsMakesTheVault() throws {
    let step = "vault.move-from-defaults: {key: t, service: s, account: a, accessible: afterFirstUnlock}"
    let settings: PropertyListDictionary = ["t": "geheim-ä", "other": 1]
    let made = try outcome(step, nil, settings)
    #expect(made.items == ["s/a ck geheim-ä"] && made.settings == ["other": 1] && made.notes == [])
    let added = try outcome(step, ["s/b ak 1"], settings)
    #expect(added.items == ["s/a ck geheim-ä", "s/b ak 1"])
    // In another group it is another item.
    let other = try outcome(step, ["s/a [g] ak 1"], settings)
    #expect(other.items == ["s/a ck geheim-ä", "s/a [g] ak 1"])
  }

  @Test func aMoveFromSettingsOfWhatIsMissingOrThere() throws {
    let step = "vault.move-from-defaults: {key: t, service: s, account: a"
    let without = try outcome(step + "}", nil, ["other": 1])
    #expect(without.items == nil && without.notes.first?.hasSuffix("`t` does not exist: skipped") == true)
    let noFile = try outcome(step + "}", nil)
    #expect(noFile.items == nil && noFile.notes.first?.contains("no settings file") == true)
    let fails = try outcome(step + ", if-missing: fail}", nil, ["other": 1])
    #expect(fails.error.contains("vault.move-from-defaults: the setting `t` does not exist"))

    let settings: PropertyListDictionary = ["t": "new"]
    let refused = try outcome(step + "}", ["s/a ak old"], settings)
    #expect(
      refused.error.contains("the vault item s/a exists already, with another value than the setting `t`"))
    #expect(refused.items == ["s/a ak old"] && refused.settings == settings)
    let kept = try outcome(step + ", if-exists: keep}", ["s/a ak old"], settings)
    #expect(kept.items == ["s/a ak old"] && kept.settings == settings && kept.notes.count == 1)
    let replaced = try outcome(step + ", if-exists: replace}", ["s/a ak old"], settings)
    #expect(replaced.items == ["s/a ak new"] && replaced.settings == [:])
    // The same value is no second one: the setting goes.
    let same = try outcome(step + "}", ["s/a ck new"], settings)
    #expect(same.items == ["s/a ck new"] && same.settings == [:] && same.notes.count == 1)
    for result in [refused, kept, replaced, same] {
      #expect(!(result.notes + [result.error]).contains { $0.contains("new") || $0.contains("old") })
    }
  }

  @Test(
    arguments: [
      (.data([0x61, 0x62]), "", "ab"), (1234, ", as: text", "1234"),
      (true, ", as: text", "true"),
      (1234, "", nil), (true, "", nil), (.array(["a"]), ", as: text", nil),
      (
        .dictionary(["b": .array([1, true, .real(0.5)]), "a": "/x"]),
        ", as: json",
        #"{"a":"/x","b":[1,true,0.5]}"#
      ),
      ("x\"y", ", as: json", #""x\"y""#), (.dictionary(["a": .date(Date())]), ", as: json", nil),
      (.data([1]), ", as: json", nil), (.real(.infinity), ", as: json", nil), ("", "", ""),
    ] as [(PropertyListValue, String, String?)])
  func typesOfSettings(_ value: PropertyListValue, _ form: String, _ bytes: String?) throws {
    let result = try outcome(
      "vault.move-from-defaults: {key: t, service: s, account: a\(form)}", nil, ["t": value])
    if let bytes {
      #expect(result.items == ["s/a ak \(bytes)"] && result.settings == [:], "\(result)")
    } else {
      #expect(result.items == nil && result.settings == ["t": value])
      #expect(result.error.contains("the setting `t`"), "\(result.error)")
    }
  }

  @Test func severalSettingsAtOnce() throws {
    let result = try outcome(
      "vault.move-from-defaults: {keys: {t: auth, r: refresh, gone: other}, service: s, label: Session, access-group: g}",
      nil, ["t": "1", "r": "2"])
    #expect(result.items == ["s/auth [g] ak 1", "s/refresh [g] ak 2"] && result.settings == [:])
    #expect(result.notes.count == 1)
  }

  @Test(
    arguments: [
      ("vault.rename: {to: {service: a}}", "vault.rename does not say which items"),
      ("vault.rename: {service: a, to: {}}", "`to` names a new"),
      ("vault.rename: {service: a, to: {servce: b}}", "in `to` of vault.rename; did you mean `service`?"),
      ("vault.rename: {service: a, to: {service-prefix: b}}", "a prefix replaces a prefix"),
      ("vault.rename: {service: a, service-prefix: b, to: {service: c}}", "`service` or `service-prefix`"),
      ("vault.rename: {service-prefix: '', to: {service: c}}", "every service starts with an empty prefix"),
      ("vault.renam: {service: a, to: {service: b}}", "`vault.renam`; did you mean `vault.rename`?"),
      ("vault.move-to: {service: a}", "needs the key `to`"),
      ("vault.set-accessibility: {service: a}", "needs the key `accessible`"),
      ("vault.set-accessibility: {service: a, accessible: whenUnlockd}", "did you mean `whenUnlocked`?"),
      ("vault.convert: {service: a, fields: [x, y]}", "more than one field needs a `separator`"),
      ("vault.convert: {service: a, fields: [x, x], separator: ':'}", "each field of the document once"),
      ("vault.convert: {service: a, fields: x, with: {x: 1}}", "`x` is one of `fields`, too"),
      ("vault.delete: {service: a}", "vault.delete destroys data: say why"),
      ("vault.move-from-defaults: {service: s, account: a}", "needs `key`, or `keys`"),
      ("vault.move-from-defaults: {key: a, keys: {b: c}, service: s}", "name either `key` or `keys`"),
      ("vault.move-from-defaults: {keys: {b: c, d: c}, service: s}", "two settings become the account `c`"),
      ("vault.move-from-defaults: {key: a, account: b}", "needs the key `service`"),
      ("vault.move-from-defaults: {key: a, service: s, acount: b}", "unknown key `acount`"),
      ("vault.move-from-defaults: {key: a, service: s, as: xml}", "is one of text, json"),
    ])
  func mistakes(_ step: String, _ message: String) throws {
    try Lab.with { lab in
      try lab.migration("0001_test.yaml", "steps:\n  - " + step + "\n")
      expectFailure(message, "0001_test.yaml:2:") { try lab.catalog() }
    }
  }
}

import Cryptography
import DrydockErrors
import Testing

@testable import AppStores

/// What of a vault may leave its device, as a document and as rules.
@Suite struct VaultExtractTests {
  private func vault() throws -> Vault {
    var vault = try Vault(new: DeviceKeys(.generate()))
    for accessibility in VaultItem.Accessibility.allCases {
      for flags: [VaultItem.AccessControl.Flag] in [[], [.userPresence], [.biometryCurrentSet]] {
        var item = VaultItem(
          service: "s", account: "\(accessibility.code) \(flags.count)\(flags)", accessibility: accessibility,
          value: SecretBytes(Array("made up".utf8)))
        if !flags.isEmpty { item.accessControl = VaultItem.AccessControl(flags) }
        item.label = "label"
        vault.put(item)
      }
    }
    return vault
  }

  @Test func containsOnlyItemsThatMayLeave() throws {
    let vault = try vault()
    let extract = VaultExtract(of: vault)
    #expect(extract.document.sorted.map(\.account) == ["ak 0[]", "ck 0[]", "dk 0[]"])
    #expect(extract.staying.count == 18 && extract.document.device == vault.device)
    let encoded = extract.encoded()
    #expect(try VaultExtract(decoding: encoded, path: nil) == extract)
    #expect(VaultExtract(of: try Vault(new: DeviceKeys(.generate()))).staying.isEmpty)
  }

  private func decode(_ change: (String) -> String) throws -> VaultExtract {
    let text = VaultExtract(of: try vault()).encoded().withBytes { String(decoding: $0, as: UTF8.self) }
    return try VaultExtract(decoding: SecretBytes(Array(change(text).utf8)), path: "vault.json")
  }

  @Test func invalidExtractsAreRejected() throws {
    let wrong: [(String) -> String] = [
      {
        $0.replacing("\"accessible\": \"afterFirstUnlock\"", with: "\"accessible\": \"alwaysThisDeviceOnly\"")
      },
      { $0.replacing("\"staying\": [", with: "\"staying\": [1, ") },
      { $0.replacing("\"staying\": [", with: "\"staying\": [{\"name\": \"a\"}, ") },
      { $0.replacing("\"staying\": [", with: "\"staying\": [{\"accessible\": \"always\"}, ") },
      { $0.replacing("\"name\": ", with: "\"name\": \"twice\", \"name\": ") },
      { String($0.dropLast(3)) },
    ]
    for change in wrong {
      #expect {
        try decode(change)
      } throws: {
        ($0 as? DrydockError)?.code == .badVault && ($0 as? DrydockError)?.path == "vault.json"
      }
    }
    #expect(throws: Never.self) {
      try decode { $0.replacing("\"name\": ", with: "\"new\": [{}], \"name\": ") }
    }
  }

  @Test func orderOfTheRules() {
    let way = VaultReturn(toSameDevice: false, fromEncrypted: true)
    let same = VaultReturn(toSameDevice: true, fromEncrypted: false)
    let control = VaultItem.AccessControl([.userPresence]),
      biometry = VaultItem.AccessControl([.biometryCurrentSet])
    #expect(same.refusal(of: .whenPasscodeSetThisDeviceOnly, nil, isSynchronizable: false) == .never)
    #expect(same.refusal(of: .always, biometry, isSynchronizable: false) == .boundToBiometry)
    #expect(way.refusal(of: .alwaysThisDeviceOnly, control, isSynchronizable: true) == .otherDevice)
    #expect(way.refusal(of: .always, control, isSynchronizable: true) == .accessControl)
    #expect(same.refusal(of: .always, control, isSynchronizable: false) == nil)
    #expect(way.refusal(of: .always, nil, isSynchronizable: true) == .synchronizable)
    let plain = VaultReturn(toSameDevice: false, fromEncrypted: false, includesSynchronizable: true)
    #expect(plain.refusal(of: .always, nil, isSynchronizable: true) == .notEncrypted)
    #expect(Set(VaultReturn.Refusal.allCases.map(\.description)).count == VaultReturn.Refusal.allCases.count)
  }
}

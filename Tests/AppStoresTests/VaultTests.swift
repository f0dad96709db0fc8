import AgeEncryption
import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppStores

/// A vault's file, its keys, and its classes.
@Suite struct VaultTests {
  private func keys() throws -> DeviceKeys { try DeviceKeys(.generate()) }

  private func vault(_ keys: DeviceKeys) throws -> Vault {
    var vault = try Vault(new: keys)
    vault.put(VaultItem(service: "s", account: "a", value: SecretBytes([1, 2, 3])))
    return vault
  }

  @Test func sealedAndOpened() throws {
    let keys = try keys()
    let vault = try vault(keys)
    let sealed = try vault.sealed()
    #expect(try Vault(opening: sealed, with: keys, path: "v") == vault)
    #expect(try sealed != vault.sealed(), "a file key and a nonce are never used twice")
    #expect(vault.device.count == 32)
    #expect(try Vault(new: keys).device != vault.device)
  }

  @Test func theAgeProgramOpensIt() throws {
    let folder = try TemporaryDirectory()
    let key = try AgeIdentity.generate()
    let text = KeyFile.text(of: key, created: "2026-11-20T10:15:00Z")
    try RawFiles.write(text.withBytes { Array($0) }, to: Array(folder("key.txt").utf8))
    let keys = try #require(try DeviceKeys(files: [folder("key.txt")]))
    #expect(keys.recipients == [key.recipient])
    let vault = try vault(keys)
    try RawFiles.write(vault.sealed(), to: Array(folder("vault.age").utf8))
    let opened = try Command.succeed(
      Tools.system("age"), ["-d", "-i", folder("key.txt"), folder("vault.age")])
    #expect(try Vault(decoding: SecretBytes(opened.outputBytes), path: nil) == vault)
    // What it encrypts, armored or not, is opened again.
    for flags in [["-a"], []] {
      let sealed = try Command.run(
        Tools.system("age"), flags + ["-r", key.recipient.description], input: opened.outputBytes)
      #expect(try Vault(opening: sealed.outputBytes, with: keys, path: "v") == vault)
      #expect(Vault.summary(of: sealed.outputBytes) == "encrypted to 1 recipient (X25519)")
    }
  }

  @Test func aRewriteKeepsAllRecipients() throws {
    let (one, two, other) = (try keys(), try keys(), try keys())
    var vault = try vault(one)
    try vault.rekey(to: one.recipients + two.recipients + one.recipients)
    #expect(vault.recipients.count == 2)
    let device = vault.device
    var again = try Vault(opening: vault.sealed(), with: two, path: "v")
    again.put(VaultItem(service: "t", value: SecretBytes([4])))
    let opened = try Vault(opening: again.sealed(), with: one, path: "v")
    #expect(opened == again && opened.device == device)
    let sealed = try again.sealed()
    expectError(.vaultLocked) { _ = try Vault(opening: sealed, with: other, path: "v") }
    #expect(Vault.summary(of: sealed) == "encrypted to 2 recipients (X25519)")
    expectError(.unsupported) { try again.rekey(to: []) }
  }

  @Test func aNewVaultIsSealedToTheCurrentKey() throws {
    let (present, earlier) = (try AgeIdentity.generate(), try AgeIdentity.generate())
    let vault = try Vault(new: DeviceKeys(present, earlier: [earlier]))
    #expect(vault.recipients == [present.recipient])
  }

  @Test func errorsNameTheKindOfFile() throws {
    let keys = try keys()
    func refused(_ bytes: [UInt8], _ code: DrydockError.Code, _ words: String, _ others: String = "vault") {
      let error = expectError(code, words, others) {
        try Vault(opening: bytes, with: keys, path: "Library/Vault/vault.age")
      }
      #expect(error?.path == "Library/Vault/vault.age")
    }
    refused([], .badVault, "empty")
    refused(Array("{}".utf8), .badVault, "not an age file")
    try refused(vault(DeviceKeys(.generate())).sealed(), .vaultLocked, "encrypted to 1 recipient (X25519)")
    let passphrase = try Age.seal(
      SecretBytes(Array("{}".utf8)), to: .passphrase(SecretBytes(Array("made-up".utf8)), workFactor: 2))
    refused(passphrase, .vaultLocked, "encrypted with a passphrase (scrypt)", "age -r")
    var mine = try vault(keys).sealed()
    refused(Array(mine.dropLast()), .badVault, "damaged")
    mine[mine.count - 20] ^= 1
    refused(mine, .badVault, "damaged")
    let nobody = Vault(device: "00112233445566778899aabbccddeeff")
    let sealed = try Age.seal(nobody.encoded(), to: .recipients(keys.recipients))
    refused(sealed, .badVault, "`recipients`")
  }

  @Test func errorsNameTheKeyFile() throws {
    let folder = try TemporaryDirectory()
    try RawFiles.write(Array("# nothing\n".utf8), to: Array(folder("empty").utf8))
    expectError(.vaultLocked) { _ = try DeviceKeys(files: [folder("absent")]) }
    expectError(.vaultLocked) { _ = try DeviceKeys(files: [folder("empty")]) }
    expectError(.vaultLocked) { _ = try DeviceKeys(files: [folder.path]) }
    #expect(try DeviceKeys(files: []) == nil)
  }

  /// What a backup brings back of each: `VaultRestoreMatrixTests`.
  @Test func classes() {
    let codes = VaultItem.Accessibility.allCases.map(\.code)
    #expect(codes == ["ak", "ck", "dk", "aku", "cku", "dku", "akpu"])
    #expect(VaultItem.Accessibility("cku") == .afterFirstUnlockThisDeviceOnly)
    #expect(VaultItem.Accessibility("afterFirstUnlock") == .afterFirstUnlock)
    #expect(VaultItem.Accessibility("x") == nil)
  }

  @Test func biometricFlags() {
    #expect(!VaultItem.AccessControl([.userPresence, .biometryAny]).isBoundToBiometry)
    #expect(VaultItem.AccessControl([.devicePasscode, .or, .biometryCurrentSet]).isBoundToBiometry)
    #expect(VaultItem.AccessControl(names: ["later"]).isBoundToBiometry, "what is unknown may be as strict")
  }

  @Test func textIsUTF8() {
    let texts: [[UInt8]] = [
      [], Array("é 😀\u{0}".utf8), [0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0x80],
    ]
    for bytes in texts {
      #expect(SecretBytes(bytes).isText == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
    }
    var random = SeededRandom(seed: 3)
    for _ in 0..<2000 {
      let bytes = random.bytes(3).map { [UInt8(0x41), 0xC3, 0xE2, 0xF0, 0x82, 0xAC, 0x9F, $0][Int($0 % 8)] }
      #expect(SecretBytes(bytes).isText == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
    }
  }

  @Test func names() {
    func name(_ change: (inout VaultItem) -> Void) -> String {
      var item = VaultItem(service: "com.example.notes", account: "auth", value: SecretBytes([]))
      change(&item)
      return item.description
    }
    #expect(name { _ in } == "com.example.notes/auth")
    #expect(name { $0.account = nil } == "com.example.notes")
    #expect(name { $0.service = "" } == "/auth")
    #expect(name { ($0.service, $0.account) = (nil, nil) } == "(no name)")
    #expect(name { $0.accessGroup = "group.x" } == "com.example.notes/auth [group.x]")
    #expect(
      name { ($0.accessGroup, $0.isSynchronizable) = ("g", true) }
        == "com.example.notes/auth [g, synchronizable]")
    #expect(name { $0.account = "Zoë 😀" } == "com.example.notes/Zoë 😀")
    #expect(name { $0.account = "a\nb\u{1b}[31m" } == "com.example.notes/a\\x0ab\\x1b[31m")
    var server = VaultItem(.internetPassword, account: "auth", value: SecretBytes([]))
    server[.server] = "mail.example.com"
    #expect(server.description == "auth@mail.example.com")
    server[.protocol] = "imap"
    server[.port] = "143"
    server[.path] = "x"
    #expect(server.description == "imap://auth@mail.example.com:143/x")
  }

  @Test func identityOfItems() throws {
    var vault = try Vault(new: keys())
    let plain = VaultItem(service: "s", account: "a", value: SecretBytes([1]))
    var synchronizable = plain
    synchronizable.isSynchronizable = true
    var elsewhere = plain
    elsewhere.accessGroup = "group.x"
    var relabelled = plain
    relabelled.label = "other"
    for item in [plain, synchronizable, elsewhere, relabelled] { vault.put(item) }
    #expect(vault.items.count == 3)
    #expect(vault[plain.id] == relabelled)
    #expect(vault[VaultItem.ID(service: "s", account: "a", accessGroup: "group.x")] == elsewhere)
    #expect(vault.remove(elsewhere.id) == elsewhere && vault.remove(elsewhere.id) == nil)
    #expect(vault.sorted.map(\.isSynchronizable) == [false, true])
  }

  @Test func tenThousandItemsAndLargeValues() throws {
    let keys = try keys()
    var vault = try Vault(new: keys)
    for number in 0..<10_000 {
      vault.put(
        VaultItem(service: "s\(number % 7)", account: "\(number)", value: SecretBytes([UInt8(number % 251)])))
    }
    var random = SeededRandom(seed: 1)
    let large = SecretBytes(random.bytes(1 << 20))
    vault.put(VaultItem(service: "large", value: large))
    let opened = try Vault(opening: vault.sealed(), with: keys, path: "v")
    #expect(opened == vault)
    #expect(opened[VaultItem.ID(service: "large")]?.value == large)
  }

  @Test func valuesAreNotShown() throws {
    let item = VaultItem(service: "s", value: SecretBytes(Array("made-up-canary".utf8)))
    var vault = try Vault(new: keys())
    vault.put(item)
    var shown = String(describing: item) + String(reflecting: item) + "\(vault)" + String(reflecting: vault)
    dump(vault, to: &shown)
    let bytes = Array("made-up-canary".utf8)
    for secret in ["made-up-canary", "\(bytes)".dropFirst().dropLast().description] {
      #expect(!shown.contains(secret))
    }
  }
}

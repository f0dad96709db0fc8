@testable import AppStores
@testable import Cryptography

extension FuzzTarget {
  /// The document in a vault.
  func readVault(_ bytes: [UInt8]) throws {
    let document = try Vault(decoding: SecretBytes(bytes), path: nil)
    guard try Vault(decoding: document.encoded(), path: nil) == document else {
      fatalError("what is written is not what is read")
    }
  }
}

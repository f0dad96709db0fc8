import Cryptography
import Foundation

/// The samples that make_device_backup.py wrote.
enum Samples {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Samples")
  static let password = SecretBytes(Array("correct horse".utf8))

  static func path(_ name: String) -> String { folder.appending(path: name).path }

  static func encrypted(_ name: String) -> URL { folder.appending(path: "encrypted/\(name)") }
}

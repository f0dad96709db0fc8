import Foundation
import TestSupport

/// Made-up secrets, each with a mark that is found again in whatever form it comes out.
enum Canary: String, CaseIterable {
  /// Lives in settings, databases and files: in the container, in what an undo keeps of it, in plain archives.
  case plain = "q7Zk3VwX9pLm"
  /// Lives in a setting until it is moved to the vault; afterwards nowhere in the clear.
  case moved = "r8Yj4UvW0oKn"
  /// Values of the vault, passphrases, secret keys: nowhere but in the files that the test itself gives or asks for.
  case sealed = "s9Xh5TuV1nJb"

  static let pin = 739_184_265
  static let card = 4_929_173_648_291_735

  /// A value with the mark at its start, since what is cut is cut at its end.
  func value(_ place: String) -> String { "\(rawValue)-\(place)-\(rawValue)" }
}

struct CanaryNeedles {
  private var needles: [(name: String, bytes: Data)] = []

  /// - Parameter keys: keys as age writes them, which are text already: nobody encodes them once more.
  init(_ texts: [String], keys: [String] = []) {
    for key in keys { add("as it is", key, Array(key.utf8)) }
    for text in texts {
      let bytes = Array(text.utf8)
      add("as it is", text, bytes)
      add("in UTF-16", text, Array(text.utf16).flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] })
      add("in UTF-16", text, Array(text.utf16).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] })
      let hex = bytes.map { String($0, radix: 16) }.joined()
      add("in hexadecimal", text, Array(hex.utf8))
      add("in hexadecimal", text, Array(hex.uppercased().utf8))
      add("percent-encoded", text, bytes.flatMap { Array("%\(String($0, radix: 16))".utf8) })
      add("percent-encoded", text, bytes.flatMap { Array("%\(String($0, radix: 16).uppercased())".utf8) })
      // Base64 looks different at each of three places; what depends on the neighbours is left out.
      for shift in 0..<3 {
        let encoded = Data(Array(repeating: 0, count: shift) + bytes).base64EncodedString()
        let start = (shift * 8 + 5) / 6
        let inner = encoded.dropFirst(start).prefix((shift + bytes.count) * 8 / 6 - start)
        add("in base64", text, Array(inner.utf8))
        let other = inner.replacing("+", with: "-").replacing("/", with: "_")
        if other != inner { add("in base64", text, Array(other.utf8)) }
      }
    }
  }

  private mutating func add(_ form: String, _ text: String, _ bytes: [UInt8]) {
    needles.append(("\(text) \(form)", Data(bytes)))
  }

  func found(in bytes: Data) -> [String] {
    needles.compactMap { bytes.holds($0.bytes) ? $0.name : nil }
  }

  func found(in text: String) -> [String] { found(in: Data(text.utf8)) }
}

extension Canary {
  /// The needles of one kind of canary; keys are secret texts of their own.
  static func needles(_ kind: Canary, keys: [String] = []) -> CanaryNeedles {
    switch kind {
    case .plain: CanaryNeedles([kind.rawValue, String(pin), String(card)])
    case .moved: CanaryNeedles([kind.rawValue])
    case .sealed: CanaryNeedles([kind.rawValue], keys: keys)
    }
  }
}

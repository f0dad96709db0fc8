/// Keys and tokens that tell what they are by how they begin.
enum SecretToken {
  private struct Form {
    var beginning: [UInt8]
    /// How many characters of a token follow at least.
    var length: Int

    init(_ beginning: String, _ length: Int) {
      (self.beginning, self.length) = (Array(beginning.utf8), length)
    }
  }

  /// By their first byte.
  private static let forms: [UInt8: [Form]] = Dictionary(grouping: list) { $0.beginning.first ?? 0 }

  private static let list: [Form] =
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"].map { Form($0, 20) }
    + [
      "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-",
      "glffct-",
    ].map { Form($0, 16) }
    + ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.", "xoxc-", "xoxd-", "xapp-"].map
  {
    Form($0, 10)
  }
    + ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"].map { Form($0, 10) }
    // Amazon's identifiers of keys, sixteen capitals and digits behind.
    + ["AKIA", "ASIA", "ABIA", "ACCA"].map { Form($0, 16) }
    + [
      Form("AIza", 35), Form("ya29.", 20), Form("GOCSPX-", 20), Form("1//0", 30), Form("npm_", 30),
      Form("pypi-AgE", 30), Form("SG.", 40), Form("sk-ant-", 20), Form("sk-proj-", 20), Form("sk-", 32),
      Form("shpat_", 30), Form("shpss_", 30), Form("dop_v1_", 40), Form("hf_", 30), Form("sq0atp-", 20),
      Form("sq0csp-", 20), Form("EAACEdEose0cBA", 0), Form("AGE-SECRET-KEY-1", 10),
      Form("age-secret-key-1", 10),
      Form("AGE-PLUGIN-", 10), Form("PuTTY-User-Key-File", 0), Form("eyJ", 37),
    ]

  /// Whether one begins at an index, where a word does.
  static func begins(at index: Int, in bytes: [UInt8]) -> Bool {
    guard let forms = forms[bytes[index]] else { return false }
    return forms.contains { form in
      guard bytes[index...].starts(with: form.beginning) else { return false }
      let rest = bytes[(index + form.beginning.count)...].prefix(4096).prefix(while: isTokenByte)
      if form.beginning.count == 4, form.length == 16 { return isKeyIdentifier(rest) }
      // What begins in base64 like a JSON object; a short one is a JSON Web Token when it has its dots.
      if form.beginning == Array("eyJ".utf8), isWebToken(rest) { return true }
      return rest.count >= form.length
    }
  }

  private static func isKeyIdentifier(_ rest: ArraySlice<UInt8>) -> Bool {
    rest.count == 16
      && rest.allSatisfy { SecretText.isDigit($0) || ($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z")) }
  }

  private static func isWebToken(_ rest: ArraySlice<UInt8>) -> Bool {
    let parts = rest.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count >= 3 && parts[0].count >= 8
      && parts[1].count + (parts.count > 3 ? parts[2].count : 0) >= 8
  }

  /// The bytes of base64 in both alphabets, and what tokens put between.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    SecretText.isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || "-._~+/=".utf8.contains(byte)
  }

  /// Whether a whole text looks like a token that no known service made: one long word of letters and digits.
  static func isLikely(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count >= 12, bytes.allSatisfy({ isTokenByte($0) || $0 == UInt8(ascii: ":") }) else {
      return false
    }
    let digits = bytes.count(where: SecretText.isDigit)
    let letters = bytes.count { ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) }
    // Neither words nor versions; nor a date, which is digits with a T.
    if digits >= 2 && letters >= 3 { return true }
    return bytes.count >= 24 && letters > 0 && mixesCases(bytes)
  }

  private static func mixesCases(_ bytes: [UInt8]) -> Bool {
    let changes = zip(bytes, bytes.dropFirst()).count { isUpper($0) != isUpper($1) }
    return changes * 3 > bytes.count
  }

  private static func isUpper(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
  }
}

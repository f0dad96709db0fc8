/// What the name of a setting, a column or a field says about its value.
package enum SecretName: Int, Sendable, Comparable {
  /// Nothing.
  case plain
  /// What looks like a token is one: `key`, `auth`.
  case suspicious
  /// A short number is a secret, and what looks like a token: `pin`, `otp`, `cvv`.
  case code
  /// The value is a secret, whatever it looks like: `auth_token`, `userPassword`, `api-key`.
  case secret

  /// Whether one says more than another.
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// Longer names are no names but values.
  private static let lengthLimit = 200

  /// Judges a name by its words, in camelCase, snake_case, kebab-case or with dots: `tokenizer` is one word, and none
  /// of a secret's.
  package init(_ name: String) {
    let words = name.utf8.count > Self.lengthLimit ? [] : Self.words(name)
    guard let last = words.last else {
      self = .plain
      return
    }
    self = Self.judge(words)
    // Many of them are as likely those of a sport.
    if self == .secret, last == "session", name.lowercased().hasSuffix("sessions") {
      self = .suspicious
    }
    let isAbout =
      words.count > 1 && (SecretWords.about.contains(last) || SecretWords.verbs.contains(words[0]))
    if isAbout && self > .suspicious { self = .suspicious }
  }

  /// What a name says inside of something whose own name was judged: all in `credentials` is secret but for what is
  /// about them, such as `expiry`.
  func inside(_ outer: SecretName, name: String) -> SecretName {
    guard outer > self else { return self }
    let isAbout = Self.words(name).last.map(SecretWords.about.contains) ?? false
    return isAbout ? max(self, .suspicious) : outer
  }

  private static func judge(_ words: [String]) -> SecretName {
    if words.contains(where: isSecret) || has(words, SecretWords.secretPairs) {
      return .secret
    }
    if words.last == "session" || words == ["pass"] { return .secret }
    // A pin may be one on a map: its value has to look like a code.
    if has(words, SecretWords.codePairs) || words.contains(where: SecretWords.code.contains) {
      return .code
    }
    // What is public is meant to be seen.
    if has(words, SecretWords.publicPairs) { return .plain }
    return words.contains(where: SecretWords.suspicious.contains) ? .suspicious : .plain
  }

  /// Whether two neighbours are a pair.
  private static func has(_ words: [String], _ pairs: [String: Set<String>]) -> Bool {
    zip(words, words.dropFirst()).contains { pairs[$1]?.contains($0) == true }
  }

  private static func isSecret(_ word: String) -> Bool {
    SecretWords.secret.contains(word)
      // No ending is shorter than five letters.
      || word.utf8.count >= 5 && SecretWords.secretEndings.contains(where: word.hasSuffix)
  }

  /// The words of a name in lower case and the singular, numbers left out: `APIKeys2` is `api`, `key`.
  static func words(_ name: String) -> [String] {
    var name = name
    return name.withUTF8 { bytes in
      bytes.allSatisfy { $0 < 0x80 }
        ? words(ascii: bytes) : words(characters: String(decoding: bytes, as: UTF8.self))
    }
  }

  /// The same for most names, and much faster.
  private static func words(ascii name: UnsafeBufferPointer<UInt8>) -> [String] {
    let isUpper = { (byte: UInt8) in byte >= 0x41 && byte <= 0x5A }
    let isLower = { (byte: UInt8) in byte >= 0x61 && byte <= 0x7A }
    var words: [String] = []
    var start = 0
    func end(_ index: Int) {
      if start < index {
        words.append(singular(String(decoding: name[start..<index].lazy.map { $0 | 0x20 }, as: UTF8.self)))
      }
      start = index
    }
    for (index, byte) in name.enumerated() {
      guard isUpper(byte) || isLower(byte) else {
        end(index)
        start = index + 1
        continue
      }
      if isUpper(byte), start < index {
        let startsWord = index + 1 < name.count && isLower(name[index + 1])
        if isLower(name[index - 1]) || startsWord { end(index) }
      }
    }
    end(name.count)
    return words
  }

  private static func words(characters name: String) -> [String] {
    var words: [String] = []
    var word: [Character] = []
    func end() {
      if !word.isEmpty { words.append(singular(String(word).lowercased())) }
      word = []
    }
    let characters = Array(name)
    for (index, character) in characters.enumerated() {
      guard character.isLetter else {
        end()
        continue
      }
      if character.isUppercase, let previous = word.last {
        let startsWord = index + 1 < characters.count && characters[index + 1].isLowercase
        // `authToken` and the K of `APIKey` start a word; so does no letter of `TOKEN`.
        if previous.isLowercase || startsWord { end() }
      }
      word.append(character)
    }
    end()
    return words
  }

  private static func singular(_ word: String) -> String {
    guard word.utf8.count > 3, word.utf8.last == UInt8(ascii: "s"), !word.hasSuffix("ss"), word.count > 3,
      !SecretWords.about.contains(word)
    else { return word }
    return String(word.dropLast())
  }
}

/// What the name of a setting, a column or a field says about its value.
public enum SecretName: Int, Sendable, Comparable {
  /// Nothing.
  case plain
  /// What looks like a token is one: `key`, `auth`.
  case suspicious
  /// A short number is a secret, and what looks like a token: `pin`, `otp`, `cvv`.
  case code
  /// The value is a secret, whatever it looks like: `auth_token`, `userPassword`, `api-key`.
  case secret

  /// Whether one says more than another.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// Longer names are no names but values.
  private static let lengthLimit = 200

  /// Judges a name by its words, in camelCase, snake_case, kebab-case or with dots: `tokenizer` is one word, and none
  /// of a secret's.
  public init(_ name: String) {
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
    let pairs = zip(words, words.dropFirst()).map { [$0, $1] }
    if words.contains(where: isSecret) || pairs.contains(where: SecretWords.secretPairs.contains) {
      return .secret
    }
    if words.last == "session" || words == ["pass"] { return .secret }
    // A pin may be one on a map: its value has to look like a code.
    if pairs.contains(where: SecretWords.codePairs.contains)
      || words.contains(where: SecretWords.code.contains)
    {
      return .code
    }
    // What is public is meant to be seen.
    if pairs.contains(["public", "key"]) { return .plain }
    return words.contains(where: SecretWords.suspicious.contains) ? .suspicious : .plain
  }

  private static func isSecret(_ word: String) -> Bool {
    SecretWords.secret.contains(word) || SecretWords.secretEndings.contains(where: word.hasSuffix)
  }

  /// The words of a name in lower case and the singular, numbers left out: `APIKeys2` is `api`, `key`.
  static func words(_ name: String) -> [String] {
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
    word.count > 3 && word.hasSuffix("s") && !word.hasSuffix("ss") && !SecretWords.about.contains(word)
      ? String(word.dropLast()) : word
  }
}

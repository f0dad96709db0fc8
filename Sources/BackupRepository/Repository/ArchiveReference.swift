import DrydockErrors

/// What a person says to mean one archive of a repository.
enum ArchiveReference: Equatable {
  /// The beginning of an archive's id.
  case id(String)
  /// The newest one: of an owner, else of all, and not later than a time, else at all.
  case newest(of: String?, notAfter: String?)

  /// Fewer digits would fit another archive soon.
  private static let shortestID = 4

  /// - Throws: ``DrydockError`` with code `notFound` for what can mean none.
  init(_ text: String, repository: String) throws {
    if let at = text.lastIndex(of: "@") {
      // The name of an instance may have an `@` itself.
      let (owner, when) = (String(text[..<at]), String(text[text.index(after: at)...]))
      guard when == "latest" || ArchiveTime.beginning(when) != nil else {
        throw DrydockError(
          .notFound,
          "\(text.printable) names no time; say INSTANCE@latest, INSTANCE@2026-11-14 or "
            + "INSTANCE@2026-11-14T12:00:00Z, in UTC", path: repository)
      }
      self = .newest(of: owner, notAfter: ArchiveTime.beginning(when))
    } else if text == "latest" {
      self = .newest(of: nil, notAfter: nil)
    } else if text.contains("-"), let time = ArchiveTime.beginning(text) {
      self = .newest(of: nil, notAfter: time)
    } else {
      guard !text.isEmpty, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
        throw DrydockError(
          .notFound,
          "no archive is \(text.printable); say the beginning of an id, INSTANCE@latest or INSTANCE@2026-11-14, "
            + "which `drydock list -r` shows", path: repository)
      }
      guard text.count >= Self.shortestID else {
        throw DrydockError(
          .notFound, "\(text) is too short for an id; give \(Self.shortestID) digits of it or more",
          path: repository)
      }
      self = .id(text.lowercased())
    }
  }
}

extension String {
  /// With control characters written out, which would act on a terminal: what archives say of themselves is anybody's.
  package var printable: String {
    guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
    return unicodeScalars.map {
      $0.properties.generalCategory == .control
        ? "\\u{\(String($0.value, radix: 16))}" : String($0)
    }.joined()
  }
}

import DrydockErrors

/// The rules for member names.
package enum MemberName {
  /// The longest name, in bytes.
  package static let maximumLength = 65_536
  /// The most components: a walk holds a directory open for each, and a process has about a thousand descriptors.
  package static let maximumDepth = 512

  /// Throws `DrydockError` (`.unsafeName`, or `.limit` when too long) unless the name is relative and clean: not
  /// empty, no leading or trailing `/`, no NUL, no component that is empty, `.` or `..`.
  package static func validate(_ name: [UInt8]) throws {
    guard !name.isEmpty else { throw unsafe(name, "is empty") }
    guard name.count <= maximumLength else {
      throw DrydockError(
        .limit, "a member's name has \(name.count) bytes, more than \(maximumLength); leave that path out")
    }
    guard name.first != slash else { throw unsafe(name, "is absolute") }
    guard !name.contains(0) else { throw unsafe(name, "has a NUL byte") }
    let components = name.split(separator: slash, omittingEmptySubsequences: false)
    guard components.count <= maximumDepth else {
      throw DrydockError(
        .limit,
        "a member lies \(components.count) directories deep, more than \(maximumDepth); leave that path out")
    }
    for component in components {
      if component.isEmpty { throw unsafe(name, "has an empty component") }
      if component.elementsEqual(dot) { throw unsafe(name, "has the component \".\"") }
      if component.elementsEqual(dotDot) { throw unsafe(name, "has the component \"..\"") }
    }
  }

  static let slash = UInt8(ascii: "/")
  private static let dot = Array(".".utf8)
  private static let dotDot = Array("..".utf8)

  static func unsafe(_ name: [UInt8], _ why: String) -> DrydockError {
    DrydockError(
      .unsafeName,
      "the member name \"\(name.printable)\" \(why); archives with such a member are neither written nor unpacked"
    )
  }
}

import Formats

/// Why an `sql` step may destroy data: one reason for its only table, or one for each table.
enum DestructiveReason: Sendable, Equatable {
  case text(String)
  /// By the table's name in lower case.
  case tables([String: String])

  /// For those who only ask whether there is one.
  var text: String {
    switch self {
    case .text(let text): text
    case .tables(let reasons):
      reasons.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: "; ")
    }
  }

  /// Reads the argument `destructive` of an `sql` step.
  init(_ node: YAMLNode) throws {
    guard node.mapping != nil else {
      let reason = try node.text("`destructive`")
      guard !reason.isEmpty else { throw node.position.error("`destructive` says why: give a reason") }
      self = .text(reason)
      return
    }
    var reasons: [String: String] = [:]
    for pair in try node.pairs("`destructive`").pairs {
      let table = pair.key.source
      let reason = try pair.value.text("the reason for `\(table)`")
      guard !reason.isEmpty else { throw pair.value.position.error("`destructive` says why: give a reason") }
      reasons[table.lowercased()] = reason
    }
    guard !reasons.isEmpty else { throw node.position.error("`destructive` names no table") }
    self = .tables(reasons)
  }

  /// Reads a directive of a `.sql` file: text, or a mapping in braces.
  init(directive text: String, at position: YAMLPosition) throws {
    guard text.hasPrefix("{") else {
      guard !text.isEmpty else {
        throw position.error("`destructive` says why: add the reason after it")
      }
      self = .text(text)
      return
    }
    do {
      guard let node = try YAMLDocument(Array(text.utf8), file: position.file).root else {
        throw position.error("`destructive` names no table")
      }
      self = try Self(node)
    } catch {
      throw position.error(
        "`destructive` is a reason, or one for each table: {trip: \"rebuilt\"}", cause: error)
    }
  }
}

/// What a step says of the data that it destroys, for those who count rows.
package enum AnnouncedLoss: Sendable, Hashable {
  /// It destroys none.
  case nothing
  /// It removes whole files, settings or items.
  case everything
  /// It destroys data of these tables only.
  case tables(Tables)

  /// Tables by name, in lower case.
  package struct Tables: Sendable, Hashable {
    /// What becomes of a table's rows.
    package enum Fate: Sendable, Hashable {
      /// Some or all are deleted.
      case deleted
      /// The table is dropped; its rows may have been copied to others.
      case dropped(successors: Set<String>)
    }

    package internal(set) var fates: [String: Fate] = [:]
    /// The tables of which a reason without a name could be meant, where there are several.
    package internal(set) var unclear: [String] = []

    /// No table.
    package init() {}

    /// Tables of which a reason could be meant.
    init(unclear: [String]) { self.unclear = unclear }
  }
}

import AppContainer
import AppStores
import ContainerTransaction
import FileSystem
import Formats
import Foundation
import GRDB
import MigrationEngine

/// What settings, the vault, a document or another file has, value by value. Databases are compared by ``ValueComparison``.
struct StoredValues {
  enum Kind: String {
    case setting
    case item = "vault item"
    case field, file
  }

  var kind: Kind
  /// By the name in the store, such as `window.width`; that of a file which is not a document is empty. Collections with elements
  /// are left out, since their elements are here. The name of a list's element has its value behind a NUL.
  var values: [String: PropertyListValue] = [:]
  /// The content as it is, of a document too; nil for settings and the vault.
  var whole: PropertyListValue?

  /// The name of what a link points to.
  static let link = "\0link"

  /// The content of a larger file is its digest.
  private static let documentLimit: UInt64 = 1 << 20

  /// Nil for a directory, a database, and what is not there.
  init?(at path: ContainerPath, on stage: StagedContainer) throws {
    guard let status = try stage.status(of: path) else { return nil }
    if status.type == .symbolicLink {
      kind = .file
      let place = stage.location(of: path)
      values[Self.link] = .data(try place.directory.linkTarget(place.path))
      return
    }
    guard status.type == .file, try !stage.isDatabase(path) else { return nil }
    if path == stage.container.vaultPath, let vault = try? stage.vault() {
      kind = .item
      for item in vault.sorted {
        let bytes = item.value.withBytes { Array($0) }
        add(DecodedDocument(bytes: bytes)?.value ?? .data(bytes), "\(item.id)")
        for (attribute, text) in item.attributes where !item.itemClass.identifying.contains(attribute) {
          values["\(item.id) \(attribute.rawValue)"] = .string(text)
        }
      }
    } else if stage.container.isSettings(path), let settings = try? stage.defaults(path) {
      kind = .setting
      for key in settings.root.keys { add(settings.root[key], key.text) }
    } else if status.size > Self.documentLimit {
      kind = .file
      values[""] = .string("\(try stage.digest(of: path))")
    } else {
      let bytes = try stage.read(path)
      whole = .data(bytes)
      let document = DecodedDocument(bytes: bytes)
      kind = document == nil ? .file : .field
      add(document?.value ?? .data(bytes), "")
    }
  }

  private mutating func add(_ value: PropertyListValue?, _ name: String) {
    switch value {
    case .dictionary(let fields)? where !fields.isEmpty:
      // The name of a class in a keyed archive is not the app's data.
      for key in fields.keys where key != "$class" {
        add(fields[key], name.isEmpty ? key.text : "\(name).\(key.text)")
      }
    case .array(let elements)? where !elements.isEmpty:
      var counts: [String: Int] = [:]
      for (index, element) in elements.enumerated() {
        switch element {
        case .dictionary, .array: add(element, "\(name)[\(index)]")
        default:
          // An element in another place is the same one.
          let text = StoreComparison.text(element)
          counts[text, default: 0] += 1
          add(element, "\(name)[]\0\(text)\0\(counts[text, default: 0])")
        }
      }
    case .set(let set)?: add(.array(set.strings.map { .string($0) }), name)
    case .string(let text)? where "{[".contains(text.first ?? " "):
      let document = DecodedDocument(.string(text))
      if let document { add(document.value, name) } else { values[name] = value }
    case let value?: values[name] = value
    case nil: break
    }
  }
}

/// Finds the values outside of databases that a step takes from a container for good.
struct StoreComparison {
  private let before: [ContainerPath: StoredValues], after: [ContainerPath: StoredValues]
  /// What all paths had.
  private let all: [ContainerPath: StoredValues]
  /// The values that are at places which did not have them.
  private let gained: Set<String>
  /// Values of places that are gone.
  private let vacated: Set<String>

  /// - Parameters:
  ///   - all, now: what all paths had and have.
  ///   - changed: those that differ.
  init(
    _ all: [ContainerPath: StoredValues], _ now: [ContainerPath: StoredValues], changed: [ContainerPath]
  ) {
    let (before, after) = (all.part(changed), now.part(changed))
    (self.all, self.before, self.after) = (all, before, after)
    let values = after.flatMap { path, stored in
      stored.values.filter { name, value in before[path]?.values[name]?.matches(value) != true }.values
    }
    gained = Set((values + after.values.compactMap(\.whole)).map(Self.text))
    vacated = Set(
      before.flatMap { path, stored in
        stored.values.filter { after[path]?.values[$0.key] == nil }.map { Self.text($0.value) }
      })
  }

  /// - Parameters:
  ///   - steps: what was done.
  ///   - given: the names of values that are not of the container.
  ///   - isElsewhere: whether a database has got the value.
  func losses(
    of steps: [StepOutline], given: [ContainerPath: Set<String>],
    isElsewhere: (PropertyListValue) throws -> Bool
  ) rethrows -> [Loss] {
    // These put something else in the place of what is there, instead of converting it.
    let overwrites = steps.allSatisfy { $0.writing == .replacement }
    let isPatch = steps.allSatisfy { $0.writing == .patch }
    var losses: [Loss] = []
    for (path, old) in before.sorted(by: { $0.key < $1.key }) {
      let new = after[path] ?? successor(of: old)
      if let whole = old.whole, new?.kind != old.kind {
        // The same content elsewhere, or in another form.
        if try new == nil && (isGained(whole) || isEncoded(path) || isElsewhere(whole)) { continue }
        if let now = new?.whole, let kind = Self.kind(whole, now) {
          losses.append(loss(path, "", kind, of: .file))
          continue
        }
      }
      var gone: [String] = []
      for (name, value) in old.values.sorted(by: { $0.key < $1.key }) where !Self.isEmpty(value) {
        let now =
          new?.values[name]
          ?? steps.first { $0.converted.first == name }.flatMap { new?.values[$0.converted[1]] }
        if now?.matches(value) == true || isGained(value) { continue }
        guard let now else {
          // An attribute goes with its item.
          let isPart = old.kind == .item && gone.contains { name.hasPrefix($0 + " ") }
          if try !isPart && !isElsewhere(value) { gone.append(name) }
          continue
        }
        let text = Self.text(now)
        let isOther =
          overwrites || vacated.contains(text) && (steps.count == 1 || text.count > 8)
          || [.item, .file].contains(old.kind) && text.count > 3 && isKnown(text)
          || isPatch && text.count > 3
            && old.values.values.contains { Self.text($0) == text }
        guard let kind = Self.kind(value, now) ?? (isOther ? .replaced : nil), try !isElsewhere(value)
        else { continue }
        losses.append(loss(path, name, kind, of: old.kind))
      }
      // A value under a new name that was converted at once.
      var fresh =
        new?.values.filter { name, value in
          old.values[name] == nil && name != StoredValues.link && !Self.isEmpty(value)
            && !vacated.contains(Self.text(value)) && !isPatch && given[path]?.contains(name) != true
        } ?? [:]
      // A value that became a document has its own fields in its place, and no other's.
      gone.removeAll { name in
        let fields = fresh.keys.filter { $0.hasPrefix(name + ".") || $0.hasPrefix(name + "[") }
        for field in fields { fresh[field] = nil }
        return !fields.isEmpty
      }
      if gone.count == 1, fresh.count == 1, let value = old.values[gone[0]], let now = fresh.first?.value,
        let kind = Self.kind(value, now)
      {
        losses.append(loss(path, gone[0], kind, of: old.kind))
      }
      if fresh.count >= gone.count { continue }
      if new == nil {
        let noun = old.kind == .file ? "file" : old.kind.rawValue
        losses.append(Loss(path: path, name: "", kind: .gone, count: gone.count, noun: noun))
      } else {
        losses += gone.map { loss(path, $0, .gone, of: old.kind) }
      }
    }
    return losses
  }

  /// Whether a new file has the name of one that is gone up to its extension: it is the same in another format.
  private func isEncoded(_ path: ContainerPath) -> Bool {
    let stem = path.nameString.prefix { $0 != "." }
    return !stem.isEmpty
      && after.keys.contains {
        before[$0] == nil && $0.parent == path.parent && $0.nameString.prefix { $0 != "." } == stem
      }
  }

  /// The new file that has most of the names of one that is gone: it was moved, and converted.
  private func successor(of old: StoredValues) -> StoredValues? {
    let names = Set(old.values.keys).subtracting([""])
    return after.filter { before[$0.key] == nil && !names.isDisjoint(with: $0.value.values.keys) }.max {
      let shared = ($0.value, $1.value)
      return names.intersection(shared.0.values.keys).count < names.intersection(shared.1.values.keys).count
    }?.value
  }

  private func loss(
    _ path: ContainerPath, _ name: String, _ kind: Loss.Kind, of store: StoredValues.Kind
  ) -> Loss {
    Loss(
      path: path, name: String(name.prefix { $0 != "\0" }), kind: kind, count: 1, noun: store.rawValue)
  }

  /// Whether an item or a file had a value.
  private func isKnown(_ text: String) -> Bool {
    all.values.contains { stored in
      [.item, .file].contains(stored.kind) && stored.values.values.contains { Self.text($0) == text }
    }
  }

  /// Whether a value is at a place which did not have it, also in another type.
  private func isThere(_ value: PropertyListValue) -> Bool {
    let text = Self.text(value)
    return gained.contains(text) || gained.contains(Data(text.utf8).base64EncodedString())
  }

  /// The same, or as a part of one.
  private func isGained(_ value: PropertyListValue) -> Bool {
    let text = Self.text(value)
    // A short one is in others by chance.
    return isThere(value) || text.count > 2 && gained.contains { $0.contains(text) }
  }

  private static func isEmpty(_ value: PropertyListValue) -> Bool {
    switch value {
    case .array, .dictionary: true
    case .data(let bytes): bytes.isEmpty
    default: text(value).isEmpty
    }
  }

  /// The same for a value in any type that holds it.
  static func text(_ value: PropertyListValue) -> String {
    switch value {
    case .string(let text):
      let date = text.first?.isNumber == true ? try? Date(text, strategy: .iso8601) : nil
      return date.map { Self.text(.date($0)) } ?? text.trimmingCharacters(in: .whitespacesAndNewlines)
    case .boolean(let value): return value ? "true" : "false"
    case .data(let bytes):
      return String(validating: bytes, as: UTF8.self)?.trimmingCharacters(in: .whitespacesAndNewlines)
        ?? Data(bytes).base64EncodedString()
    case .date(let date): return text(.real(date.timeIntervalSince1970))
    default:
      guard let number = number(value) else { return "\(value)" }
      return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
  }

  private static func number(_ value: PropertyListValue) -> Double? {
    switch value {
    case .unsigned(let number): Double(number)
    case .real(let number): number
    case .single(let number): Double(number)
    default: value.anyInteger.map { Double($0) }
    }
  }

  /// What a changed value lost for certain; nil for nothing.
  private static func kind(_ old: PropertyListValue, _ new: PropertyListValue) -> Loss.Kind? {
    if isEmpty(new) { return .emptied }
    if let before = number(old) {
      if case .boolean = new { return before == 0 || before == 1 ? nil : .rounded }
      guard let after = number(new), before != after, abs(before - after) < 1 else { return nil }
      let digits = (0...4).map { pow(10, Double($0)) }
      return digits.contains {
        (after * $0).rounded() == after * $0 && before * $0 != (before * $0).rounded()
      }
        ? .rounded : nil
    }
    switch (old, new) {
    case (.string(let before), _) where number(new) != nil:
      return before.allSatisfy(\.isNumber) && text(new) != before ? .rounded : nil
    case (.string, .string):
      let (before, after) = (text(old), text(new).trimmingCharacters(in: ["…", ".", " "]))
      return after.count < before.count && !after.isEmpty && before.hasPrefix(after)
        && before.trimmingCharacters(in: ["…", ".", " "]) != after ? .shortened : nil
    case (.data(let before), .data(let after)):
      return after.count < before.count && before.starts(with: after) ? .shortened : nil
    case (.date(let before), .date(let after)):
      let (before, after) = (before.timeIntervalSince1970, after.timeIntervalSince1970)
      return abs(before - after) < 86_400 && after.truncatingRemainder(dividingBy: 60) == 0
        && before.truncatingRemainder(dividingBy: 60) != 0 ? .rounded : nil
    default: return nil
    }
  }
}

extension StoreComparison {
  /// The same for a value of a database, which must be there as it is.
  func isGained(_ value: DatabaseValue) -> Bool {
    PropertyListValue(value).map(isThere) ?? true
  }
}

extension PropertyListValue {
  /// What a column of a database may have for it.
  var databaseValues: [DatabaseValue] {
    switch self {
    case .data(let bytes): [Data(bytes).databaseValue, StoreComparison.text(self).databaseValue]
    case .boolean(let value): [value.databaseValue, StoreComparison.text(self).databaseValue]
    case .date(let date):
      [
        date.timeIntervalSince1970.databaseValue, date.timeIntervalSinceReferenceDate.databaseValue,
        date.ISO8601Format().databaseValue,
      ]
    default: [StoreComparison.text(self).databaseValue]
    }
  }
}

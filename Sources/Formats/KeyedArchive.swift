import DrydockErrors

/// The conversion of values in a keyed archive that property lists and JSON cannot represent directly.
package struct KeyedArchiveOptions: Sendable {
  /// The conversion of an instance of an app's class to a dictionary of its fields.
  package struct ClassRule: Sendable {
    /// New names of fields by their old ones.
    package var names: [String: String]
    /// Omitted fields, such as a reference back to the owner.
    package var dropped: Set<String>

    package init(names: [String: String] = [:], dropped: Set<String> = []) {
      (self.names, self.dropped) = (names, dropped)
    }
  }

  /// The conversion of a dictionary whose keys are not all text.
  package enum Keys: String, CaseIterable, Sendable {
    /// An error.
    case fail
    /// Numbers, Bools and dates become text.
    case text
    /// A list of alternating keys and values, as Swift's `Codable` reads it.
    case pairs
  }

  /// The conversion of a decimal number.
  package enum Decimals: String, CaseIterable, Sendable {
    /// An integer or a real; more digits than these have are an error.
    case number
    /// Its digits, as text.
    case text
  }

  /// The app's classes by name.
  package var classes: [String: ClassRule] = [:]
  /// The key for the class name in a dictionary of a ``ClassRule``, if any.
  package var classKey: String?
  package var keys = Keys.fail
  package var decimals = Decimals.number
  /// Whether what cannot be converted is shown instead of being an error: unknown classes by their fields, cycles and what is
  /// nested too deeply by a mark.
  var isForDisplay = false
  /// The most bytes of all values, approximately; shared objects count each time.
  var weightLimit = KeyedArchiveReader.weightLimit

  /// The conversion for people, of any class.
  package static var display: KeyedArchiveOptions {
    var options = KeyedArchiveOptions()
    (options.classKey, options.keys, options.decimals) = ("$class", .text, .text)
    (options.isForDisplay, options.weightLimit) = (true, 4 << 20)
    return options
  }

  /// The defaults: Foundation's classes only.
  package init() {}
}

/// Reads the output of `NSKeyedArchiver` without instantiating any class: a keyed archive is a property list of numbered
/// objects that refer to each other. It is hostile input: time and memory are bounded by its size.
package struct KeyedArchiveReader {
  /// The most levels of nesting.
  static let depthLimit = 100
  /// The most levels that are shown.
  private static let shownDepth = 40
  /// The most bytes of all values, approximately; shared objects count each time.
  static let weightLimit = 64 << 20
  /// The weight of a value besides its bytes.
  private static let valueWeight = 32

  let options: KeyedArchiveOptions
  private let objects: [PropertyListValue]
  private var known: [Int: MeasuredValue] = [:]
  /// The objects being read, outermost first, each with its current field.
  private var open: [(object: Int, className: String?, field: String?)] = []
  private var isOpen: Set<Int> = []

  /// Reads a keyed archive, binary or XML.
  ///
  /// - Returns: the root object, or a dictionary of the top objects by name; null is an unknown value
  ///   (``PropertyListValue/isNull``).
  /// - Throws: `DrydockError`: `malformed` when it is corrupt or not a keyed archive; `unsupported` for a class, key or
  ///   number that `options` do not cover, and for cycles.
  package static func read(_ bytes: [UInt8], _ options: KeyedArchiveOptions) throws -> PropertyListValue {
    let root: PropertyListDictionary
    do { root = try PropertyListFile(bytes: bytes).root } catch let error as DrydockError {
      throw DrydockError(.malformed, "not a keyed archive: \(error.message)", cause: error)
    }
    return try read(root, options)
  }

  package static func read(_ root: PropertyListDictionary, _ options: KeyedArchiveOptions) throws
    -> PropertyListValue
  {
    guard case .string(let archiver)? = root["$archiver"] else {
      throw DrydockError(.malformed, "not a keyed archive: a property list without `$archiver`")
    }
    guard archiver == "NSKeyedArchiver" else {
      throw DrydockError(
        .unsupported, "the keyed archive was written by an archiver other than NSKeyedArchiver")
    }
    guard case .integer(100_000)? = root["$version"] else {
      throw DrydockError(.unsupported, "the keyed archive's `$version` is not 100000, the only known one")
    }
    guard case .array(let objects)? = root["$objects"] else {
      throw DrydockError(.malformed, "the keyed archive is corrupt: it has no list `$objects`")
    }
    guard case .dictionary(let top)? = root["$top"], !top.isEmpty else {
      throw DrydockError(.malformed, "the keyed archive is corrupt: it has no `$top` that names its objects")
    }
    var reader = KeyedArchiveReader(options: options, objects: objects)
    if top.count == 1, let root = top["root"] { return try reader.part(root, depth: 0).value }
    return try reader.fields(top, depth: 0).value
  }

  // MARK: Objects

  /// The value of a field, which may be a reference to an object.
  mutating func part(_ field: PropertyListValue, depth: Int) throws -> MeasuredValue {
    switch field {
    case .unknown(let opaque):
      guard let number = opaque.keyedArchiveReference else {
        throw failure(.unsupported, "has a value of unknown kind, or text that is not Unicode")
      }
      guard let index = Int(exactly: number), objects.indices.contains(index) else {
        throw failure(.malformed, "refers to object \(number) of \(objects.count)")
      }
      return try object(index, depth: depth)
    case .array(let values): return try list(values, depth: depth)
    case .dictionary(let values): return try fields(values, depth: depth)
    case .string(let text): return try checked(Self.measured(field, bytes: text.utf8.count), depth)
    case .data(let bytes): return try checked(Self.measured(field, bytes: bytes.count), depth)
    default: return try checked(Self.measured(field), depth)
    }
  }

  private mutating func object(_ index: Int, depth: Int) throws -> MeasuredValue {
    // Foundation writes this text as the first object, and refers to it for nil.
    if index == 0, objects[0] == .string("$null") { return Self.measured(.unknown(.null)) }
    if let known = known[index] { return try checked(known, depth) }
    if options.isForDisplay, isOpen.contains(index) || depth >= Self.shownDepth {
      return Self.measured(.string(isOpen.contains(index) ? "(object \(index), which contains this)" : "…"))
    }
    guard isOpen.insert(index).inserted else { throw cycle(to: index) }
    guard depth <= Self.depthLimit else { throw tooDeep }
    open.append((index, nil, nil))
    let part: MeasuredValue
    switch objects[index] {
    case .dictionary(let fields): part = try instance(fields, depth: depth)
    case .unknown(let opaque) where opaque.keyedArchiveReference != nil:
      throw failure(.malformed, "is a reference itself")
    case let simple: part = try self.part(simple, depth: depth)
    }
    open.removeLast()
    isOpen.remove(index)
    known[index] = part
    return part
  }

  private mutating func instance(_ fields: PropertyListDictionary, depth: Int) throws -> MeasuredValue {
    let name = try className(fields)
    open[open.count - 1].className = name
    let rule =
      options.classes[name] ?? (options.isForDisplay && KeyedArchiveClass(name: name) == nil ? .init() : nil)
    if let rule { return try ruled(fields, rule, name, depth: depth) }
    guard let kind = KeyedArchiveClass(name: name) else {
      throw failure(
        .unsupported,
        "is of an unknown class: name it under `classes` to convert it to a dictionary of its fields"
      )
    }
    return try kind.read(fields, from: &self, depth: depth)
  }

  /// An object's class by name; its superclasses say nothing about the meaning of its fields.
  private func className(_ fields: PropertyListDictionary) throws -> String {
    guard case .unknown(let opaque)? = fields["$class"], let number = opaque.keyedArchiveReference,
      let index = Int(exactly: number), objects.indices.contains(index),
      case .dictionary(let description) = objects[index],
      case .string(let name)? = description["$classname"]
    else { throw failure(.malformed, "has no class") }
    return name
  }

  /// An instance of an app's class.
  private mutating func ruled(
    _ fields: PropertyListDictionary, _ rule: KeyedArchiveOptions.ClassRule, _ name: String, depth: Int
  ) throws -> MeasuredValue {
    var kept: [(name: String, field: String, value: PropertyListValue)] = []
    for (field, value) in fields where field != "$class" {
      // The archiver doubles a dollar sign at the start of a field's name.
      let plain = field.hasPrefix("$$") ? String(field.dropFirst()) : field
      if rule.dropped.containsExactly(plain) { continue }
      kept.append((rule.names.first { $0.key.isExactly(plain) }?.value ?? plain, plain, value))
    }
    kept.sort { ExactText($0.name) < ExactText($1.name) }
    var whole = Self.measured(.null)
    var values: PropertyListDictionary = [:]
    for (name, field, value) in kept {
      open[open.count - 1].field = field
      guard values[name] == nil, options.classKey?.isExactly(name) != true else {
        throw failure(.unsupported, "gets the field `\(Self.shown(name))` twice")
      }
      values[name] = try add(value, to: &whole, key: name, depth: depth)
    }
    if let key = options.classKey {
      values[key] = .string(name)
      whole.weight += key.utf8.count + name.utf8.count + Self.valueWeight
    }
    whole.value = .dictionary(values)
    return try checked(whole, depth)
  }

  // MARK: Values that hold others

  mutating func list(_ values: [PropertyListValue], depth: Int) throws -> MeasuredValue {
    var whole = Self.measured(.null)
    let parts = try values.map { try add($0, to: &whole, depth: depth) }
    whole.value = .array(parts)
    return try checked(whole, depth)
  }

  private mutating func fields(_ values: PropertyListDictionary, depth: Int) throws -> MeasuredValue {
    var whole = Self.measured(.null)
    var result: PropertyListDictionary = [:]
    for (key, value) in values.sorted() {
      result[key] = try add(value, to: &whole, key: key, depth: depth)
    }
    whole.value = .dictionary(result)
    return try checked(whole, depth)
  }

  static func measured(_ value: PropertyListValue, bytes: Int = 0) -> MeasuredValue {
    MeasuredValue(value: value, weight: bytes + valueWeight)
  }

  /// Reads an element of `whole` and counts it.
  mutating func add(
    _ field: PropertyListValue, to whole: inout MeasuredValue, key: String? = nil, depth: Int
  ) throws -> PropertyListValue {
    let part = try part(field, depth: depth + 1)
    whole.count(part)
    whole.weight += key.map { $0.utf8.count + Self.valueWeight } ?? 0
    guard whole.weight <= options.weightLimit else { throw tooMuch }
    return part.value
  }

  func checked(_ part: MeasuredValue, _ depth: Int) throws -> MeasuredValue {
    guard depth + part.height <= Self.depthLimit else { throw tooDeep }
    guard part.weight <= options.weightLimit else { throw tooMuch }
    return part
  }

  // MARK: Failures

  private var tooDeep: DrydockError {
    failure(.unsupported, "is nested more than \(Self.depthLimit) deep")
  }

  private var tooMuch: DrydockError {
    failure(
      .unsupported,
      "expands to more than \(options.weightLimit >> 20) MiB of values, since its objects are referenced many times"
    )
  }

  private func cycle(to index: Int) -> DrydockError {
    let holder = open.last { $0.field != nil && $0.className != nil }
    guard let holder, let field = holder.field, let name = holder.className else {
      return failure(.unsupported, "leads back to object \(index), which contains it")
    }
    return failure(
      .unsupported,
      "leads back to object \(index), which contains it: omit a field in between, such as "
        + "`classes: {\(Self.shown(name)): {drop: [\(Self.shown(field))]}}`")
  }

  /// An error about the object being read, without values and dictionary keys.
  func failure(_ code: DrydockError.Code, _ what: String) -> DrydockError {
    guard let (object, name, _) = open.last else { return DrydockError(code, "the keyed archive \(what)") }
    let shown = name.map { " (`\(Self.shown($0))`)" } ?? ""
    return DrydockError(code, "object \(object)\(shown) of the keyed archive \(what)")
  }

  /// The name of a class or field, unless it is suspicious: a hostile file can have anything there.
  private static func shown(_ name: String) -> String {
    let isName = name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "`") }
    return isName && name.utf8.count <= 100 ? name : "…"
  }
}

extension PropertyListValue {
  /// Nil in a keyed archive, which property lists cannot represent.
  static let null = PropertyListValue.unknown(.null)

  /// Whether it represents no value.
  public var isNull: Bool { self == .null }
}

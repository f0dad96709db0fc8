import DrydockErrors

/// Reads what `NSKeyedArchiver` wrote, without making an object of any class: the archive is a property list of
/// numbered objects that refer to each other, and this walks it. An archive is hostile input: whatever is wrong with it
/// gives an error, in time and memory that its size bounds.
package struct Unarchiver {
  /// How deeply values may be nested; readers of property lists and JSON have limits of that kind, too.
  static let depthLimit = 100
  /// About how many bytes the values may be together: objects that many others refer to count each time.
  static let weightLimit = 64 << 20
  /// What a value counts besides its bytes.
  private static let valueWeight = 32

  /// A value, with what is needed to know before it is put into another one.
  struct Part {
    var value: PropertyListValue
    var weight: Int
    /// Levels of nesting in it.
    var height = 0

    init(_ value: PropertyListValue, bytes: Int = 0) {
      self.value = value
      weight = bytes + Unarchiver.valueWeight
    }
  }

  let options: UnarchiveOptions
  private let objects: [PropertyListValue]
  private var known: [Int: Part] = [:]
  /// The objects that are being read, outermost first, and the field of each that is.
  private var open: [(object: Int, className: String?, field: String?)] = []
  private var isOpen: Set<Int> = []

  /// Reads an archive, binary or XML.
  ///
  /// - Returns: its root object, or a dictionary of all its objects by name where it has others; null is an unknown value
  ///   (``PropertyListValue/isNull``).
  /// - Throws: `DrydockError`: `malformed` when it is no archive or a damaged one; `unsupported` for a class, a key or
  ///   a number that `options` do not say what becomes of, and for objects that hold themselves.
  package static func read(_ bytes: [UInt8], _ options: UnarchiveOptions) throws -> PropertyListValue {
    let file: PropertyListFile
    do {
      file = try PropertyListFile(bytes: bytes)
    } catch let error as DrydockError {
      throw DrydockError(.malformed, "not a keyed archive: \(error.message)", cause: error)
    }
    return try read(file, options)
  }

  /// Reads an archive whose property list is read already; see ``read(_:_:)-([UInt8],_)``.
  package static func read(_ file: PropertyListFile, _ options: UnarchiveOptions) throws -> PropertyListValue
  {
    guard case .string(let archiver)? = file.root["$archiver"] else {
      throw DrydockError(.malformed, "not a keyed archive: it is a property list without `$archiver`")
    }
    guard archiver == "NSKeyedArchiver" else {
      throw DrydockError(.unsupported, "the archive was written by another archiver than NSKeyedArchiver")
    }
    guard case .integer(100_000)? = file.root["$version"] else {
      throw DrydockError(.unsupported, "the archive's `$version` is not 100000, the only one that is known")
    }
    guard case .array(let objects)? = file.root["$objects"] else {
      throw DrydockError(.malformed, "the archive is damaged: it has no list `$objects`")
    }
    guard case .dictionary(let top)? = file.root["$top"], !top.isEmpty else {
      throw DrydockError(.malformed, "the archive is damaged: it has no `$top` that names its objects")
    }
    var reader = Unarchiver(objects: objects, options: options)
    if top.count == 1, let root = top["root"] { return try reader.part(root, depth: 0).value }
    return try reader.fields(top, depth: 0).value
  }

  private init(objects: [PropertyListValue], options: UnarchiveOptions) {
    self.objects = objects
    self.options = options
  }

  // MARK: Objects

  /// What a field holds: a value, or a reference to an object.
  mutating func part(_ field: PropertyListValue, depth: Int) throws -> Part {
    switch field {
    case .unknown(let opaque):
      guard let number = opaque.archiveReference else {
        throw failure(.unsupported, "holds a value of an unknown kind, or text that is not Unicode")
      }
      guard let index = Int(exactly: number), objects.indices.contains(index) else {
        throw failure(.malformed, "refers to object \(number), and the archive has \(objects.count)")
      }
      return try object(index, depth: depth)
    case .array(let values): return try list(values, depth: depth)
    case .dictionary(let values): return try fields(values, depth: depth)
    case .string(let text): return try checked(Part(field, bytes: text.utf8.count), depth)
    case .data(let bytes): return try checked(Part(field, bytes: bytes.count), depth)
    default: return try checked(Part(field), depth)
    }
  }

  private mutating func object(_ index: Int, depth: Int) throws -> Part {
    // Foundation writes this text in the first place, and refers to it for nil.
    if index == 0, objects[0] == .string("$null") { return Part(.unknown(.null)) }
    if let known = known[index] { return try checked(known, depth) }
    guard isOpen.insert(index).inserted else { throw cycle(to: index) }
    guard depth <= Self.depthLimit else { throw tooDeep }
    open.append((index, nil, nil))
    let part: Part
    switch objects[index] {
    case .dictionary(let fields): part = try instance(fields, depth: depth)
    case .unknown(let opaque) where opaque.archiveReference != nil:
      throw failure(.malformed, "is a reference itself")
    case let simple: part = try self.part(simple, depth: depth)
    }
    open.removeLast()
    isOpen.remove(index)
    known[index] = part
    return part
  }

  private mutating func instance(_ fields: PropertyListDictionary, depth: Int) throws -> Part {
    let name = try className(fields)
    open[open.count - 1].className = name
    if let rule = options.classes[name] { return try ruled(fields, rule, name, depth: depth) }
    guard let kind = ArchivedClass(name: name) else {
      throw failure(
        .unsupported,
        "is of a class that is not known here: name it under `classes`, and it becomes a dictionary of its fields"
      )
    }
    return try kind.read(fields, from: &self, depth: depth)
  }

  /// An object's class, by its own name: what it inherits from says nothing about what its fields mean.
  private func className(_ fields: PropertyListDictionary) throws -> String {
    guard case .unknown(let opaque)? = fields["$class"], let number = opaque.archiveReference,
      let index = Int(exactly: number), objects.indices.contains(index),
      case .dictionary(let description) = objects[index],
      case .string(let name)? = description["$classname"]
    else { throw failure(.malformed, "has no class") }
    return name
  }

  /// An instance of one of the app's own classes.
  private mutating func ruled(
    _ fields: PropertyListDictionary, _ rule: UnarchiveOptions.ClassRule, _ name: String, depth: Int
  ) throws -> Part {
    var kept: [(name: String, field: String, value: PropertyListValue)] = []
    for (field, value) in fields where field != "$class" {
      // The archiver puts a second dollar sign before a field's own.
      let plain = field.hasPrefix("$$") ? String(field.dropFirst()) : field
      if rule.dropped.containsExactly(plain) { continue }
      kept.append((rule.names.first { $0.key.isExactly(plain) }?.value ?? plain, plain, value))
    }
    kept.sort { ExactText($0.name) < ExactText($1.name) }
    var whole = Part(.null)
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

  /// Values in order.
  mutating func list(_ values: [PropertyListValue], depth: Int) throws -> Part {
    var whole = Part(.null)
    let parts = try values.map { try add($0, to: &whole, depth: depth) }
    whole.value = .array(parts)
    return try checked(whole, depth)
  }

  /// Values by names that are text already.
  private mutating func fields(_ values: PropertyListDictionary, depth: Int) throws -> Part {
    var whole = Part(.null)
    var result: PropertyListDictionary = [:]
    for (key, value) in values.sorted() {
      result[key] = try add(value, to: &whole, key: key, depth: depth)
    }
    whole.value = .dictionary(result)
    return try checked(whole, depth)
  }

  /// Reads what is to be inside `whole`, and counts it.
  mutating func add(
    _ field: PropertyListValue, to whole: inout Part, key: String? = nil, depth: Int
  ) throws -> PropertyListValue {
    let part = try part(field, depth: depth + 1)
    whole.height = max(whole.height, part.height + 1)
    whole.weight += part.weight + (key.map { $0.utf8.count + Self.valueWeight } ?? 0)
    guard whole.weight <= Self.weightLimit else { throw tooMuch }
    return part.value
  }

  func checked(_ part: Part, _ depth: Int) throws -> Part {
    guard depth + part.height <= Self.depthLimit else { throw tooDeep }
    guard part.weight <= Self.weightLimit else { throw tooMuch }
    return part
  }

  // MARK: Failures

  private var tooDeep: DrydockError {
    failure(.unsupported, "is in objects that are nested more than \(Self.depthLimit) deep")
  }

  private var tooMuch: DrydockError {
    failure(
      .unsupported,
      "holds more than \(Self.weightLimit >> 20) MiB of values, since its objects are referred to many times")
  }

  private func cycle(to index: Int) -> DrydockError {
    let holder = open.last { $0.field != nil && $0.className != nil }
    guard let holder, let field = holder.field, let name = holder.className else {
      return failure(.unsupported, "leads back to object \(index), which it is in")
    }
    return failure(
      .unsupported,
      "leads back to object \(index), which it is in: leave out a field on the way, such as "
        + "`classes: {\(Self.shown(name)): {drop: [\(Self.shown(field))]}}`")
  }

  /// An error about the object that is being read. No value and no dictionary's key is ever in it.
  func failure(_ code: DrydockError.Code, _ what: String) -> DrydockError {
    guard let (object, name, _) = open.last else { return DrydockError(code, "the archive \(what)") }
    let shown = name.map { " (`\(Self.shown($0))`)" } ?? ""
    return DrydockError(code, "object \(object)\(shown) of the archive \(what)")
  }

  /// A name of a class or field: anything can stand there in a file that is built to harm.
  private static func shown(_ name: String) -> String {
    let isName = name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "`") }
    return isName && name.utf8.count <= 100 ? name : "…"
  }
}

extension PropertyListValue {
  /// What stands for nothing in an archive, and has no form in a property list.
  static let null = PropertyListValue.unknown(.null)

  /// Whether it stands for nothing.
  package var isNull: Bool { self == .null }
}

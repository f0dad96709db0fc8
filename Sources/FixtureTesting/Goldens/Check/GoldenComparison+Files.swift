import ContainerDiff
import FileSystem

extension GoldenComparison {
  /// Findings about paths: what is missing or too much, and what about a path differs.
  func files(_ lines: GoldenPlaces) -> [FixtureFinding] {
    let old = Dictionary(expected.lines.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    let new = Dictionary(found.lines.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    return difference.files.flatMap { file -> [FixtureFinding] in
      let (before, after) = (old[file.path], new[file.path])
      let findings: [FixtureFinding]
      switch file.change {
      case .removed: findings = [finding(file.path, "the \(before?.words ?? "path") is absent")]
      case .added: findings = [finding(file.path, "the \(after?.words ?? "path") exists, expected none")]
      case .changed: findings = file.aspects.map { aspect($0, file.path, before, after) }
      }
      return findings.map { $0.at(lines.path(file.path)) }
    }
  }

  private func finding(_ path: ContainerPath, _ message: String) -> FixtureFinding {
    FixtureFinding(.golden, message, place: GoldenText.text(path))
  }

  private func aspect(
    _ aspect: ContainerDifference.File.Aspect, _ path: ContainerPath, _ old: GoldenLine?, _ new: GoldenLine?
  ) -> FixtureFinding {
    let words = old?.words ?? "path"
    switch aspect {
    case .type: return finding(path, "the path is something else").with(old?.words, new?.words)
    case .content: return finding(path, "the \(words) has other content").with(old?.content, new?.content)
    case .target: return finding(path, "the link leads elsewhere").with(target(old), target(new))
    case .mode: return finding(path, "the \(words) has another mode").with(old?.modeText, new?.modeText)
    case .attributes: return finding(path, "the \(words) has other flags").with(flags(old), flags(new))
    case .owner, .time: return finding(path, "the \(words) has another \(aspect.rawValue)")
    }
  }

  private func target(_ line: GoldenLine?) -> String? { line?.content.map(redactor.shown(message:)) }

  private func flags(_ line: GoldenLine?) -> String? { line.map { $0.flags.isEmpty ? "none" : $0.flagText } }

  /// The first line that differs of each file of the golden: for what is the same by every comparison and is written in
  /// other bytes, such as a name in another Unicode form.
  func texts() throws -> [FixtureFinding] {
    // Rows are written in the order of the columns, too.
    let reordered = Set(difference.databases.filter { $0.schema.contains(where: isReordered) }.map(\.path))
    let exempt = Set(
      try (expected.lines + found.lines).filter { reordered.contains($0.path) }.compactMap { try $0.file })
    let names = try Set(GoldenText.files(expected.directory)).union(GoldenText.files(found.directory))
      .subtracting(exempt).sorted()
    return try names.compactMap { name in
      let (old, new) = (try text(name, expected), try text(name, found))
      let count = zip(old, new).prefix { $0.utf8.elementsEqual($1.utf8) }.count
      guard count < old.count || count < new.count else { return nil }
      // All but the list of paths may have secrets, of which only stores know where they stand.
      func line(_ lines: [String]) -> String? {
        lines.count > count && name == Golden.list ? redactor.shown(message: lines[count]) : nil
      }
      return FixtureFinding(.golden, "\(name) of the golden is written otherwise, in its line \(count + 1)")
        .with(line(old), line(new)).at(GoldenPlace(file: "\(golden.directory)/\(name)"))
    }
  }

  private func text(_ name: ContainerPath, _ golden: Golden) throws -> [String] {
    let directory = try Directory(golden.directory)
    guard try directory.status(name) != nil else { return [] }
    let text = String(decoding: try directory.contents(name, limit: 1 << 30), as: UTF8.self)
    return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }
}

extension GoldenLine {
  /// What it is, for people.
  var words: String {
    switch kind {
    case .settings: "settings file"
    case .other: "special file"
    case nil: "path"
    case let kind?: kind.rawValue
    }
  }

  /// Its permission bits, as in `chmod`.
  var modeText: String? { mode.map { String($0, radix: 8) } }
}

extension GoldenText {
  /// The names of a golden's files in a directory.
  static func files(_ directory: String) throws -> [ContainerPath] {
    try Directory(directory).names().map(ContainerPath.init(name:)).filter { name in
      [Golden.list, Golden.defaults, Golden.vault].contains(name) || name.nameString.hasSuffix(".sql")
    }.sorted()
  }

  /// Whether two goldens are the same in every byte; false where there is none.
  static func isSame(_ one: String, _ other: String) throws -> Bool {
    guard let left = try? Directory(one), let right = try? Directory(other) else { return false }
    let names = try files(one)
    guard try names == files(other), names.contains(Golden.list) else { return false }
    return try names.allSatisfy { name in
      guard try left.status(name)?.size == right.status(name)?.size else { return false }
      return try left.contents(name, limit: 1 << 30) == right.contents(name, limit: 1 << 30)
    }
  }
}

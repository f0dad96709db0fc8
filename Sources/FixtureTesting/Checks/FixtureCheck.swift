import AppContainer
import GRDB

extension FixtureExpectation {
  /// What is not as expected in a container that was migrated, one sentence each; empty when all is well. The
  /// container is only read: its databases are looked at in copies.
  ///
  /// - Parameters:
  ///   - root: The container's directory.
  ///   - defaults: The path of its settings.
  ///   - vault: The path of its vault.
  ///   - deviceKeys: What opens the vault; nil when nothing is expected of it.
  ///   - redactor: What hides secrets in the sentences.
  public func findings(
    in root: String, defaults: ContainerPath, vault: ContainerPath = Layout.ios.vaultPath,
    deviceKeys: DeviceKeys? = nil, redactor: Redactor = Redactor()
  ) throws -> [String] {
    let directory = try Directory(root)
    return try settingsFindings(directory, defaults, redactor) + vaultFindings(directory, vault, deviceKeys)
      + queryFindings(directory, redactor) + fileFindings(directory)
  }

  private func settingsFindings(
    _ root: Directory, _ path: ContainerPath, _ redactor: Redactor
  ) throws -> [String] {
    let found =
      try root.status(path) == nil ? [:] : PropertyListFile(bytes: root.contents(path)).root
    var lines: [String] = []
    for (key, value) in settings.sorted(by: { $0.key < $1.key }) where found[key]?.matches(value) != true {
      let state = found[key].map { "is the \($0.typeName) \(redactor.shown($0, key: key))" } ?? "is absent"
      lines.append(
        "the setting `\(key)` \(state), expected the \(value.typeName) \(redactor.shown(value, key: key))")
    }
    for key in absentSettings {
      guard let value = found[key] else { continue }
      lines.append("the setting `\(key)` is \(redactor.shown(value, key: key)), expected none")
    }
    return lines
  }

  private func queryFindings(_ root: Directory, _ redactor: Redactor) throws -> [String] {
    try queries.compactMap { query in
      guard try root.status(query.database) != nil else { return "the database \(query.database) is absent" }
      let (columns, rows) = try self.rows(of: query, in: root)
      if rows == query.rows { return nil }
      let text = { (rows: [[YAMLScalar.Value]]) in Self.text(rows, columns, redactor) }
      return "`\(query.sql)` on \(query.database) gives \(text(rows)), expected \(text(query.rows))"
    }
  }

  private func rows(of query: Query, in root: Directory) throws -> ([String], [[YAMLScalar.Value]]) {
    try Scratch.with { scratch in
      for (suffix, name) in [("", "database"), ("-wal", "database-wal")] as [(String, ContainerPath)] {
        let source = suffix.isEmpty ? query.database : query.database.withSuffix(suffix)
        if try root.status(source) != nil { try root.copyContents(of: source, to: name, in: scratch) }
      }
      let queue = try DatabaseQueue(path: scratch.path + "/database")
      defer { try? queue.close() }
      return try queue.read { database in
        let rows = try Row.fetchAll(database, sql: query.sql)
        return (
          rows.first?.columnNames.map { $0 } ?? [], rows.map { row in row.databaseValues.map(\.yamlValue) }
        )
      }
    }
  }

  private func fileFindings(_ root: Directory) throws -> [String] {
    try files.filter { try root.status($0) == nil }.map { "\($0) is absent" }
      + absent.filter { try root.status($0) != nil }.map { "\($0) exists, expected none" }
      + excluded.filter { try root.metadata($0)?.hasAppleFlag != true }
      .map { "\($0) is not flagged as excluded from backups" }
  }

  private static func text(_ rows: [[YAMLScalar.Value]], _ columns: [String], _ redactor: Redactor) -> String
  {
    let texts = rows.map { row in
      let values = row.enumerated().map { index, value in
        let name = columns.indices.contains(index) ? columns[index] : ""
        guard let listed = value.propertyListValue, SecretPattern.isSecret(listed, key: name) else {
          return value.summary
        }
        return redactor.shown(listed, key: name)
      }
      return "[" + values.joined(separator: ", ") + "]"
    }
    return "[" + texts.joined(separator: ", ") + "]"
  }
}

extension DatabaseValue {
  fileprivate var yamlValue: YAMLScalar.Value {
    switch storage {
    case .null: .null
    case .int64(let value): .integer(value)
    case .double(let value): .real(value)
    case .string(let text): .text(text)
    case .blob(let data): .data(Array(data))
    }
  }
}

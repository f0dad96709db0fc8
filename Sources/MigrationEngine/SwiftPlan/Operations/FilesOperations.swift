import FileSystem
import Formats

extension MigrationStage.Operation {
  /// The operations on files.
  package static var files: FilesOperations { FilesOperations() }
}

/// The operations on files, named as in a migration's file. A database goes with all that belongs to it.
package struct FilesOperations: Sendable {
  /// What each of them is.
  package typealias Operation = MigrationStage.Operation

  /// `files.move`: moves a file, a directory or a database.
  package func move(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.move",
      [
        "from": .path(source), "to": .path(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ],
      at: YAMLPosition(file, line, column))
  }

  /// `files.copy`: copies a file, a directory or a database.
  package func copy(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.copy",
      [
        "from": .path(source), "to": .path(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ],
      at: YAMLPosition(file, line, column))
  }

  /// `files.create-directory`: makes a directory and those above it.
  package func createDirectory(
    _ path: ContainerPath, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.create-directory", ["path": .path(path), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.write`: writes a file.
  package func write(
    _ path: ContainerPath, text: String, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.write", ["path": .path(path), "text": .text(text), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.set-backup-exclusion`: keeps paths, or all that match a pattern, out of backups, or takes them in again.
  package func setBackupExclusion(
    _ paths: [String], _ isExcluded: Bool, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.set-backup-exclusion",
      ["path": .texts(paths), "excluded": .value(.boolean(isExcluded)), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.delete`: removes paths, or all that match a pattern such as `Documents/**/*.log`.
  ///
  /// - Parameter destructive: why they may go.
  package func delete(
    _ paths: [String], destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.delete",
      ["path": .texts(paths), "destructive": .text(destructive), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column))
  }
}

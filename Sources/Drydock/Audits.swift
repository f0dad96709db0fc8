import AppContainer
import ArchiveFile
import BackupRepository
import ContainerAudit
import DrydockErrors
import FileSystem

extension Container {
  /// Finds typical mistakes in how the app stores its data, and, with ``AuditOptions/app``, in what it declares.
  ///
  /// Nothing is changed, and the container may be in use. Each file is read once, with bounded memory; what was examined in part
  /// only is in the report.
  public func audit(_ options: AuditOptions = AuditOptions()) throws -> AuditReport {
    try Audit.run(on: self, options: options)
  }
}

extension AppDeclaration {
  /// Reads what an app declares: the directory `X.app`, or an `.ipa` file, which is unpacked into a private directory first.
  public static func read(_ path: String, limit: ExpansionLimit = .standard) throws -> AppDeclaration {
    guard (try? Directory(path)) == nil else { return try AppDeclaration(bundle: path, shown: path) }
    return try ForeignContainer.with(path, limit: limit) { place, _ in
      try AppDeclaration(bundle: place, shown: path)
    }
  }
}

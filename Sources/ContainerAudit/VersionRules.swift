import DrydockErrors
import MigrationEngine

extension AuditRule {
  static let versions = [
    AuditRule(
      .versionContradiction, .error, "version markers that contradict each other",
      why:
        "data of two schema versions are mixed, or a marker was not updated: the next migration would change wrong data",
      fix: "restore the container from a backup, or set the version")
  ]
}

extension AuditContext {
  /// Compares the history and the version markers that `drydock.yaml` names. Other numbers may count something else.
  mutating func checkVersions() {
    do {
      _ = try DetectedVersion.detect(in: staged)
    } catch let error as DrydockError where error.code == .contradiction {
      findings.add(.versionContradiction, nil, error.reason, unit: "marker")
    } catch let error as DrydockError where error.code == .unknownVersion {
      // A container without markers is not a mistake.
    } catch {
      notChecked.append("the schema version: \(DrydockError.reason(of: error))")
    }
  }
}

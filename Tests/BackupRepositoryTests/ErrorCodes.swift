import ArchiveFile
import DrydockErrors

func codeOfArchive(_ error: (any Error)?) -> String {
  if let error = error as? DrydockError { return "archive " + error.code.rawValue }
  return error.map { "other: \($0)" } ?? "none"
}

import DrydockErrors

/// Errors about an archive file, each with what to do about it.
extension DrydockError {
  static func damaged(_ what: String) -> Self {
    Self(.damaged, "\(what); the archive is damaged: use another one or fetch this one again")
  }

  static func truncated(_ what: String) -> Self {
    Self(.truncated, "\(what); the archive was cut short: use another one or fetch this one again")
  }

  static func io(_ doing: String, _ cause: any Error) -> Self {
    Self(.io, "\(doing) failed: \(cause); fix that and try again", cause: cause)
  }
}

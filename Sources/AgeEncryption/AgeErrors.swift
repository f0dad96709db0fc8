import DrydockErrors

/// Errors about the parts of an age file, each with what to do about it.
extension DrydockError {
  static func header(_ what: String) -> Self {
    Self(.header, "the age header is malformed: \(what); the file is damaged or was made by a broken program")
  }

  static func payload(_ what: String) -> Self {
    Self(.payload, "the encrypted content is damaged: \(what); use another copy or fetch this one again")
  }

  static func armor(_ what: String) -> Self {
    Self(.armor, "the ASCII armor is malformed: \(what); use another copy or fetch this one again")
  }
}

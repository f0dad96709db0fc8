import TestSupport
import Testing

extension Sandbox {
  /// A command line that is refused as ``expectError(_:exit:_:environment:sourceLocation:)`` expects it, and changes nothing.
  @discardableResult
  func expectRefusal(
    _ line: some CommandWords, exit: Int32, _ words: [String], container: String? = "Notes",
    environment: [String: String?] = [:], sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> CommandResult {
    try expectUnchanged(container, sourceLocation: sourceLocation) {
      try expectError(line, exit: exit, words, environment: environment, sourceLocation: sourceLocation)
    }
  }

  /// Command lines that are refused, one after the other: neither the container nor the directory around it is touched,
  /// nothing is left to recover, and there are no temporary files.
  @discardableResult
  func expectUnchanged<T>(
    _ container: String? = "Notes", sourceLocation: SourceLocation = #_sourceLocation,
    _ refusals: () throws -> T
  ) throws -> T {
    let before = try container.map { try tree($0) }
    let visible = try visibleNames()
    let result = try refusals()
    #expect(try visibleNames() == visible, "\(result)", sourceLocation: sourceLocation)
    if let container, let before {
      // Refused late, a commit has linked to files already, which moves their change time and nothing else.
      let aspects = TreeListing.untouched.subtracting([.changed])
      let difference = try tree(container).differences(from: before, comparing: aspects)
      #expect(difference == [], "\(result)", sourceLocation: sourceLocation)
      let recovered = try drydock("recover", container)
      #expect(recovered.output == "nothing was interrupted\n", "\(recovered)", sourceLocation: sourceLocation)
    }
    #expect(try names("tmp") == [], sourceLocation: sourceLocation)
    return result
  }

  /// Runs a command line that is refused; the command before it left nothing to recover.
  @discardableResult
  func expectError(
    _ line: some CommandWords, exit: Int32, _ words: [String], environment: [String: String?] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> CommandResult {
    let result = try drydock(line, environment: environment)
    result.expectError(exit: exit, words, sourceLocation: sourceLocation)
    #expect(!result.errors.contains("note: recovered"), "\(result)", sourceLocation: sourceLocation)
    return result
  }

  /// The names in the sandbox but for Drydock's own state, which a transaction makes before it can know more.
  private func visibleNames() throws -> [String] {
    try names().filter { !$0.hasPrefix(".drydock-") }
  }
}

extension CommandResult {
  /// Expects a refusal: the exit code as documented, one message with all these words, nothing on standard output and no stack
  /// trace.
  @discardableResult
  func expectError(exit: Int32, _ words: [String], sourceLocation: SourceLocation = #_sourceLocation)
    -> CommandResult
  {
    let messages = errors.split(separator: "\n").filter { $0.hasPrefix("drydock: error: ") }
    let missing = words.filter { messages.first?.contains($0) != true }
    #expect(
      exitCode == exit && output.isEmpty && messages.count == 1 && missing == [], "\(self)",
      sourceLocation: sourceLocation)
    for text in ["Fatal error", ".swift:", "Errno(", "Optional(", "Code(", "Stack dump"] {
      #expect(!errors.contains(text), "\(self)", sourceLocation: sourceLocation)
    }
    return self
  }
}

extension TreeListing {
  /// Expects the tree to be like another one, and reports every difference.
  func expectSame(
    as other: TreeListing, comparing aspects: Set<TreeEntry.Aspect> = copied, ignoringTimesOf: [String] = [],
    _ comment: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let difference = differences(from: other, comparing: aspects, ignoringTimesOf: ignoringTimesOf)
    #expect(difference == [], "\(comment)", sourceLocation: sourceLocation)
  }
}

import ArgumentParser
import Drydock

struct ExplainCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Tell whether a backup takes a path, and which rule decides.",
    discussion: """
      The path need not exist: then it is what would be decided, by name alone,
      for a file, or with a / at the end for a directory.

      Example: drydock explain Notes Library/Caches/thumbnail.png
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: ArgumentHelp("A path in the container.", valueName: "path")) var inner: String
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var path: ContainerPath
    var exists: Bool
    var included: Bool
    /// The rule that keeps it out.
    var exclusion: Exclusion?
    /// What takes it whatever the rules say, and the rule that would keep it out without that.
    var inclusion: Inclusion?
    var overrides: Exclusion?
    /// Why it is not stored by itself although no rule keeps it out.
    var remark: String?
  }

  func run() throws { try container.reading(common.configuration(), expansion, explain) }

  private func explain(_ opened: Container) throws {
    let path = try ContainerPath(inner)
    let scan = ContainerScan(try opened.open(), rules: ExclusionRules(opened))
    let found = try scan.explain(path, isDirectory: inner.hasSuffix("/"))
    let exclusion = found.decision.effective
    let result = Result(
      path: path, exists: found.kind != nil, included: exclusion == nil, exclusion: exclusion,
      inclusion: exclusion == nil ? found.decision.inclusion : nil,
      overrides: exclusion == nil ? found.decision.exclusion : nil,
      remark: exclusion == nil ? found.kind.flatMap(remark) : nil)
    if common.json { return Output.json(result) }
    write(result)
  }

  private func remark(_ kind: ScannedEntry.Kind) -> String? {
    switch kind {
    case .sidecar(let main): "part of the database \(main), which is stored as one file"
    case .special: "a socket, FIFO or device, which no archive holds"
    case .mount: "another file system is mounted here, which no backup enters"
    case .file, .directory, .symbolicLink, .database: nil
    }
  }

  private func write(_ result: Result) {
    let verb = result.exists ? ("takes", "leaves") : ("would take", "would leave")
    let missing = result.exists ? "" : " (it is not there now)"
    if let exclusion = result.exclusion {
      Output.line("\(result.path): a backup \(verb.1) it out\(missing)")
      Output.line("  rule: \(exclusion.rule.rawValue), on \(exclusion.origin)")
      return Output.line("  \(exclusion.detail)")
    }
    Output.line("\(result.path): a backup \(verb.0) it\(missing)")
    if let inclusion = result.inclusion {
      Output.line("  \(inclusion.rule.rawValue), on \(inclusion.origin): \(inclusion.detail)")
    }
    if let overridden = result.overrides {
      Output.line("  although \(overridden.description), on \(overridden.origin)")
    }
    if let remark = result.remark { Output.line("  \(remark)") }
  }
}

import DrydockCommand

@main
struct NotesTool: DrydockTool {
  static let plan = NotesPlan.self
}

import DrydockCommand

@main
struct DrydockMain {
  static func main() { DrydockProgram.main() }
}

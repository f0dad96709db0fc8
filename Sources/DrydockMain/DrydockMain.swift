import DrydockCommand

@main
struct DrydockMain {
  static func main() { Program.run() }
}

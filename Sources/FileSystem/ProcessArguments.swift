import CPlatform

/// The command line of this process.
package enum ProcessArguments {
  /// The arguments as the C library got them: `CommandLine.arguments` reads them in `/proc`, and is empty without it.
  package static let all: [String] = {
    guard var next = platform_arguments() else { return CommandLine.arguments }
    var arguments: [String] = []
    while let argument = next.pointee {
      arguments.append(String(cString: argument))
      next += 1
    }
    return arguments
  }()
}

@_exported import Drydock
import Foundation

/// A program with Drydock's command line over the migrations of a plan.
///
/// ```swift
/// import DrydockCommand
///
/// @main
/// struct NotesTool: DrydockTool {
///   static let plan = NotesPlan.self
/// }
/// ```
public protocol DrydockTool {
  /// The plan's type, inferred from ``plan``.
  associatedtype Plan: MigrationPlan
  /// The migrations that the commands use, in place of a directory.
  static var plan: Plan.Type { get }
  /// The program's name in its help and messages; the name of its file unless declared otherwise.
  static var name: String { get }
}

extension DrydockTool {
  /// The name of the program's file.
  public static var name: String {
    ProcessArguments.all.first.map { ($0 as NSString).lastPathComponent } ?? "drydock"
  }

  /// Runs the command line of this process, and ends the process with its exit code where it is not 0.
  public static func main() {
    Program.$current.withValue(Program(name: name, plan: plan)) { Program.run() }
  }
}

/// The program `drydock` itself, whose migrations are in a directory.
package enum DrydockProgram {
  /// Runs the command line of this process, and ends the process with its exit code where it is not 0.
  package static func main() { Program.run() }
}

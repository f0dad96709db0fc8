/// The version of this library and of the program.
package enum DrydockVersion {
  /// Such as `0.1.0`.
  package static let number = "0.1.0"
  /// What archives and histories name as their writer.
  package static let tool = "drydock \(number)"
}

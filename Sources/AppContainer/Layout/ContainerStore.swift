/// The four stores that a container's data is in.
package enum ContainerStore: String, Sendable, Hashable, Codable, CaseIterable {
  /// Settings files.
  case defaults
  /// The file of secrets.
  case vault
  /// Databases, with their sidecars and external data.
  case databases
  /// Everything else.
  case files
}

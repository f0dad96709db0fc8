extension ContainerConfiguration {
  /// Reads a configuration file, `drydock.yaml`.
  ///
  /// - Throws: ``DrydockError`` (`badConfiguration`) with `file:line:column`.
  public init(file: String) throws { try self.init(file: file, sections: Self.sections) }

  /// Reads `drydock.yaml` in a directory or the nearest one above it; empty without one.
  public static func find(from directory: String) throws -> ContainerConfiguration {
    try nearestFile(from: directory).map { try ContainerConfiguration(file: $0) } ?? ContainerConfiguration()
  }

  private static let sections: [ConfigurationSection] = [
    .coreData, .registeredDefaults, .recipients, .trusted, .retention, .fullArchives, .audit,
  ]
}

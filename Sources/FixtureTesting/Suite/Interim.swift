import AppContainer
import ContainerTransaction
extension Fixture {
  func build(in work: String, configuration: Configuration, deviceKeys: DeviceKeys? = nil) throws -> Container
  {
    let (parent, name) = try ContainerPath.split(work)
    try Directory(parent).createDirectory(name, mode: 0o755)
    try build(
      into: work + "/container", vault: configuration.vault ?? (configuration.layout ?? .ios).vaultPath,
      deviceKeys: deviceKeys)
    return try Container(at: work + "/container", configuration: configuration)
  }
}

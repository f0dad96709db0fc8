import ArgumentParser
import Drydock

/// What opens a container's vault.
struct DeviceKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("device-key"),
    help: ArgumentHelp(
      "The device's key, as age-keygen writes it, to open the vault with; repeatable, the present one first.",
      valueName: "file"))
  var files: [String] = []

  /// The keys in the files, or without any in those that `DRYDOCK_DEVICE_KEY` names, separated by colons.
  func deviceKeys() throws -> DeviceKeys? {
    let named = Environment["DEVICE_KEY"]?.split(separator: ":").map(String.init) ?? []
    return try DeviceKeys(files: files.isEmpty ? named : files)
  }
}

extension TransactionOptions {
  /// With the keys that open the vault.
  func with(_ deviceKeys: DeviceKeyOptions) throws -> TransactionOptions {
    var options = self
    options.deviceKeys = try deviceKeys.deviceKeys()
    return options
  }
}

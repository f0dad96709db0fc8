import Drydock

extension DrydockError {
  /// The message with the option that helps: errors of the library do not know the command line.
  var messageWithOption: String {
    let option: String? =
      switch code {
      case .locked: "--lock-timeout SECONDS waits longer"
      case .limit where message.contains("raise it if you trust"): "--max-size SIZE"
      case .noIdentity where message.contains("passphrase"): "--identity-passphrase-file FILE"
      case .noIdentity: "--identity FILE, or DRYDOCK_IDENTITY"
      case .mismatch where message.contains("would be mixed into"): "--migrate"
      case .mismatch where message.contains("must be asked for"): "--from-other"
      case .conflict where message.contains("overwrite excluded paths"): "--overwrite-excluded"
      case .conflict where message.contains("do not keep extra paths"): "leave --keep-extra out"
      case .overlap where message.contains("give the identity"): "--identity FILE"
      default: nil
      }
    // The option itself, without what it takes.
    guard let option, let name = option.split(separator: " ").first(where: { $0.hasPrefix("--") }),
      !message.contains(name.prefix { $0 != "," })
    else { return message }
    return "\(message) (\(option))"
  }
}

import AppContainer

/// Finds out, before anything is staged, whether the container can be exchanged in one step.
struct ExchangeProbe {
  let container: Container
  let root: Directory
  let state: StateDirectory

  init(_ container: Container, root: Directory, state: StateDirectory) {
    self.container = container
    self.root = root
    self.state = state
  }

  /// - Throws: ``TransactionError`` with code `exchangeImpossible` and the reason.
  func run() throws {
    let status = try root.status()
    let above = try state.directory.status()
    guard !status.isMountRoot, status.mount == above.mount else {
      throw impossible("a file system is mounted at the container's root")
    }
    guard status.device == above.device else {
      throw impossible("it is on another file system than its parent")
    }
    let (a, b): (ContainerPath, ContainerPath) = ("probe-a", "probe-b")
    // Among the stages, where a recovery removes whatever a kill leaves.
    let stages = try state.directory.directory(StateDirectory.stage)
    for name in [a, b] { try stages.createDirectories(name) }
    defer { for name in [a, b] { try? stages.removeDirectory(name) } }
    do {
      try stages.exchange(a, in: stages, with: b)
    } catch let error as ContainerError {
      throw impossible("this file system cannot exchange two directories", error)
    }
  }

  private func impossible(_ reason: String, _ cause: (any Error)? = nil) -> TransactionError {
    TransactionError(
      .exchangeImpossible,
      "\(reason), so that the change cannot be made in one step; nothing was changed. Copy the container to a "
        + "plain directory, change it there, and put it back", path: container.root, cause: cause)
  }
}

import FileSystem

/// What is known of a container whose journal cannot be read: by the records that can, and by the stages that are left.
/// Every commit leaves its stage until it is over, so that without one the container is whole.
struct DamagedJournal {
  let state: Directory
  let readable: [JournalRecord]

  /// How the container stands, and what to do.
  func standing() throws -> String {
    let open = try openTransactions()
    for transaction in open {
      let place = state.full(try StateDirectory.folder(StateDirectory.stage, transaction))
      if try has(MovePlan.file, transaction) || isInPlace(transaction) {
        return
          "transaction \(transaction) was interrupted in place, so that the container may be a mixture of old "
          + "and new: what it has not moved yet and what it has replaced are in \(place)"
      }
      if try has("tree-1", transaction) || hasGroups(transaction) {
        return
          "transaction \(transaction) was interrupted, so that some of the container and its groups may be old "
          + "and others new: the other tree of each is in \(place)"
      }
    }
    let advice = "move the journal's directory away to go on without it, and without its ways back"
    guard let transaction = open.first else {
      return "the container is whole, for no transaction was interrupted; \(advice)"
    }
    let place = state.full(try StateDirectory.folder(StateDirectory.stage, transaction))
    return
      "the container is whole, but transaction \(transaction) was interrupted: look whether what it replaced is "
      + "needed, in \(place), then \(advice)"
  }

  /// The transactions without an end: those with a stage, and those of which a record says it.
  private func openTransactions() throws -> [TransactionID] {
    let ended = Set(
      readable.filter { [.carried, .done, .discarded].contains($0.step) }.map(\.transaction))
    var found = readable.filter { $0.step == .commit }.map(\.transaction)
    if try state.status(StateDirectory.stage)?.type == .directory {
      found += try state.directory(StateDirectory.stage).names()
        .map { TransactionID(String(decoding: $0, as: UTF8.self)) }.filter(\.isWellFormed)
    }
    return Set(found).subtracting(ended).sorted { $0.description < $1.description }
  }

  private func has(_ name: ContainerPath, _ transaction: TransactionID) throws -> Bool {
    try state.status(
      StateDirectory.folder(StateDirectory.stage, transaction).appending(name: name.bytes)) != nil
  }

  private func isInPlace(_ transaction: TransactionID) -> Bool {
    readable.contains { $0.transaction == transaction && $0.inPlace == true }
  }

  private func hasGroups(_ transaction: TransactionID) -> Bool {
    readable.contains { $0.transaction == transaction && $0.groups?.isEmpty == false }
  }
}

import Drydock

/// Options and commands that help with an error or a note of the library, which knows nothing of them.
enum Advice {
  /// By the beginning of the command, the code of the error (nil for notes and any error), and a part of the text; the
  /// first match counts. `{again} OPTION` is the command line of this run with another option.
  private static let table: [(command: String, code: DrydockError.Code?, part: String, text: String)] = [
    ("", nil, "recover the container", "`drydock recover CONTAINER`"),
    ("vault set", .exists, "", "--if-exists replace gives it the new value"),
    (
      "vault set", .vaultLocked, "a vault needs",
      "--device-key FILE, or DRYDOCK_DEVICE_KEY; `drydock keygen` makes one"
    ),
    ("vault", .notFound, "no vault", "`drydock vault set` creates one"),
    ("vault", .ambiguous, "", "--account, --access-group ('' for none) or --class"),
    ("vault", .missing, "no item", "`drydock vault list` shows all items"),
    ("defaults", .notFound, "the settings file does not exist", "`drydock defaults write` creates one"),
    ("defaults", .missing, "is unknown", "--file PATH"),
    ("defaults", .unsupported, "convert the file", "`drydock defaults convert FILE --as xml`"),
    ("migrate", .notInArchive, "without a snapshot", "--no-snapshot"),
    (
      "rollback", .conflict, "Down migrations",
      "{again} --down` keeps what the app has written since\n  {again} --discard-newer` discards it"
    ),
    ("rollback", .conflict, "undo that one first", "`drydock rollback CONTAINER`"),
    ("rollback", .conflict, "", "{again} --discard-newer` discards what the app has written since"),
    ("rollback", .vaultLocked, "discard what", "--device-key FILE, also of earlier keys, or --discard-newer"),
    ("rollback", .usage, "name the version", "--to VERSION"),
    ("rollback", .nothingToUndo, "name the migrations", "-m DIRECTORY"),
    ("rollback", .nothingToUndo, "is left to undo", "`drydock log` lists them"),
    ("rollback", .nothingToUndo, "the undo log does not contain", "`drydock log` lists what can be undone"),
    ("migrate", .usage, "cannot go back", "`drydock rollback` undoes the last transaction"),
    ("restore", .notInArchive, "does not have this path", "`drydock show` lists its paths"),
    (
      "restore", nil, "is sealed to other keys than the one that opens it",
      "`drydock vault rekey` seals it to yours"
    ),
    (
      "rollback", .irreversible, "",
      "without --down, `drydock rollback` undoes whole transactions by the undo log"
    ),
    ("restore", .mismatch, "would be mixed into", "--migrate"),
    ("restore", .mismatch, "must be asked for", "--from-other"),
    ("restore", .mismatch, "version marker", "`drydock baseline CONTAINER --to N`"),
    ("restore", .conflict, "overwrite excluded paths", "--overwrite-excluded"),
    ("restore", .conflict, "do not keep extra paths", "leave --keep-extra out"),
    ("restore", nil, ", which affects ", "--partial restores everything else"),
    ("restore", nil, "overwrite other devices' items", "--include-synchronizable restores it"),
    ("restore", nil, "no device key was given", "--device-key FILE, or DRYDOCK_DEVICE_KEY"),
    ("restore", nil, "that its vault was sealed to then", "--device-key FILE"),
    ("forget", .usage, "no rule", "--keep-last, --keep-daily and others, or `retention:` in drydock.yaml"),
    ("forget", .usage, "whose archives", "--instance NAME or --app APP"),
    ("forget", .checkFailed, "the rules keep no archive", "--instance NAME --everything erases one"),
    ("rekey", .overlap, "give the identity", "--identity FILE"),
    ("fixture capture", .notCaptured, "the container has version", "leave --at out"),
    ("fixture capture", .notCaptured, "or give the version", "--at VERSION"),
    ("fixture capture", .notCaptured, "keep more rows", "--rows NUMBER"),
    ("fixture capture", .notCaptured, "the device key", "--device-key FILE, or --drop PATTERN"),
    (
      "fixture capture", .notCaptured, "would still contain",
      "--replace TABLE.COLUMN, --replace-key KEY, --replace-file PATTERN, --drop PATTERN, --keep NAME"
    ),
    ("fixture capture", .notCaptured, "leave", "--drop PATTERN"),
    ("test", .notFound, "no fixtures yet", "`drydock fixture capture CONTAINER NAME` makes the first one"),
    ("test", nil, "or record goldens", "`drydock test --record`"),
    ("", nil, "capture a fixture of it", "`drydock fixture capture CONTAINER NAME`"),
    ("test", nil, ": record ", "`drydock test --record`"),
    ("", .catalog, "no migrations yet", "`drydock new NAME` creates the first one"),
    ("", nil, "unknown audit rule", "`drydock audit --rules` lists them"),
    ("audit", nil, "from an older snapshot", "`drydock restore --path PATH` restores it"),
    ("release", nil, ": record ", "`drydock test --record`"),
    ("", .missingMigration, "from the history", "`drydock repair CONTAINER --remove NUMBER`"),
    ("", .edited, "accept number", "`drydock repair CONTAINER --accept NUMBER`"),
    ("", .edited, "renumber it", "`drydock repair CONTAINER --renumber`"),
    ("", .outOfOrder, "", "`drydock migrate CONTAINER --allow-out-of-order`"),
    (
      "", .unknownVersion, "no drydock.yaml",
      "`drydock init CONTAINER` writes one with the marker that it finds; `drydock baseline CONTAINER --to N`"
    ),
    ("", nil, "set the version", "`drydock baseline CONTAINER --to N`"),
    ("", .unknownVersion, "", "`drydock baseline CONTAINER --to N`"),
    ("", .notFound, "the configuration file does not exist", "`drydock init` writes one"),
    ("", .notFound, "no archive matches", "`drydock list` lists the archives"),
    ("", .ambiguousArchive, "differ in size", "`drydock verify` finds the good one"),
    ("", .io, "then verify it", "`drydock verify ARCHIVE`"),
    (
      "", .notAnArchive, "a directory, not an archive",
      "`drydock verify ARCHIVE --container` compares a container with an archive"
    ),
    (
      "", .notAContainer, "not a foreign archive",
      "`drydock show` lists it, `drydock restore` makes a container of it"
    ),
    ("", .badFixture, "must not be encrypted", "`drydock fixture capture` makes a fixture of one"),
    ("", .vaultLocked, "the vault names other keys", "`drydock vault rekey` seals it to yours"),
    ("", .vaultLocked, "no identity", "`drydock keygen -o FILE` makes one"),
    ("", .locked, "", "--lock-timeout SECONDS waits longer"),
    ("", .notVisible, "", "leave --require-visible out"),
    ("", .limit, "raise it if you trust", "--max-size SIZE"),
    ("import", .missing, "list its apps", "--list"),
    ("", .notAContainer, "a directory of device backups (", "`drydock import DIRECTORY/NAME --list`"),
    ("", .notAContainer, "import the data of an app", "`drydock import BACKUP --list`"),
    (
      "", .vaultLocked, "needs the device key, and none",
      "--device-key FILE, or DRYDOCK_DEVICE_KEY; `drydock keygen` makes one"
    ),
    ("", .vaultLocked, "device key", "--device-key FILE, or DRYDOCK_DEVICE_KEY"),
    ("", .noIdentity, "passphrase", "--identity-passphrase-file FILE"),
    ("", .noIdentity, "", "--identity FILE, or DRYDOCK_IDENTITY"),
    ("", .badKey, "the signing key is encrypted", "--sign-passphrase-file FILE"),
    ("", .unsupported, "give the signing key", "--sign FILE"),
    ("rekey", nil, "write a full copy", "`drydock export ARCHIVE`"),
    ("rekey", .untrusted, "give the signing key", "--sign FILE"),
    ("rekey", .untrusted, "not signed", "`drydock sign ARCHIVE --sign FILE` signs it"),
    ("export", .untrusted, "not signed", "`drydock sign ARCHIVE --sign FILE` signs it"),
    ("", .untrusted, "not a trusted key", "--trusted FILE, if you know the key"),
    ("", .badKey, "a secret key, not a recipient", "`drydock keygen -y FILE` prints it"),
    ("", .badKey, "no identity", "`drydock keygen -o FILE` makes one"),
  ]

  /// The text with the advice, unless it already names a command.
  static func added(to text: String, code: DrydockError.Code? = nil) -> String {
    let arguments = processArguments.dropFirst()
    let command = arguments.joined(separator: " ")
    guard !text.contains("`drydock "), !text.contains("did you mean"),
      let found = table.first(where: {
        ($0.code == nil || $0.code == code) && command.hasPrefix($0.command)
          && ($0.part.isEmpty || text.contains($0.part))
      })
    else { return text }
    if found.text.contains("{again}") {
      let again = (["`drydock"] + arguments.map(Output.word)).joined(separator: " ")
      return "\(text)\n  \(found.text.replacing("{again}", with: again))"
    }
    return "\(text)\(text.contains("\n") ? "\n  " : " ")(\(found.text))"
  }
}

extension DrydockError {
  /// The error with the advice for the command line.
  var advised: DrydockError {
    var error = self
    error.message = Advice.added(to: message, code: code)
    return error
  }
}

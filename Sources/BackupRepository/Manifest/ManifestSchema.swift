/// The tables of `manifest.sqlite`. A reader compares them to the letter, so that nothing else (a trigger, a view)
/// can be in a manifest that it opens.
enum ManifestSchema {
  /// Paths are text where they are UTF-8, else blobs.
  static let statements = [
    """
    CREATE TABLE property (name TEXT PRIMARY KEY, value ANY) STRICT
    """,
    """
    CREATE TABLE entry (
      path ANY PRIMARY KEY, kind TEXT NOT NULL, mode INTEGER NOT NULL, user INTEGER NOT NULL,
      "group" INTEGER NOT NULL, modified INTEGER NOT NULL, size INTEGER NOT NULL, sha256 BLOB, link_target BLOB,
      hard_link ANY, flags TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, changed INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE attribute (path ANY NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (path, name)) STRICT
    """,
    """
    CREATE TABLE extent (
      path ANY NOT NULL, position INTEGER NOT NULL, archive TEXT NOT NULL, offset INTEGER NOT NULL,
      length INTEGER NOT NULL, PRIMARY KEY (path, position)
    ) STRICT
    """,
    """
    CREATE TABLE excluded (path ANY PRIMARY KEY, rule TEXT NOT NULL, origin ANY NOT NULL, detail TEXT NOT NULL) STRICT
    """,
    """
    CREATE TABLE skipped (path ANY PRIMARY KEY, reason TEXT NOT NULL) STRICT
    """,
    """
    CREATE TABLE superseded (offset INTEGER PRIMARY KEY, path ANY NOT NULL, length INTEGER NOT NULL) STRICT
    """,
    """
    CREATE TABLE required (archive TEXT PRIMARY KEY) STRICT
    """,
  ]

  /// The word in the column `flags` for the inode flag, else empty.
  static let noDump = "nodump"

  /// The property, with the value 1, of a manifest whose entries may also be excluded paths.
  static let storesExcluded = "stores-excluded"

  /// The properties that say where in an encrypted archive the vault's items are, and their hash.
  static let vaultOffset = "vault-offset", vaultLength = "vault-length", vaultHash = "vault-sha256"
}

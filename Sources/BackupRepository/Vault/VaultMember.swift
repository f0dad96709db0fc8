import AgeEncryption
import AppContainer
import ArchiveFile
import DrydockErrors

/// Where an encrypted archive has the items that may leave their device: the content of its member `vault.json`.
struct VaultMember: Sendable, Equatable {
  /// Where the content starts in the tar stream, and its length.
  var offset: UInt64, length: UInt64
  /// The content's SHA-256. Whoever has only that cannot test guesses: the device's random name is in the content.
  var digest: SHA256.Digest

  /// Whether a member of the tar is this one, content aside.
  func agrees(with member: ArchiveMember, at offset: UInt64) -> Bool {
    member.name == Array(MemberNames.vault.utf8) && member.kind == .file(size: length)
      && offset == self.offset
      && member.mode == Self.mode && member.attributes.isEmpty && !member.isNoDump
  }

  /// For nobody else, where stock tools unpack it.
  static let mode: UInt16 = 0o600
}

extension ArchiveAssembly {
  /// Adds a vault's items that may leave their device, out of memory; content comes before it, the manifest after.
  ///
  /// - Throws: `DrydockError`; `invalidUse` for an archive that is not encrypted.
  func add(_ extract: VaultExtract, to archive: ArchiveWriter, _ manifest: ManifestWriter) throws {
    guard isEncrypted else {
      throw DrydockError(.invalidUse, "a vault's items do not go into an archive that is not encrypted")
    }
    try archive.startFrame()
    let member = try extract.encoded().withBytes { bytes in
      let offset = try archive.beginMember(
        .file(
          MemberNames.vault, size: UInt64(bytes.count), mode: VaultMember.mode, modified: modified))
      try archive.write(bytes)
      try archive.endMember()
      return VaultMember(offset: offset, length: UInt64(bytes.count), digest: try SHA256.hash(bytes))
    }
    try manifest.add(member)
  }
}

extension Archive {
  /// The items that may leave their device, checked against the manifest; nil when the archive has none.
  ///
  /// - Throws: `DrydockError`, or ``DrydockError`` with code `damaged`.
  package func vaultExtract() throws -> VaultExtract? {
    guard let vault else { return nil }
    let secret = try SecretBytes(count: Int(vault.length)) { target in
      var filled = 0
      try reader.read(offset: vault.offset, length: vault.length) { bytes in
        UnsafeMutableRawBufferPointer(rebasing: target[filled...]).copyMemory(from: bytes)
        filled += bytes.count
      }
    }
    guard try secret.withBytes({ try SHA256.hash($0) }) == vault.digest else {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is not what the manifest says; use another archive", path: path)
    }
    do {
      return try VaultExtract(decoding: secret, path: nil)
    } catch let error as DrydockError {
      throw DrydockError(
        .damaged, "its \(MemberNames.vault) is none: \(error.message)", path: path, cause: error)
    }
  }
}

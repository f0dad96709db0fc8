import AgeEncryption
import DrydockErrors
import Foundation
import SystemPackage

/// Writes one archive: members in the order in which they are added, then the manifest's location and the seek
/// table.
///
/// The caller makes the file, and syncs and publishes it after `finish`. A file whose `finish` did not
/// return is worthless. The descriptor must stay open until `finish` has returned or the writer is gone; the
/// writer never closes it. Used from one thread; compression runs on others.
package final class ArchiveWriter {
  private enum State { case betweenMembers, inMember(ArchiveMember, remaining: UInt64), finished, failed }

  private let sink: ArchiveSink
  private let frames: FrameWriter
  private let encoder: TarEncoder
  private var state = State.betweenMembers

  /// Starts an archive at the descriptor's position.
  ///
  /// - Parameters:
  ///   - threads: how many threads compress; by default one for each processor, and never more than four.
  ///   - encryption: to whom the archive is encrypted; nil for one that everybody can read.
  ///   - isSigned: whether ``signed(header:manifest:)`` is wanted in the end.
  ///   - written: called, on any thread, with the size of what is in the file and will not change.
  package init(
    to file: FileDescriptor, threads: Int? = nil, encryption: AgeTarget? = nil, isSigned: Bool = false,
    written: (@Sendable (UInt64) throws -> Void)? = nil
  ) throws {
    sink = try ArchiveSink(file, encryption: encryption, written: written, isSigned: isSigned)
    frames = FrameWriter(
      sink, level: 3, workers: threads ?? ProcessInfo.processInfo.activeProcessorCount)
    encoder = try TarEncoder(frames)
  }

  deinit { cancel() }

  /// Gives up what is not written yet; the caller may close the descriptor when this returns.
  package func cancel() { frames.cancel() }

  /// What a signature binds, once the archive is finished; nil unless that was asked for at the beginning.
  package func signed(header: [UInt8], manifest: MemberLocation) throws -> SignedBytes? {
    try sink.signed(header: header, manifest: manifest.sha256)
  }

  package var tarPosition: UInt64 { encoder.position }

  /// Starts a member. Content of a file follows by `write`; every member is ended by `endMember`.
  ///
  /// - Returns: where its content starts in the tar stream.
  /// - Throws: `DrydockError`: `.unsafeName` for a bad name, `.limit` when its header would be too large.
  @discardableResult
  package func beginMember(_ member: ArchiveMember) throws -> UInt64 {
    guard case .betweenMembers = state else { throw misuse("begin \(member.printableName)") }
    try validate(member)
    try guarding { try encoder.writeHeader(member) }
    state = .inMember(member, remaining: member.contentSize)
    return tarPosition
  }

  /// Adds content to the current member. Throws `DrydockError` `.invalidUse`, and writes nothing, when that is
  /// more than its size.
  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    guard case .inMember(let member, let remaining) = state else { throw misuse("write content") }
    guard bytes.count > 0 else { return }
    guard UInt64(bytes.count) <= remaining else {
      throw DrydockError(
        .invalidUse,
        "\(member.printableName) has \(UInt64(bytes.count) - remaining) bytes more than announced"
      )
    }
    try guarding { try encoder.writeContent(bytes) }
    state = .inMember(member, remaining: remaining - UInt64(bytes.count))
  }

  /// Adds that many zeros to the current member, as ``write(_:)``.
  package func write(zeros count: UInt64) throws {
    let zeros = [UInt8](repeating: 0, count: Int(min(count, 1 << 20)))
    var rest = count
    while rest > 0 {
      let piece = Int(min(rest, UInt64(zeros.count)))
      try zeros.withUnsafeBytes { try write(UnsafeRawBufferPointer(rebasing: $0[..<piece])) }
      rest -= UInt64(piece)
    }
  }

  /// Ends the current member.
  ///
  /// - Parameter padding: fill missing content with zeros, for a file that shrank while it was read.
  /// - Returns: the number of zeros.
  /// - Throws: `DrydockError` `.invalidUse` when content is missing and `padding` is false; the member is then
  ///   still open.
  @discardableResult
  package func endMember(padding: Bool = false) throws -> UInt64 {
    guard case .inMember(let member, let remaining) = state else { throw misuse("end a member") }
    guard remaining == 0 || padding else {
      throw DrydockError(
        .invalidUse, "\(member.printableName) has \(remaining) bytes less than announced")
    }
    try guarding { try encoder.finishMember() }
    state = .betweenMembers
    return remaining
  }

  /// Adds a whole member.
  ///
  /// - Returns: where its content starts in the tar stream.
  /// - Throws: `DrydockError`.
  @discardableResult
  package func addMember(_ member: ArchiveMember, contents: [UInt8] = []) throws -> UInt64 {
    guard UInt64(contents.count) == member.contentSize else {
      throw DrydockError(
        .invalidUse,
        "\(member.printableName) is announced with \(member.contentSize) bytes and has \(contents.count)")
    }
    let offset = try beginMember(member)
    try contents.withUnsafeBytes { try write($0) }
    try endMember()
    return offset
  }

  /// Starts a new frame with the next member, so that it can be read without what is before it.
  package func startFrame() throws {
    guard case .betweenMembers = state else { throw misuse("start a frame") }
    encoder.flush()
  }

  /// Ends the archive: the rest of the tar stream, the manifest's location, the seek table. Returns the file's size.
  package func finish(manifest: MemberLocation) throws -> UInt64 {
    guard case .betweenMembers = state else { throw misuse("finish the archive") }
    guard manifest.offset <= tarPosition, manifest.length <= tarPosition - manifest.offset else {
      throw DrydockError(.invalidUse, "the manifest's location is outside of the archive")
    }
    return try guarding {
      try encoder.finish()
      encoder.flush()
      var entries = try frames.finish()
      var tail = try manifest.frame()
      entries.append(
        SeekTable.Entry(
          compressedSize: UInt32(tail.count), plainSize: 0, checksum: ArchiveFormat.checksumOfNothing))
      tail += try SeekTable.encode(entries)
      try tail.withUnsafeBytes { try sink.write($0) }
      try sink.finish()
      state = .finished
      return sink.fileSize
    }
  }

  // MARK: Rules

  private func validate(_ member: ArchiveMember) throws {
    try MemberName.validate(member.name)
    var headerSize = member.name.count
    switch member.kind {
    case .file(let size):
      guard Int64(exactly: size) != nil else {
        throw DrydockError(.limit, "\(member.printableName) has \(size) bytes, more than a tar can hold")
      }
    case .directory: break
    case .symbolicLink(let target):
      guard !target.isEmpty, !target.contains(0) else {
        throw MemberName.unsafe(target, "is not a valid target for the link \(member.printableName)")
      }
      headerSize += target.count
    case .hardLink(let target):
      try MemberName.validate(target)
      headerSize += target.count
    case .special:
      throw DrydockError(.unsupported, "\(member.printableName) is a device, FIFO or socket")
    }
    for attribute in member.metadata.attributes {
      let name = Array(attribute.name.utf8)
      guard !name.isEmpty, !name.contains(0) else {
        throw MemberName.unsafe(name, "is not a valid attribute name, at \(member.printableName)")
      }
      headerSize += 3 * name.count + attribute.value.count + 40
    }
    guard headerSize <= ArchiveFormat.largestExtendedHeader else {
      throw DrydockError(
        .limit,
        "the name and extended attributes of \(member.printableName) have \(headerSize) bytes, more than the "
          + "\(ArchiveFormat.largestExtendedHeader) that tar programs read; leave attributes out")
    }
  }

  /// A step that failed half way leaves a broken stream: the writer refuses further calls.
  private func guarding<T>(_ body: () throws -> T) throws -> T {
    do {
      return try body()
    } catch {
      state = .failed
      throw error
    }
  }

  private func misuse(_ doing: String) -> DrydockError {
    DrydockError(
      .invalidUse, "cannot \(doing) now: a member is open, none is, or the archive has ended; report this")
  }
}

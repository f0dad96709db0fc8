import Drydock
import Foundation
import Synchronization

/// The file that takes the results of a job, one JSON document a line.
///
/// A line is appended by one call as soon as its container is done, so that what a killed job did is known. A job that is run
/// again appends to what it did before.
final class ResultFile: Sendable {
  let path: String
  private let descriptor: Int32
  /// Why lines are missing; nil when all were written.
  private let fault = Mutex<String?>(nil)

  /// - Parameter path: its directory is made, as those of reports.
  /// - Throws: when the file cannot be written, is not one of results, or another job writes it: before the work, not after.
  init(_ path: String) throws {
    self.path = path
    guard !path.isEmpty, path != "-" else { throw UsageError("--result needs the name of a file") }
    if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
      // What fails here fails below, with its reason.
      try? FileManager.default.createDirectory(
        atPath: String(path[..<slash]), withIntermediateDirectories: true)
    }
    descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw Self.failure("cannot be written", path) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw UsageError("--result \(path) is not a regular file: give a file")
    }
    do {
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        throw DrydockError(
          .locked, "another job writes its results here; give each job a file of its own", path: path)
      }
      try removeCutLine(size: Int64(status.st_size))
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// A job that was killed, or whose disk was full, may have left the beginning of a line.
  private func removeCutLine(size: Int64) throws {
    if size == 0 { return }
    guard try bytes(at: 0, count: 1) == [UInt8(ascii: "{")] else {
      throw UsageError("--result \(path) exists, and has no results: give another file, or remove it")
    }
    var end = size
    while end > 0 {
      let start = max(0, end - 65_536)
      if let newline = try bytes(at: start, count: Int(end - start)).lastIndex(of: UInt8(ascii: "\n")) {
        end = start + Int64(newline) + 1
        break
      }
      end = start
    }
    if end < size, ftruncate(descriptor, off_t(end)) != 0 { throw Self.failure("cannot be written", path) }
  }

  private func bytes(at offset: Int64, count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard pread(descriptor, &bytes, count, off_t(offset)) == count else {
      throw Self.failure("cannot be read", path)
    }
    return bytes
  }

  /// Appends a line, unless one before is missing. The work does not stop for it: ``report()`` says it at the end.
  func append(_ line: String) {
    fault.withLock { fault in
      if fault != nil { return }
      let bytes = Array((line + "\n").utf8)
      var written = 0
      while written < bytes.count {
        let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          fault = String(cString: strerror(errno))
          // Complete lines only.
          let size = lseek(descriptor, 0, SEEK_END)
          if size >= off_t(written) { _ = ftruncate(descriptor, size - off_t(written)) }
          return
        }
        written += count
      }
    }
  }

  /// Reports lines that are missing.
  ///
  /// - Returns: whether all were written.
  func report() -> Bool {
    guard let fault = fault.withLock({ $0 }) else { return true }
    Output.error("\(path): cannot write: \(fault); results are missing there, the rest of the work is done")
    return false
  }

  private static func failure(_ what: String, _ path: String) -> DrydockError {
    DrydockError(.io, "the file of results \(what): \(String(cString: strerror(errno)))", path: path)
  }
}

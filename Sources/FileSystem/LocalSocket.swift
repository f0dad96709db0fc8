import DrydockErrors
import Foundation

/// A connection to a program on this machine by a socket in the file system.
package final class LocalSocket {
  private let descriptor: Int32
  private let path: String

  /// - Throws: `DrydockError`: `notFound` when nobody listens there, `io`.
  package init(_ path: String) throws {
    self.path = path
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { room in
      guard name.count < room.count else { return false }
      room.copyBytes(from: name)
      return true
    }
    guard fits else { throw DrydockError(.io, "the path of the socket is too long", path: path) }
    #if canImport(Darwin)
      let kind = SOCK_STREAM
    #else
      let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    #endif
    descriptor = socket(AF_UNIX, kind, 0)
    guard descriptor >= 0 else {
      throw DrydockError.lastCall("cannot open a socket", path)
    }
    let done = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard done == 0 else {
      throw DrydockError.lastCall("cannot connect to the socket", path)
    }
  }

  deinit { close(descriptor) }

  package func send(_ bytes: [UInt8]) throws {
    #if canImport(Darwin)
      var yes: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &yes, socklen_t(MemoryLayout<Int32>.size))
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, flags) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        throw DrydockError.lastCall("cannot write to the socket", path)
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Waits for that many bytes.
  package func receive(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let read = bytes.withUnsafeMutableBytes { room in
        recv(descriptor, room.baseAddress.map { $0 + done }, count - done, 0)
      }
      if read < 0, errno == EINTR { continue }
      guard read > 0 else {
        throw DrydockError(.io, "the program behind the socket closed the connection", path: path)
      }
      done += read
    }
    return bytes
  }
}

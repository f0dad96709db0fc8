import Foundation

/// Extended attributes of a path itself, links not followed. Raw bytes for names, since they need not be UTF-8.
public enum ExtendedAttributes {
  /// Every attribute of a path.
  public static func all(of path: [UInt8]) throws -> [[UInt8]: [UInt8]] {
    let list = try sized(call: "llistxattr", path) { Calls.list($0, $1, $2) }
    var attributes: [[UInt8]: [UInt8]] = [:]
    for name in list.split(separator: 0).map({ Array($0) }) {
      attributes[name] = try sized(call: "lgetxattr", path) { path, buffer, size in
        RawFiles.withPath(name) { Calls.get(path, $0, buffer, size) }
      }
    }
    return attributes
  }

  /// Sets one attribute.
  public static func set(_ name: String, _ value: [UInt8], of path: [UInt8]) throws {
    let status = RawFiles.withPath(path) { path in
      value.withUnsafeBytes { Calls.set(path, name, $0.baseAddress, $0.count) }
    }
    guard status == 0 else { throw SystemFailure(call: "lsetxattr", path: path) }
  }

  /// Removes one attribute.
  public static func remove(_ name: String, of path: [UInt8]) throws {
    guard RawFiles.withPath(path, { Calls.remove($0, name) }) == 0 else {
      throw SystemFailure(call: "lremovexattr", path: path)
    }
  }

  /// Runs a call that tells its size when asked with none.
  private static func sized(
    call: String, _ path: [UInt8], _ body: (UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int
  ) throws -> [UInt8] {
    try RawFiles.withPath(path) { pointer -> Result<[UInt8], SystemFailure> in
      let size = body(pointer, nil, 0)
      if size < 0 { return .failure(SystemFailure(call: call, path: path)) }
      if size == 0 { return .success([]) }
      var buffer = [UInt8](repeating: 0, count: size)
      let count = buffer.withUnsafeMutableBytes { body(pointer, $0.baseAddress, $0.count) }
      if count < 0 { return .failure(SystemFailure(call: call, path: path)) }
      return .success(Array(buffer[..<count]))
    }.get()
  }

  private enum Calls {
    #if canImport(Darwin)
      static func list(_ path: UnsafePointer<CChar>, _ buffer: UnsafeMutableRawPointer?, _ size: Int) -> Int {
        listxattr(path, buffer?.assumingMemoryBound(to: CChar.self), size, XATTR_NOFOLLOW)
      }
      static func get(
        _ path: UnsafePointer<CChar>, _ name: UnsafePointer<CChar>, _ buffer: UnsafeMutableRawPointer?,
        _ size: Int
      ) -> Int {
        getxattr(path, name, buffer, size, 0, XATTR_NOFOLLOW)
      }
      static func set(
        _ path: UnsafePointer<CChar>, _ name: String, _ value: UnsafeRawPointer?, _ size: Int
      ) -> Int32 {
        setxattr(path, name, value, size, 0, XATTR_NOFOLLOW)
      }
      static func remove(_ path: UnsafePointer<CChar>, _ name: String) -> Int32 {
        removexattr(path, name, XATTR_NOFOLLOW)
      }
    #else
      // The C library's module does not show <sys/xattr.h> to Swift, so the calls are looked up by name.
      typealias Path = UnsafePointer<CChar>
      typealias Lister = @convention(c) (Path, UnsafeMutableRawPointer?, Int) -> Int
      typealias Getter = @convention(c) (Path, Path, UnsafeMutableRawPointer?, Int) -> Int
      typealias Setter = @convention(c) (Path, Path, UnsafeRawPointer?, Int, Int32) -> Int32
      typealias Remover = @convention(c) (Path, Path) -> Int32

      private static let lister = hiddenFunction("llistxattr", Lister.self)
      private static let getter = hiddenFunction("lgetxattr", Getter.self)
      private static let setter = hiddenFunction("lsetxattr", Setter.self)
      private static let remover = hiddenFunction("lremovexattr", Remover.self)

      static func list(_ path: Path, _ buffer: UnsafeMutableRawPointer?, _ size: Int) -> Int {
        lister?(path, buffer, size) ?? -1
      }
      static func get(_ path: Path, _ name: Path, _ buffer: UnsafeMutableRawPointer?, _ size: Int) -> Int {
        getter?(path, name, buffer, size) ?? -1
      }
      static func set(_ path: Path, _ name: String, _ value: UnsafeRawPointer?, _ size: Int) -> Int32 {
        setter?(path, name, value, size, 0) ?? -1
      }
      static func remove(_ path: Path, _ name: String) -> Int32 { remover?(path, name) ?? -1 }
    #endif
  }
}

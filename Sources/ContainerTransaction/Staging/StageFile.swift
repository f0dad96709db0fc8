import AppContainer
import SystemPackage

/// A file of the stage that is being written.
public final class StageFile {
  private let file: FileDescriptor
  private let path: String
  private var isOpen = true

  init(_ stage: Directory, _ name: ContainerPath) throws {
    file = try stage.createFile(name)
    path = stage.full(name)
  }

  deinit { close() }

  /// Appends bytes.
  public func write(_ bytes: some Sequence<UInt8>) throws {
    do { _ = try file.writeAll(bytes) } catch let error as Errno {
      throw ContainerError.system("cannot write the staged file", path, error)
    }
  }

  /// Appends bytes.
  public func write(_ bytes: UnsafeRawBufferPointer) throws {
    do {
      // In pieces: given several MiB at once, Linux takes five times as long to find the memory for them.
      var rest = bytes[...]
      while !rest.isEmpty {
        try file.writeAll(UnsafeRawBufferPointer(rebasing: rest.prefix(256 << 10)))
        rest = rest.dropFirst(256 << 10)
      }
    } catch let error as Errno {
      throw ContainerError.system("cannot write the staged file", path, error)
    }
  }

  func close() {
    if isOpen { try? file.close() }
    isOpen = false
  }
}

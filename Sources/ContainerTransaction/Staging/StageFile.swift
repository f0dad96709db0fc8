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
    do { _ = try file.writeAll(bytes) } catch let error as Errno {
      throw ContainerError.system("cannot write the staged file", path, error)
    }
  }

  func close() {
    if isOpen { try? file.close() }
    isOpen = false
  }
}

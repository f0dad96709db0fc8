import Foundation
import TestSupport

@testable import Formats

/// An archive made by hand, with whatever in it.
struct HandmadeKeyedArchive {
  var objects: [PropertyListValue] = [.string("$null")]
  var root: PropertyListDictionary = [
    "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000),
    "$top": .dictionary(["root": uid(1)]),
  ]

  /// A reference to an object.
  static func uid(_ number: Int) -> PropertyListValue {
    let bytes = withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { Array($0) }
    return .unknown(PropertyListValue.Opaque(marker: 0x83, payload: bytes))
  }

  /// An archive of these objects; the first one is the root, and number 1.
  init(_ objects: [PropertyListValue] = []) { self.objects += objects }

  /// A class, as an object.
  static func type(_ name: String) -> PropertyListValue {
    .dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])])
  }

  /// One instance, object 1, of a class, object 2; whatever else follows.
  static func instance(
    of name: String, _ fields: PropertyListDictionary, _ more: [PropertyListValue] = []
  ) -> Self {
    Self([.dictionary(fields.merging(["$class": uid(2)]) { $1 }), type(name)] + more)
  }

  var file: PropertyListFile {
    PropertyListFile(root: root.merging(["$objects": .array(objects)]) { old, _ in old })
  }

  func bytes(_ format: PropertyListFile.Format = .binary) throws -> [UInt8] {
    var file = file
    file.format = format
    return try file.encoded()
  }

  func read(_ change: (inout KeyedArchiveOptions) -> Void = { _ in }) throws -> PropertyListValue {
    var options = KeyedArchiveOptions()
    change(&options)
    return try KeyedArchiveReader.read(file.root, options)
  }

  func expectFailure(
    _ words: String, fileID: String = #fileID, path: String = #filePath, line: Int = #line,
    _ change: (inout KeyedArchiveOptions) -> Void = { _ in }
  ) {
    expectError(nil, words, fileID: fileID, path: path, line: line) { try read(change) }
  }
}

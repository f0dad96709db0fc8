import FileSystem
import Foundation
import TestSupport
import Testing

@testable import Storage

@Suite("Remote places: broken connections, errors and lost replies")
struct FaultTests {
  /// Random work through a proxy that breaks every connection sooner or later: every call succeeds, and the place has what a model
  /// has.
  @Test(
    // moto stores what has arrived of a request that was cut.
    "Random rounds through a faulty connection keep the model", arguments: [PlaceKind.s3, .sftp],
    [1, 2] as [UInt64])
  func rounds(_ kind: PlaceKind, _ seed: UInt64) throws {
    let place = try kind.make()
    let (faulty, proxy) = try RemoteServers.faulty(place, seed: seed, percent: 100)
    try withExtendedLifetime(proxy) {
      let store = try faulty.store { options in
        options.attempts = 60
        options.noProgressLimit = 3
      }
      let direct = try place.store()
      var random = SeededRandom(seed: seed)
      var model: [ContainerPath: [UInt8]] = [:]
      let names: [ContainerPath] = ["a", "b c", "d+e", "f/g", "f/h i", "ü"]
      // A write over SFTP is given up after five tries, as on a full disk: in many rounds that would happen.
      for round in 0..<(TestExtent.isFull && kind == .s3 ? 150 : 40) {
        let name = names.randomElement(using: &random) ?? "a"
        let where_ = "round \(round): \(name)"
        // Seldom of several parts: the bytes are most of the time.
        let size =
          Int.random(in: 0...4, using: &random) == 0 && round % 8 == 0
          ? 17_000_000 : Int.random(in: 0...60_000, using: &random)
        let bytes = StorageTests.random(size, seed: random.next())
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
          #expect(try store.putFile(name, bytes).size == UInt64(size), "\(where_)")
          model[name] = bytes
        case 1, 2:
          let file = try store.uploadAll(name, bytes)
          #expect((file == nil) == (model[name] != nil), "\(where_)")
          if file != nil { model[name] = bytes }
        case 3:
          try store.remove(name)
          model[name] = nil
        case 4:
          let listed = try (store.files("") + store.files("f")).filter(\.isFile)
          #expect(listed.map(\.name).sorted() == model.keys.sorted(), "\(where_)")
          for file in listed { #expect(Int(file.size) == model[file.name]?.count, "\(where_)") }
        default:
          let file = try store.file(name)
          #expect(file?.size == model[name].map { UInt64($0.count) }, "\(where_)")
          if let file { #expect(try store.bytes(file) == model[name], "\(where_)") }
        }
      }
      for (name, bytes) in model {
        let file = try #require(try direct.file(name))
        #expect(try direct.bytes(file) == bytes)
      }
      #expect(
        try (direct.files("") + direct.files("f")).filter(\.isFile).map(\.name).sorted()
          == model.keys.sorted())
      // The test would prove nothing if the proxy did nothing.
      let faults = proxy.output.split(separator: "\n").filter { $0.hasPrefix("fault") }
      #expect(Set(faults).count >= 3 && faults.count >= 5, "\(faults)")
    }
  }
}

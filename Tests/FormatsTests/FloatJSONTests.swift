import Foundation
import TestSupport
import Testing

@testable import Formats

@Suite("JSON of 32-bit reals") struct FloatJSONTests {
  @Test("They read back exactly, as a Float and through a Double")
  func random() throws {
    var random = SeededRandom(seed: 17)
    let special: [Float] = [
      0, -0, .leastNonzeroMagnitude, .leastNormalMagnitude, .greatestFiniteMagnitude, 0.1, 16_777_216, 1e10,
    ]
    let values =
      special + (0..<20_000).map { _ in Float(bitPattern: UInt32(truncatingIfNeeded: random.next())) }
    var tried = 0
    for value in values where value.isFinite {
      tried += 1
      let json = try #require(JSONValue(.single(value)))
      let text = JSONDocument(json, isIndented: false).text
      guard case .number(let number) = try JSONDocument(bytes: Array(text.utf8)).value else {
        Issue.record("\(text) is not a number")
        continue
      }
      guard Float(number.text)?.bitPattern == value.bitPattern,
        Double(number.text).map({ Float($0).bitPattern }) == value.bitPattern
      else {
        Issue.record("\(value.bitPattern) is \(number.text)")
        continue
      }
    }
    #expect(tried > 19_000)
    // Swift's own reader, which apps use.
    for value in values.prefix(1000) where value.isFinite {
      let text = JSONDocument(.array(JSONArray([try #require(JSONValue(.single(value)))])), isIndented: false)
        .text
      #expect(try JSONDecoder().decode([Float].self, from: Data(text.utf8))[0].bitPattern == value.bitPattern)
    }
    #expect(JSONValue(.single(.nan)) == nil && JSONValue(.single(.infinity)) == nil)
  }
}

import Testing

@testable import DrydockCommand

@Suite("The end of work on many containers") struct BatchSummaryTests {
  @Test(
    "One exit code for many",
    arguments: [
      ([], 0), ([0, 0], 0), ([4, 4], 4), ([2, 2], 2), ([0, 2], 2), ([2, 0, 2], 2), ([5, 4], 5), ([0, 4], 3),
      ([4, 2], 3), ([6, 0], 3), ([0, 4, 5], 3), ([64], 64),
    ] as [([Int32], Int32)])
  func exitCode(_ codes: [Int32], _ one: Int32) {
    #expect(BatchSummary.exitCode(of: codes) == one)
  }
}

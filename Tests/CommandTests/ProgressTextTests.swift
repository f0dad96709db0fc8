import FileSystem
import Testing

@testable import DrydockCommand

@Suite("The line of progress") struct ProgressTextTests {
  /// The line after some seconds of a phase that began at 100 s.
  private func line(_ progress: WorkProgress, after seconds: Double, width: Int = 200) -> String? {
    var text = ProgressText()
    _ = text.line(progress.state, at: 100, width: width)
    return text.line(progress.state, at: 100 + seconds, width: width)
  }

  @Test func `Nothing before anything has begun`() { #expect(line(WorkProgress(), after: 5) == nil) }

  @Test func `Share, time left, bytes, rate and files`() {
    let progress = WorkProgress()
    progress.begin(.restore, totalBytes: 2_000_000_000, totalFiles: 1000)
    progress.add(bytes: 500_000_000, files: 10)
    #expect(
      line(progress, after: 10)
        == "restore, 25%, 0:30 left, 500 MB of 2.0 GB, 50 MB/s, 10 of 1000 files")
    // Too early for a rate.
    #expect(line(progress, after: 0.5) == "restore, 25%, 500 MB of 2.0 GB, 10 of 1000 files")
    #expect(line(progress, after: 1800)?.contains(", 1:30:00 left,") == true)
    progress.add(bytes: 1_500_000_000)
    #expect(line(progress, after: 10)?.hasPrefix("restore, 100%, 0:00 left, 2.0 GB of 2.0 GB, ") == true)
  }

  @Test func `Without totals: what is done, and the rate`() {
    let progress = WorkProgress()
    progress.begin(.snapshot)
    progress.set(bytes: 3_000_000, files: 1)
    #expect(line(progress, after: 2) == "snapshot, 3.0 MB, 1.5 MB/s, 1 file")
  }

  @Test func `More is done than was expected: all of it, without the total`() {
    let progress = WorkProgress()
    progress.begin(.restore, totalBytes: 6_000_000, totalFiles: 4)
    progress.set(bytes: 3_000_000, files: 1)
    #expect(line(progress, after: 2) == "restore, 50%, 0:02 left, 3.0 MB of 6.0 MB, 1.5 MB/s, 1 of 4 files")
    progress.set(bytes: 7_000_000, files: 5)
    #expect(line(progress, after: 2) == "restore, 100%, 0:00 left, 7.0 MB, 3.5 MB/s, 5 files")
  }

  @Test func `Nothing to count: the seconds`() {
    let progress = WorkProgress()
    progress.begin(.commit)
    #expect(line(progress, after: 61.2) == "commit, 1:02")
    progress.begin(.list, totalFiles: 0)
    #expect(line(progress, after: 3) == "list, 0:03")
    progress.begin(.list, totalFiles: 4)
    progress.add(files: 1)
    #expect(line(progress, after: 3) == "list, 25%, 0:09 left, 1 of 4")
  }

  @Test func `Several archives: the share and the time left of all, the rate of all`() {
    let progress = WorkProgress()
    var text = ProgressText()
    progress.begin(item: 1, of: 4)
    progress.begin(.verify, totalBytes: 100_000)
    progress.add(bytes: 50_000)
    _ = text.line(progress.state, at: 0, width: 200)
    progress.begin(item: 2, of: 4)
    progress.begin(.verify, totalBytes: 400_000)
    #expect(text.line(progress.state, at: 10, width: 200) == "verify 2/4, 25%, 0:30 left, 5.0 kB/s")
    progress.add(bytes: 200_000)
    let line = text.line(progress.state, at: 20, width: 200)
    #expect(line == "verify 2/4, 37%, 0:34 left, 200 kB of 400 kB, 13 kB/s")
    progress.begin(item: nil, of: 0)
    #expect(text.line(progress.state, at: 20, width: 200)?.hasPrefix("verify, 50%") == true)
  }

  @Test func `Bytes that are measured when they are asked for`() {
    let progress = WorkProgress()
    progress.begin(.export, totalBytes: 10) { 7 }
    progress.add(files: 2)
    #expect(progress.state.bytes == 7 && progress.state.files == 2)
    progress.begin(.check)
    #expect(progress.state.bytes == 0 && progress.state.files == 0 && progress.state.totalBytes == nil)
  }

  @Test(arguments: 0...70) func `Never wider than the terminal`(_ width: Int) {
    let progress = WorkProgress()
    progress.begin(.restore, totalBytes: 2_000_000_000, totalFiles: 1000)
    progress.add(bytes: 500_000_000, files: 10)
    let whole = line(progress, after: 10) ?? ""
    let cut = line(progress, after: 10, width: width) ?? ""
    #expect(cut.count == min(whole.count, max(0, width - 1)) && whole.hasPrefix(cut))
  }

  @Test func `A phase counts its time from its beginning`() {
    let progress = WorkProgress()
    var text = ProgressText()
    progress.begin(.check)
    _ = text.line(progress.state, at: 0, width: 80)
    progress.begin(.commit)
    #expect(text.line(progress.state, at: 100, width: 80) == "commit, 0:00")
    #expect(text.line(progress.state, at: 107, width: 80) == "commit, 0:07")
  }

  @Test func `Counted on many threads`() throws {
    let progress = WorkProgress()
    progress.begin(.restore)
    try onAllCores(Array(0..<8)) { _ in
      for _ in 0..<1000 { progress.add(bytes: 3, files: 1) }
    }
    #expect(progress.state.bytes == 24_000 && progress.state.files == 8000)
  }
}

import Testing

@testable import AppContainer
@testable import ContainerTransaction

@Suite struct DiskWorkTests {
  @Test("What the disk refuses beside a run is thrown at its end; a file that is gone by then is nothing")
  func failures() throws {
    let work = DiskWork()
    work.start { throw ContainerError.system("cannot sync", "/made-up", .noSuchFileOrDirectory) }
    try work.finish()
    work.start { throw ContainerError.system("cannot sync", "/made-up", .ioError) }
    work.start { throw ContainerError.system("cannot sync", "/made-up", .noSuchFileOrDirectory) }
    #expect(throws: ContainerError.self) { try work.finish() }
  }

  @Test("A reason has no advice")
  func reasons() {
    let error = ContainerError.system("cannot write", "/made-up", .noSpace)
    #expect(error.message.contains("; free some space"))
    #expect(TransactionError.reason(of: error) == "/made-up: cannot write: No space left on device")
    let own = TransactionError(.noSpace, "no space; run it again", path: "/made-up")
    #expect(TransactionError.reason(of: own) == "/made-up: no space")
  }
}

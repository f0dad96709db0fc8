import DrydockErrors
import Testing

@testable import AppContainer
@testable import ContainerTransaction

@Suite struct DiskWorkTests {
  @Test("What the disk refuses beside a run is thrown at its end; a file that is gone by then is nothing")
  func failures() throws {
    let work = DiskWork()
    work.start { throw DrydockError.system("cannot sync", "/made-up", .noSuchFileOrDirectory) }
    try work.finish()
    work.start { throw DrydockError.system("cannot sync", "/made-up", .ioError) }
    work.start { throw DrydockError.system("cannot sync", "/made-up", .noSuchFileOrDirectory) }
    #expect(throws: DrydockError.self) { try work.finish() }
  }

  @Test("A reason has no advice")
  func reasons() {
    let error = DrydockError.system("cannot write", "/made-up", .noSpace)
    #expect(error.message.contains("; free some space"))
    #expect(DrydockError.reason(of: error) == "/made-up: cannot write: No space left on device")
    let own = DrydockError(.noSpace, "no space; run it again", path: "/made-up")
    #expect(DrydockError.reason(of: own) == "/made-up: no space")
  }
}

import Foundation
import TestSupport
import Testing

@Suite("Nearly full file systems") struct NearlyFullTests {
  /// With blocks smaller than a page SQLite's shared memory has holes; where one cannot be filled, a touch of the mapped
  /// page ends the process (SIGBUS).
  private static let migrations = """
    for free in 58 60 62 110 112; do
      rm -rf Place/Notes Place/.drydock-* Place/ballast; cp -a Notes Place/Notes; sync -f Place
      all=$(df --output=avail Place | tail -n 1); fallocate -l $((all - free))K Place/ballast; sync -f Place
      code=0; "$0" migrate Place/Notes --to 4 > output 2>&1 || code=$?
      [ $code = 0 ] || diff -r --no-dereference Notes Place/Notes
      echo "$free $code"
    done
    """

  @Test("Blocks of 1 KiB: a migration without space fails, and no signal ends it") func smallBlocks() throws {
    try #require(getuid() == 0, "run as root, as CI does: only root mounts a file system in a file")
    try Sandbox.with { sandbox in
      try sandbox.create()
      let space = try Namespace(
        sandbox,
        """
        cd "$0"; truncate -s 8M disk; mkfs.ext4 -q -F -b 1024 -m 0 disk; mkdir Place; mount -o loop disk Place
        """)
      let result = try space.run("/bin/sh", ["-ec", Self.migrations, sandbox.program]).expect()
      let codes = result.output.split(separator: "\n").map { $0.split(separator: " ").last }
      #expect(codes.count == 5 && codes.allSatisfy { $0 == "0" || $0 == "1" }, "\(result.output)")
    }
  }
}

import Foundation

// `Fuzz TARGET [libFuzzer's arguments]`.

/// libFuzzer's loop, for a program that has a `main` of its own.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// What libFuzzer's own `main` would call; it is linked and never used.
@_cdecl("LLVMFuzzerTestOneInput")
public func unused(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt { 0 }

private let target = FuzzTarget(rawValue: ProcessInfo.processInfo.environment["FUZZ_TARGET"] ?? "")
guard target != nil else {
  print("FUZZ_TARGET is one of: \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
  exit(64)
}

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(
  runDriver(&count, &arguments) { bytes, count in
    target?.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
  })

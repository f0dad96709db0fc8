import DrydockErrors
package enum RemoteStores {
  package static func isRemote(_ path: String) -> Bool {
    path.hasPrefix("s3://") || path.hasPrefix("sftp://")
  }
  package static func open(_ url: String, _ options: RemoteOptions) throws -> any RemoteStore {
    throw DrydockError(.unsupported, "not yet", path: url)
  }
}
package struct RemoteOptions: Sendable {
  package static func environment() -> RemoteOptions { RemoteOptions() }
}

// What libproc shows of processes: their open files, mappings and directories. `LinuxProcesses.swift` is the counterpart.
// macOS: untested

#if canImport(Darwin)
  import Darwin
  import FileSystem

  extension ProcessTable {
    static let own: Int32? = getpid()

    static func identifiers() -> [Int32] {
      list { proc_listpids(UInt32(PROC_ALL_PIDS), 0, $0, $1) }.filter { $0 > 0 }
    }

    static func name(of process: Int32) -> String {
      var name = [CChar](repeating: 0, count: 2 * Int(MAXCOMLEN) + 1)
      let length = proc_name(process, &name, UInt32(name.count))
      guard length > 0 else { return "unknown" }
      return String(decoding: name.prefix(Int(length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// The open descriptors of a process; nil when this user may not look into it. One that has ended has none.
    fileprivate static func descriptors(of process: Int32) -> [proc_fdinfo]? {
      errno = 0
      let found: [proc_fdinfo] = list { proc_pidinfo(process, PROC_PIDLISTFDS, 0, $0, $1) }
      return found.isEmpty && errno == EPERM ? nil : found
    }

    /// One structure that describes a part of a process; nil when there is none.
    fileprivate static func information<Value>(
      _ empty: Value, _ call: (UnsafeMutableRawPointer, Int32) -> Int32
    ) -> Value? {
      var value = empty
      let size = Int32(MemoryLayout<Value>.size)
      return call(&value, size) == size ? value : nil
    }

    /// A list of unknown length: asked for its size first, with room for what comes between the two calls.
    private static func list<Element>(_ call: (UnsafeMutableRawPointer?, Int32) -> Int32) -> [Element] {
      let stride = MemoryLayout<Element>.stride
      let size = Int(call(nil, 0)) + 64 * stride
      guard size > 64 * stride else { return [] }
      return [Element](unsafeUninitializedCapacity: size / stride) { buffer, count in
        count = max(0, Int(call(buffer.baseAddress, Int32(buffer.count * stride)))) / stride
      }
    }
  }

  extension OpenFileSearch {
    func search(_ processes: [Int32], _ result: inout Result) {
      for process in processes {
        guard let descriptors = ProcessTable.descriptors(of: process) else {
          result.unseen.add(unreadable: process)
          continue
        }
        result.found += search(process, descriptors)
      }
    }

    private func search(_ process: Int32, _ descriptors: [proc_fdinfo]) -> [OpenFile] {
      let isOwn = process == ProcessTable.own
      var found: [OpenFile] = []
      var seen: Set<FileIdentity> = []
      func note(_ vnode: vnode_info, _ mode: String) {
        let identity = FileIdentity(device: UInt64(vnode.vi_stat.vst_dev), inode: vnode.vi_stat.vst_ino)
        guard let path = self.path(of: identity), seen.insert(identity).inserted else { return }
        found.append(
          OpenFile(process: process, processName: ProcessTable.name(of: process), path: path, mode: mode))
      }
      for descriptor in descriptors where descriptor.proc_fdtype == UInt32(PROX_FDTYPE_VNODE) {
        if isOwn && own.contains(descriptor.proc_fd) { continue }
        let file = ProcessTable.information(vnode_fdinfo()) {
          proc_pidfdinfo(process, descriptor.proc_fd, PROC_PIDFDVNODEINFO, $0, $1)
        }
        if let file { note(file.pvi, "open") }
      }
      // This process's working directory does not count: it is entered again after an exchange (``WorkingDirectory``).
      if !isOwn,
        let directories = ProcessTable.information(
          proc_vnodepathinfo(), { proc_pidinfo(process, PROC_PIDVNODEPATHINFO, 0, $0, $1) })
      {
        note(directories.pvi_cdir.vip_vi, OpenFile.workingDirectory)
        note(directories.pvi_rdir.vip_vi, "its root directory")
      }
      var address: UInt64 = 0
      while let region = ProcessTable.information(
        proc_regionwithpathinfo(), { proc_pidinfo(process, PROC_PIDREGIONPATHINFO, address, $0, $1) })
      {
        note(region.prp_vip.vip_vi, "mapped")
        let next = region.prp_prinfo.pri_address &+ region.prp_prinfo.pri_size
        guard next > address else { break }
        address = next
      }
      return found
    }
  }

  extension FilesMappedForWriting {
    /// libproc shows the mappings of a process one by one, and not whether they are shared: nothing is looked for.
    static func candidates() -> [UInt32: Set<Int32>] { [:] }
  }

  extension UnseenProcesses {
    /// libproc lists every process; those that may not be looked into are counted one by one.
    static func ofThisMachine(_ shown: [Int32]) -> UnseenProcesses {
      var unseen = UnseenProcesses()
      unseen.hidden = !shown.contains(getpid())
      return unseen
    }
  }
#endif

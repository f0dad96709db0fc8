// What `/proc` shows of processes: their open files, mappings and directories. `DarwinProcesses.swift` is the counterpart.

#if os(Linux)
  import FileSystem
  import Foundation
  import SystemPackage

  extension OpenFileSearch {
    func search(_ processes: [Int32], _ result: inout Result) {
      // The kernel compares threads by the numbers of the caller's PID namespace, which may not be those of `/proc`.
      let comparesThreads = ProcessTable.status("NSpid")?.contains("\t") == false
      for process in processes { search(process, comparesThreads, &result) }
    }

    private func search(_ process: Int32, _ comparesThreads: Bool, _ result: inout Result) {
      let base = "/proc/\(process)"
      var found: [OpenFile] = []
      var seen: Set<FileIdentity> = []
      func note(_ identity: FileIdentity, _ mode: String) {
        guard contains(identity), seen.insert(identity).inserted, let path = self.path(of: identity) else {
          return
        }
        found.append(
          OpenFile(process: process, processName: ProcessTable.name(of: process), path: path, mode: mode))
      }
      let isOwn = process == ProcessTable.own
      let own = isOwn ? self.own : []
      var (isRefused, isUnclear) = (false, false)
      /// Returns false where reading on is useless.
      func look(at thread: String) -> Bool {
        var visits = [LinkVisit.numbers(in: thread + "/fd") { if !own.contains($0) { note($1, "open") } }]
        // This process's working directory does not count: it is entered again after an exchange (``WorkingDirectory``).
        if !isOwn && visits[0] != .refused {
          visits.append(.link(thread + "/cwd") { note($0, OpenFile.workingDirectory) })
          visits.append(.link(thread + "/root") { note($0, "its root directory") })
        }
        return !visits.contains(.refused)
      }
      let threads = ProcessTable.threads(of: process)
      var memory = searchMappings(of: base, { note($0, "mapped") }, unclear: &isUnclear)
      // A thread of the kernel, or a process that has ended.
      if memory == .gone && threads.count < 2 { return }
      if !look(at: base) {
        switch ProcessTable.kind(of: process) {
        case .program: isRefused = true
        case .zombie: break
        case .kernel, nil: return
        }
      }
      if !isRefused {
        // Threads share their tables, except for those that asked for their own. The comparison saves much: the tables of a
        // thousand threads with 300 descriptors take more than a second to read.
        var last = process
        for thread in threads where thread != process {
          let path = "\(base)/task/\(thread)"
          if !(comparesThreads && shareTables(last, thread)) {
            if !look(at: path) { isRefused = true }
            last = thread
          }
          // The first thread has nothing mapped any more when it has ended before the others.
          if memory == .gone {
            memory = searchMappings(of: path, { note($0, "mapped") }, unclear: &isUnclear)
          }
        }
      }
      if isRefused || isUnclear {
        let user = ProcessTable.status("Uid", of: base)?.split(separator: "\t").first.flatMap { UInt32($0) }
        let isOther = if let user, let owner { user != owner } else { false }
        if isOther || ProcessTable.isSupervisor(process) {
          result.unseen.uninvolved += 1
        } else {
          result.unseen.add(unreadable: process)
        }
      }
      if found.isEmpty { return }
      let isStarting = ProcessTable.isStarting(process)
      result.found += found.map {
        var file = $0
        file.isStarting = isStarting
        return file
      }
    }
  }

  extension UnseenProcesses {
    /// What `/proc` as a whole does not show; processes that it shows and that may not be read come on top of that.
    static func ofThisMachine(_ shown: [Int32]) -> UnseenProcesses {
      var unseen = UnseenProcesses()
      guard let own = ProcessTable.own, shown.contains(own) else {
        unseen.hidden = true
        return unseen
      }
      unseen.hidden = isHiding && !(mayTrace && shown.contains(1))
      unseen.outsideNamespace = !isInFirstNamespace
      return unseen
    }

    /// The kernel's threads are in the first PID namespace only, which always has this inode.
    private static var isInFirstNamespace: Bool {
      FollowedStatus.identity("/proc/self/ns/pid")?.inode == 0xEFFF_FFFC
        || ProcessTable.kind(of: 2) == .kernel
    }

    /// Whether `/proc` is mounted so that only processes that may be traced are shown.
    private static var isHiding: Bool {
      let mounts = ProcessTable.contents("/proc/self/mountinfo").map { String(decoding: $0, as: UTF8.self) }
      let ofProc = mounts?.split(separator: "\n").last {
        let fields = $0.split(separator: " ")
        return fields.count > 4 && fields[4] == "/proc"
      }
      let options = ofProc?.split(separator: " ").last?.split(separator: ",") ?? []
      return options.contains {
        ["hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable"].contains($0)
      }
    }

    /// CAP_SYS_PTRACE.
    private static var mayTrace: Bool {
      ProcessTable.status("CapEff").flatMap { UInt64($0, radix: 16) }.map { $0 & (1 << 19) != 0 } ?? false
    }
  }

  extension ProcessTable {
    /// This process, by the number that it has in `/proc`: mounted in an outer PID namespace, that is another one than
    /// `getpid()`.
    static let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self"))
      .flatMap { Int32($0) }

    static func identifiers() -> [Int32] { numbers(in: "/proc") ?? [] }

    /// The threads of a process, among them the first one, which has the process's number.
    static func threads(of process: Int32) -> [Int32] {
      // Counted as sub-directories, which is much cheaper than to list them.
      let path = "/proc/\(process)/task"
      return FollowedStatus.links(path) == 3 ? [process] : numbers(in: path) ?? []
    }

    private static func numbers(in path: String) -> [Int32]? {
      try? Directory(path).names().compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
    }

    /// Whether a process is the first one and has capabilities that root lacks here: it runs this sandbox and is not an app in it.
    static func isSupervisor(_ process: Int32) -> Bool {
      func capabilities(_ path: String) -> UInt64? {
        status("CapPrm", of: path).flatMap { UInt64($0, radix: 16) }
      }
      guard process == 1, geteuid() == 0, let own = capabilities("/proc/self"),
        let others = capabilities("/proc/1")
      else { return false }
      return others & ~own != 0
    }

    static func name(of process: Int32) -> String {
      let name = contents("/proc/\(process)/comm").map { String(decoding: $0, as: UTF8.self) }
      return name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
    }

    enum Kind {
      case program
      /// A thread of the kernel: nothing.
      case kernel
      /// A process whose first thread has ended: what its other threads have open.
      case zombie
    }

    /// Whether a failed read means that this user may not look into a process, rather than that it has ended.
    static func isRefusal(_ error: any Error) -> Bool {
      [.permissionDenied, .notPermitted].contains(error as? Errno)
    }

    /// Whether a process is a child of this one that has not begun to run another program, or ends without having done so.
    /// The kernel changes a process's program before it closes the copies of descriptors, and its name after that; and
    /// of a process that ends, the program is gone before they are.
    static func isStarting(_ process: Int32) -> Bool {
      guard let own, let parent = fields(ofStat: contents("/proc/\(process)/stat") ?? []).dropFirst().first,
        Int32(parent) == own
      else { return false }
      let program = FollowedStatus.identity("/proc/\(process)/exe")
      if program != nil, program == FollowedStatus.identity("/proc/self/exe") { return true }
      // It has the name of the thread that started it.
      let name = contents("/proc/\(process)/comm")
      return name != nil && threads(of: own).contains { contents("/proc/\(own)/task/\($0)/comm") == name }
    }

    /// The fields of `/proc/PID/stat` from the state on: the name in parentheses before it can have anything in it.
    private static func fields(ofStat bytes: [UInt8]) -> [Substring] {
      String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    }

    /// Nil for a process that has ended.
    static func kind(of process: Int32) -> Kind? {
      let bytes: [UInt8]
      do { bytes = try self.bytes(of: "/proc/\(process)/stat") } catch {
        return isRefusal(error) ? .program : nil
      }
      // Six fields after the state are the flags.
      let fields = fields(ofStat: bytes)
      let kernelThread = 0x0020_0000
      guard fields.count > 6, let flags = Int(fields[6]) else { return .program }
      if flags & kernelThread != 0 { return .kernel }
      return fields[0] == "Z" || fields[0] == "X" ? .zombie : .program
    }

    /// The value of a line of `/proc/self/status`, or that of another process.
    static func status(_ name: String, of process: String = "/proc/self") -> String? {
      guard let bytes = contents(process + "/status") else { return nil }
      let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first {
        $0.hasPrefix(name + ":")
      }
      return line.map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }

    /// A file of `/proc` to its end. The kernel gives such a file in pieces and says that it is empty, and Foundation
    /// stops after the first piece.
    static func contents(_ path: String) -> [UInt8]? { try? bytes(of: path) }

    /// - Throws: `Errno` when it cannot be opened.
    static func bytes(of path: String) throws -> [UInt8] {
      let file = try open(path)
      defer { try? file.close() }
      return bytes(of: file)
    }

    static func open(_ path: String) throws -> FileDescriptor {
      try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
    }

    static func bytes(of file: FileDescriptor) -> [UInt8] {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while let count = try? buffer.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
        bytes.append(contentsOf: buffer[..<count])
      }
      return bytes
    }
  }

  /// The files of a container that processes have mapped into memory, which need not be open.
  ///
  /// On btrfs and overlay `/proc/PID/maps` has another device than `stat`. An inode's number alone is therefore a
  /// candidate, of which the kernel is asked for the file itself.
  extension OpenFileSearch {
    /// Looks through the mappings of a process or thread.
    ///
    /// - Parameters:
    ///   - base: its directory, such as `/proc/71`.
    ///   - readsText: whether the text is read, as before Linux 6.11.
    ///   - found: is given each file of the container.
    ///   - unclear: becomes true when a candidate cannot be distinguished from a file elsewhere.
    /// - Returns: `gone` when it has no memory, as kernel threads and ended processes.
    func searchMappings(
      of base: String, readsText: Bool = false, _ found: (FileIdentity) -> Void, unclear: inout Bool
    ) -> LinkVisit {
      let maps: FileDescriptor
      do { maps = try ProcessTable.open(base + "/maps") } catch {
        return ProcessTable.isRefusal(error) ? .refused : .gone
      }
      defer { try? maps.close() }
      /// False when it cannot be decided whether a mapping is of a file of the container.
      func decide(_ mapped: FileIdentity, _ file: () -> FileIdentity?) -> Bool {
        guard mapped.inode != 0, mayContain(mapped.inode) else { return true }
        guard let file = contains(mapped) ? mapped : file() else { return false }
        if contains(file) { found(file) }
        return true
      }
      if !readsText {
        let visit = LinkVisit.mappings(maps.rawValue) { addresses, mapped in
          // Where the path is needed, the text has it.
          decide(mapped) { identity(at: addresses, base) }
        }
        if let visit { return visit }
      }
      let bytes = ProcessTable.bytes(of: maps)
      if bytes.isEmpty { return .gone }
      bytes.withUnsafeBufferPointer { bytes in
        var last: FileIdentity?
        for line in IteratorSequence(MappingLines(bytes)) {
          // A file is mapped in several pieces, one after the other.
          if last == line.identity { continue }
          last = line.identity
          if !decide(line.identity, { identity(of: line, base, bytes) }) { unclear = true }
        }
      }
      return .complete
    }

    /// The file behind a mapping, through the mapping itself: this needs privileges.
    private func identity(at addresses: Range<UInt64>, _ base: String) -> FileIdentity? {
      let (start, end) = (String(addresses.lowerBound, radix: 16), String(addresses.upperBound, radix: 16))
      return FollowedStatus.identity("\(base)/map_files/\(start)-\(end)")
    }

    /// The file behind a mapping: through the mapping itself, which needs privileges, or through its path as the process
    /// sees it.
    private func identity(
      of line: MappingLines.Element, _ base: String, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> FileIdentity? {
      if let identity = identity(at: line.addresses, base) { return identity }
      let path = String(decoding: bytes[line.path], as: UTF8.self).replacing("\\012", with: "\n")
      guard path.hasPrefix("/"), !path.hasSuffix(" (deleted)"),
        let identity = FollowedStatus.identity("\(base)/root\(path)"),
        UInt32(truncatingIfNeeded: identity.inode) == UInt32(truncatingIfNeeded: line.identity.inode)
      else { return nil }
      return identity
    }
  }

  extension FilesMappedForWriting {
    static func candidates() -> [UInt32: Set<Int32>] {
      var found: [UInt32: Set<Int32>] = [:]
      for process in ProcessTable.identifiers() {
        (ProcessTable.contents("/proc/\(process)/maps") ?? []).withUnsafeBufferPointer { bytes in
          for line in IteratorSequence(MappingLines(bytes)) where line.changesFile {
            found[InodePaths.half(line.identity.inode), default: []].insert(process)
          }
        }
      }
      return found
    }
  }
#endif

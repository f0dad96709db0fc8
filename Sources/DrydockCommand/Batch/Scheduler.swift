import Drydock

/// The part of the work that a job does, and the run that it belongs to: given, or by the variables of the scheduler that started
/// the job.
struct JobShard {
  var shard: Shard
  /// The run, as far as the scheduler knows it; and the variable that would name it.
  var run: RunID?
  var missing: String?

  /// - Parameters:
  ///   - text: the value of `--shard`: `3/8`, `slurm`, `kubernetes` or `kubernetes/8`.
  ///   - variables: the environment.
  init(_ text: String, variables: [String: String]) throws {
    if let shard = Shard(text) {
      self.shard = shard
      return
    }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let variables = Variables(scheduler: parts[0], values: variables)
    switch (parts[0], parts.dropFirst().first) {
    case ("slurm", nil):
      shard = try Self.slurm(variables)
      (run, missing) = (
        try variables["SLURM_ARRAY_JOB_ID"].map { try RunID("slurm-" + $0) }, "SLURM_ARRAY_JOB_ID"
      )
    case ("kubernetes", let count):
      shard = try Self.kubernetes(variables, count)
      (run, missing) = (try Self.kubernetesJob(variables), "JOB_NAME")
    default:
      throw UsageError(
        "--shard \(text) is not a part of the work: give I/N, such as 3/8, with I from 1 to N; or slurm; or "
          + "kubernetes, or kubernetes/N")
    }
  }

  private struct Variables {
    var scheduler: String
    var values: [String: String]

    subscript(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    /// - Parameter advice: how the job gets the variable.
    func number(_ name: String, _ advice: String) throws -> Int {
      guard let text = self[name] else {
        throw UsageError("--shard \(scheduler) needs the variable \(name), which is not set; \(advice)")
      }
      guard let number = Shard.number(text) else {
        throw UsageError("--shard \(scheduler): \(name) is `\(text)`, not a number; \(advice)")
      }
      return number
    }
  }

  /// An array such as `--array=1-8` or `--array=0-28:4`. Any regular one covers all shards: a lost one is run again by its number.
  private static func slurm(_ variables: Variables) throws -> Shard {
    let advice = "run it in a job array, such as sbatch --array=1-8, or give I/N"
    let task = try variables.number("SLURM_ARRAY_TASK_ID", advice)
    let first = try variables.number("SLURM_ARRAY_TASK_MIN", advice)
    let last = try variables.number("SLURM_ARRAY_TASK_MAX", advice)
    let step = try variables.number("SLURM_ARRAY_TASK_STEP", advice)
    let tasks = try variables.number("SLURM_ARRAY_TASK_COUNT", advice)
    guard step > 0, (first...max(first, last)).contains(task), (last - first) % step == 0,
      (task - first) % step == 0
    else {
      throw irregular("tasks \(first) to \(last) in steps of \(step) do not include \(task) and both ends")
    }
    let count = (last - first) / step + 1
    guard tasks == count else {
      throw irregular("it has \(tasks) tasks from \(first) to \(last), which are not regular")
    }
    return try Shard((task - first) / step + 1, of: count)
  }

  private static func irregular(_ reason: String) -> UsageError {
    UsageError(
      "--shard slurm cannot number the tasks of this array: \(reason); submit a whole one, such as "
        + "--array=1-8, or give the shard: --shard \"$SLURM_ARRAY_TASK_ID/8\"")
  }

  private static func kubernetes(_ variables: Variables, _ count: String?) throws -> Shard {
    let index = try variables.number(
      "JOB_COMPLETION_INDEX", "Kubernetes sets it in the pods of a job with completionMode: Indexed")
    let number: Int
    if let count {
      guard let given = Shard.number(count), given > 0 else {
        throw UsageError("--shard kubernetes/\(count): \(count) is not a number of shards")
      }
      number = given
    } else {
      number = try variables.number(
        "JOB_COMPLETIONS", "set it to the job's `completions` in the manifest, or give kubernetes/N")
    }
    guard index < number else {
      throw UsageError(
        "--shard kubernetes: the completion index \(index) is beyond \(number) shards; give the job's "
          + "`completions`")
    }
    return try Shard(index + 1, of: number)
  }

  /// A pod of an indexed job has the host name `JOB-INDEX`.
  private static func kubernetesJob(_ variables: Variables) throws -> RunID? {
    if let name = variables["JOB_NAME"] { return try RunID(name) }
    guard let host = variables["HOSTNAME"], let index = variables["JOB_COMPLETION_INDEX"],
      host.hasSuffix("-" + index)
    else { return nil }
    return try? RunID(String(host.dropLast(index.count + 1)))
  }
}

import ArgumentParser
import Glibc
import Measurement

/// A segment, and the variables of an engine that it was taken from.
struct EngineSegment: Equatable {
  /// The reason why no segment can be taken from the environment, as a sentence without a full stop.
  struct NotFound: Error, Equatable, CustomStringConvertible {
    let description: String
  }

  /// From 1.
  var number: Int
  var count: Int
  /// The variables with their values.
  var source: String

  /// Takes the segment of this process from the variables that engines set for each process that they start.
  ///
  /// The rank among processes that were started together is that of Open MPI, PMI or PMIx, or of a Slurm step; an array
  /// of Slurm multiplies it: each of its tasks has as many segments as processes.
  ///
  /// - Parameters:
  ///   - asked: the number of segments, for engines that do not tell it; must be theirs if they do.
  ///   - value: the value of a variable of the environment.
  init(asked: Int?, in value: @escaping (String) -> String?) throws(NotFound) {
    let variables = EngineVariables(value: value)
    let rank = try variables.rank(asked: asked)
    let array = try variables.array()
    let job = try variables.completionIndex(asked: asked)
    if let job, let other = rank ?? array {
      throw NotFound(
        description: "\(job.source) is of a Kubernetes job, and \(other.source) of another engine: give --segment i/n")
    }
    guard let inner = rank ?? array ?? job else {
      throw NotFound(
        description:
          "--segment auto needs an engine that numbers its processes: none of \(EngineVariables.looked.joined(separator: ", ")) is set"
      )
    }
    self = inner
    if rank != nil, let array {
      number = (array.number - 1) * inner.count + inner.number
      count = array.count * inner.count
      source = "\(array.source), \(inner.source)"
    }
    if let asked, asked != count {
      throw NotFound(
        description: "--segment auto/\(asked) asks for \(asked) segments, and \(source) says \(count)")
    }
    guard count <= SegmentArgument.most else {
      throw NotFound(description: "\(source) says \(count) segments; at most \(SegmentArgument.most) can be merged")
    }
  }

  init(number: Int, count: Int, source: String) { (self.number, self.count, self.source) = (number, count, source) }

  /// The process's own environment.
  static func variable(_ name: String) -> String? {
    // Safe: nothing changes the environment of this process, and the text is copied at once.
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
}

extension SegmentArgument {
  /// The segment, and where it is from.
  func found() throws -> EngineSegment {
    switch self {
    case .part(let number, let count): return EngineSegment(number: number, count: count, source: "")
    case .auto(let count):
      do {
        return try EngineSegment(asked: count, in: EngineSegment.variable)
      } catch {
        throw ValidationError("\(error).")
      }
    }
  }
}

/// The place of a process among others, as engines tell it.
private struct EngineVariables {
  /// The first variable of each engine.
  static let looked = [
    "SLURM_PROCID", "SLURM_ARRAY_TASK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "JOB_COMPLETION_INDEX",
  ]

  let value: (String) -> String?

  private typealias Failure = EngineSegment.NotFound

  /// A whole number from 0; `nil` if the variable is not set.
  private func number(_ name: String) throws(Failure) -> Int? {
    guard let text = value(name), !text.isEmpty else { return nil }
    guard let number = Int(text), (0...1_000_000_000).contains(number) else {
      throw Failure(description: "\(name) is '\(text)', which is not a number from 0")
    }
    return number
  }

  private func needed(_ name: String, beside other: String) throws(Failure) -> Int {
    guard let number = try number(name) else {
      throw Failure(description: "\(other) is set and \(name) is not: give --segment i/n")
    }
    return number
  }

  /// A segment of a rank from 0.
  private func segment(_ rank: (String, Int), of size: (String, Int)) throws(Failure) -> EngineSegment {
    let source = "\(rank.0)=\(rank.1), \(size.0)=\(size.1)"
    guard rank.1 < size.1 else {
      throw Failure(description: "\(source): the number is not below that of all; give --segment i/n")
    }
    return EngineSegment(number: rank.1 + 1, count: size.1, source: source)
  }

  /// The rank among processes that were started together; the innermost if one starter has started another.
  func rank(asked: Int?) throws(EngineSegment.NotFound) -> EngineSegment? {
    let slurm = try slurmStep()
    var found: [EngineSegment] = []
    for (rank, size) in [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")] {
      guard let number = try number(rank) else { continue }
      found.append(try segment((rank, number), of: (size, needed(size, beside: rank))))
    }
    if let number = try number("PMIX_RANK") {
      if let other = found.first ?? slurm {
        // PMIx tells no size: that of who started the process with it.
        found.append(
          EngineSegment(number: number + 1, count: other.count, source: "PMIX_RANK=\(number), \(other.source)"))
      } else if let asked {
        found.append(try segment(("PMIX_RANK", number), of: ("auto", asked)))
      } else {
        throw Failure(
          description: "PMIX_RANK=\(number) does not tell how many processes there are: give --segment auto/N")
      }
    }
    if let first = found.first,
      let other = found.first(where: { ($0.number, $0.count) != (first.number, first.count) })
    {
      throw Failure(description: "\(first.source) and \(other.source) contradict each other: give --segment i/n")
    }
    // Under mpirun, a step of Slurm is that of its daemons.
    return found.first ?? slurm
  }

  private func slurmStep() throws(Failure) -> EngineSegment? {
    guard let rank = try number("SLURM_PROCID") else { return nil }
    let size: (String, Int)
    if let ofStep = try number("SLURM_STEP_NUM_TASKS") {
      size = ("SLURM_STEP_NUM_TASKS", ofStep)
    } else if let ofJob = try number("SLURM_NTASKS") {
      size = ("SLURM_NTASKS", ofJob)
    } else {
      // A batch script that asked for no number of tasks is one.
      return nil
    }
    // The script itself is task 0 of its job, whether others are started or not.
    if value("SLURM_STEP_ID") == nil {
      guard size.1 > 1, value("OMPI_COMM_WORLD_RANK") == nil, value("PMI_RANK") == nil else { return nil }
      throw Failure(
        description:
          "\(size.0)=\(size.1), and this process was started by the job's script and not by srun, which would start \(size.1)"
      )
    }
    return try segment(("SLURM_PROCID", rank), of: size)
  }

  /// The place among the tasks of an array, `nil` without one. One task is no array that divides anything, if processes
  /// with ranks are in it.
  func array() throws(EngineSegment.NotFound) -> EngineSegment? {
    let name = "SLURM_ARRAY_TASK_ID"
    guard let id = try number(name) else { return nil }
    let (least, most) = (
      try needed("SLURM_ARRAY_TASK_MIN", beside: name), try needed("SLURM_ARRAY_TASK_MAX", beside: name)
    )
    let count = try needed("SLURM_ARRAY_TASK_COUNT", beside: name)
    let step = max(1, try number("SLURM_ARRAY_TASK_STEP") ?? 1)
    let source = "\(name)=\(id), SLURM_ARRAY_TASK_MIN=\(least), SLURM_ARRAY_TASK_COUNT=\(count)"
    guard least <= id, id <= most, (id - least) % step == 0, (most - least) / step + 1 == count else {
      throw Failure(
        description:
          "the tasks of the array are not numbered evenly (\(source), SLURM_ARRAY_TASK_MAX=\(most), SLURM_ARRAY_TASK_STEP=\(step)): give --segment i/n"
      )
    }
    return EngineSegment(number: (id - least) / step + 1, count: count, source: source)
  }

  func completionIndex(asked: Int?) throws(EngineSegment.NotFound) -> EngineSegment? {
    let name = "JOB_COMPLETION_INDEX"
    guard let index = try number(name) else { return nil }
    guard let asked else {
      throw Failure(description: "\(name)=\(index) does not tell how many pods there are: give --segment auto/N")
    }
    return try segment((name, index), of: ("auto", asked))
  }
}

/// Where a process runs, as its engine names it: a label of its result, unless the user gives the same.
enum EnginePlace {
  static func labels(in value: (String) -> String?) -> [RunLabel] {
    func label(_ name: String, _ variables: [String]) -> RunLabel? {
      variables.compactMap { value($0) }.first { !$0.isEmpty }.flatMap { try? RunLabel("\(name)=\($0)") }
    }
    let isPod = value("JOB_COMPLETION_INDEX") != nil || value("KUBERNETES_SERVICE_HOST") != nil
    return [label("node", ["SLURMD_NODENAME"]), label("pod", isPod ? ["POD_NAME", "HOSTNAME"] : ["POD_NAME"])]
      .compactMap { $0 }
  }
}

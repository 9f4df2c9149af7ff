import Measurement
import TestSupport
import Testing

@testable import apnscope

/// Segments that `--segment auto` takes from the variables of engines. The sets of variables are those that Slurm 22.05, Open MPI
/// 4.1.4 and the documentation of Kubernetes have.
@Suite("Segments of engines")
struct EngineSegmentTests {
  private func segment(_ variables: [String: String], asked: Int? = nil) throws -> String {
    let found = try EngineSegment(asked: asked) { variables[$0] }
    return "\(found.number)/\(found.count)"
  }

  private func refusal(_ variables: [String: String], asked: Int? = nil) -> String {
    do {
      return "no error: \(try segment(variables, asked: asked))"
    } catch {
      return "\(error)"
    }
  }

  private static func step(_ rank: Int, of count: Int) -> [String: String] {
    ["SLURM_PROCID": "\(rank)", "SLURM_NTASKS": "\(count)", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "\(count)"]
  }

  private static func array(_ id: Int, _ range: ClosedRange<Int>, step: Int = 1, count: Int? = nil) -> [String: String]
  {
    [
      "SLURM_ARRAY_TASK_ID": "\(id)", "SLURM_ARRAY_TASK_MIN": "\(range.lowerBound)",
      "SLURM_ARRAY_TASK_MAX": "\(range.upperBound)", "SLURM_ARRAY_TASK_STEP": "\(step)",
      "SLURM_ARRAY_TASK_COUNT": "\(count ?? (range.count - 1) / step + 1)",
      // The script of an array's task is the only task of its job.
      "SLURM_PROCID": "0",
    ]
  }

  private static func openMPI(_ rank: Int, of count: Int) -> [String: String] {
    ["OMPI_COMM_WORLD_RANK": "\(rank)", "OMPI_COMM_WORLD_SIZE": "\(count)", "PMIX_RANK": "\(rank)"]
  }

  @Test("Every process of every engine has a segment of its own, and all are there")
  func engines() throws {
    let starts: [[[String: String]]] = [
      (0..<4).map { Self.step($0, of: 4) }, (0..<4).map { Self.openMPI($0, of: 4) },
      (0..<4).map { ["PMI_RANK": "\($0)", "PMI_SIZE": "4"] }, (1...4).map { Self.array($0, 1...4) },
      [10, 13, 16, 19].map { Self.array($0, 10...19, step: 3) },
      // PMIx under srun, whose step tells the size.
      (0..<4).map { Self.step($0, of: 4).merging(["PMIX_RANK": "\($0)"]) { a, _ in a } },
      // mpirun in a job of Slurm, whose step is that of the daemons.
      (0..<4).map { Self.openMPI($0, of: 4).merging(Self.step($0 / 2, of: 2)) { a, _ in a } },
      // An array whose tasks start two processes each.
      (0..<4).map { Self.array($0 / 2, 0...1).merging(Self.step($0 % 2, of: 2)) { _, b in b } },
      (0..<4).map { Self.array($0 / 2, 0...1).merging(Self.openMPI($0 % 2, of: 2)) { _, b in b } },
    ]
    for processes in starts {
      #expect(try processes.map { try segment($0) } == ["1/4", "2/4", "3/4", "4/4"], "\(processes[0])")
      #expect(try processes.map { try segment($0, asked: 4) } == ["1/4", "2/4", "3/4", "4/4"])
      #expect(refusal(processes[1], asked: 5).contains("asks for 5 segments"))
    }
    #expect(try (0..<4).map { try segment(["JOB_COMPLETION_INDEX": "\($0)"], asked: 4) }.last == "4/4")
    #expect(try segment(["PMIX_RANK": "2"], asked: 4) == "3/4")
    #expect(
      try EngineSegment(asked: nil) { Self.step(1, of: 4)[$0] }.source == "SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4")
  }

  @Test("What an engine does not tell, or tells in two ways, is an error that says so")
  func refused() {
    for (variables, asked, words) in [
      ([:], nil, "none of SLURM_PROCID"), (["JOB_COMPLETION_INDEX": "1"], nil, "give --segment auto/N"),
      (["JOB_COMPLETION_INDEX": "4"], 4, "not below"), (["PMIX_RANK": "1"], nil, "give --segment auto/N"),
      (["OMPI_COMM_WORLD_RANK": "1"], nil, "OMPI_COMM_WORLD_SIZE is not"), (["PMI_RANK": "1"], nil, "PMI_SIZE is not"),
      (["OMPI_COMM_WORLD_RANK": "x", "OMPI_COMM_WORLD_SIZE": "4"], nil, "is 'x'"),
      (["OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_SIZE": "4"], nil, "not below"),
      (
        ["OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "PMI_RANK": "2", "PMI_SIZE": "4"], nil, "contradict"
      ),
      (["OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "2"], nil, "contradict"),
      (Self.step(1, of: 4).merging(["JOB_COMPLETION_INDEX": "1"]) { a, _ in a }, 4, "of another engine"),
      // The script of a job: its tasks were not started, so this would be one segment of four.
      (["SLURM_PROCID": "0", "SLURM_NTASKS": "4"], nil, "not by srun"),
      // --array=1,3,7, and one task of an array that is run again alone.
      (Self.array(3, 1...7, count: 3), nil, "not numbered evenly"), (Self.array(3, 3...3), 4, "asks for 4 segments"),
      (["SLURM_ARRAY_TASK_ID": "1"], nil, "SLURM_ARRAY_TASK_MIN is not"),
      (Self.step(0, of: 2_000_000), nil, "at most 1000000"),
    ] as [([String: String], Int?, String)] {
      #expect(refusal(variables, asked: asked).contains(words), "\(refusal(variables, asked: asked))")
    }
  }

  @Test("The node's or the pod's name is a label; a host's own name is none")
  func labels() {
    func labels(_ variables: [String: String]) -> [String] {
      EnginePlace.labels { variables[$0] }.map { "\($0.name)=\($0.value)" }
    }
    #expect(labels(["HOSTNAME": "vm"]) == [])
    #expect(labels(["SLURMD_NODENAME": "n3", "HOSTNAME": "vm"]) == ["node=n3"])
    #expect(labels(["JOB_COMPLETION_INDEX": "2", "HOSTNAME": "load-2-x"]) == ["pod=load-2-x"])
    #expect(labels(["JOB_COMPLETION_INDEX": "2", "HOSTNAME": "load-2-x", "POD_NAME": "p"]) == ["pod=p"])
    #expect(labels(["SLURMD_NODENAME": "n\n3"]) == [] && labels(["SLURMD_NODENAME": ""]) == [])
  }

  @Test("Starts are times of day with a zone, times from now, or multiples of the clock")
  func starts() throws {
    let second: Int64 = 1_000_000_000
    let now = 1_795_338_012 * second + 345
    func time(_ text: String) throws -> Int64 { try StartArgument.parse(text).time(from: now) }
    #expect(try time("2026-11-22T09:00:00Z") == 1_795_338_000 * second)
    #expect(try time("2026-11-22T10:00:00+01:00") == 1_795_338_000 * second)
    #expect(try time("2026-11-22T03:30:00.5-05:30") == 1_795_338_000 * second + second / 2)
    #expect(try time("+30s") == now + 30 * second && time("+0s") == now)
    #expect(try time("next:30s") == 1_795_338_030 * second && time("next:1h") == 1_795_341_600 * second)
    #expect(try StartArgument.parse("next:12s").time(from: 24 * second) == 36 * second, "the next, not this one")
    for text in [
      "2026-11-22T09:00:00", "2026-11-22 09:00", "09:00", "30s", "next:0s", "next:", "+", "+1", "",
      "2026-11-22T10:00:00+1:00", "2026-11-22T10:00:00+24:00", "2026-11-22T10:00:00+0a:00", "1970-01-01T00:00:00+01:00",
    ] { #expect(throws: (any Error).self, "\(text)") { try StartArgument.parse(text) } }
    for text in ["2026-11-22T10:00:00+01:00", "+30s", "next:90s"] {
      #expect(try StartArgument.parse(text).defaultValueDescription == text)
    }
  }
}

import Bytes
import LoadTest
import TestSupport
import Testing

/// Each share is a binomial one: five standard errors are exceeded once in a million times.
@Suite("Shares of a workload")
struct WorkloadShareTests {
  static let count = 20_000

  static func isLikely(_ found: Int, of count: Int = count, share: Double) -> Bool {
    abs(Double(found) - share * Double(count)) <= 5 * (Double(count) * share * (1 - share)).squareRoot() + 1e-9
  }

  @Test(
    "Mixes and faults come as often as they are asked for, whatever the others are",
    arguments: seeds(1, of: 4))
  func shares(seed: UInt64) throws {
    var plan = WorkloadPlan()
    plan.seed = seed
    plan.commands = .init([(2, 6), (1, 3), (0, 1)])
    plan.priorities = .init([(10, 1), (5, 2), (nil, 1)])
    plan.expirations = .init([(7, 1), (nil, 0.25)])
    plan.payload = .sizes(.init([(30...39, 1), (100...100, 1), (200...201, 2)]))
    plan.tokens = 8
    plan.faults = [.invalidToken: 0.05, .tokenSize: 0.1, .missingToken: 0.01]
    let workload = try Workload(plan)
    let read = try workload.read(0..<UInt64(Self.count))
    let faults = (0..<UInt64(Self.count)).map(workload.fault(of:))

    // How often each value of each choice is found, and each pair of two.
    var found: [String: [String: Int]] = [:]
    for (number, one) in read.enumerated() {
      let fault = faults[number].map { $0.rawValue } ?? "none"
      var features = ["command": "\(one.command)", "fault": fault]
      if one.command == 2 {
        features["priority"] = one.priority.map { "\($0)" } ?? "nil"
        features["expiration"] = one.expiration.map { "\($0)" } ?? "nil"
      }
      features["size"] = one.payload.count < 100 ? "s" : one.payload.count == 100 ? "m" : "l"
      if fault == "none" { features["token"] = one.token.text }
      for (name, value) in features {
        found[name, default: [:]][value, default: 0] += 1
        for (other, value2) in features where other > name {
          found["\(name)+\(other)", default: [:]]["\(value)+\(value2)", default: 0] += 1
        }
      }
    }
    let shares: [String: [String: Double]] = [
      "command": ["2": 0.6, "1": 0.3, "0": 0.1],
      "fault": ["invalid-token": 0.05, "token-size": 0.1, "missing-token": 0.01, "none": 0.84],
      "priority": ["10": 0.25, "5": 0.5, "nil": 0.25],
      "expiration": ["7": 0.8, "nil": 0.2],
      "size": ["s": 0.25, "m": 0.25, "l": 0.5],
    ]
    for (name, values) in shares {
      let total = found[name]?.values.reduce(0, +) ?? 0
      #expect(Set(found[name]?.keys ?? [:].keys) == Set(values.keys))
      for (value, share) in values {
        #expect(Self.isLikely(found[name]?[value] ?? 0, of: total, share: share), "\(name) \(value)")
      }
      // Of two choices, each pair as often as both say. Only command 2 has all of them.
      for (other, values2) in shares
      where other > name && !(name == "command" && ["priority", "expiration"].contains(other)) {
        let pairs = found["\(name)+\(other)"] ?? [:]
        let total = pairs.values.reduce(0, +)
        for (value, share) in values {
          for (value2, share2) in values2 {
            let count = pairs["\(value)+\(value2)"] ?? 0
            #expect(Self.isLikely(count, of: total, share: share * share2), "\(name) \(value), \(other) \(value2)")
          }
        }
      }
    }
    #expect(found["token"]?.count == 8)
    let tokens = found["token"]?.values.reduce(0, +) ?? 0
    for (_, count) in found["token"] ?? [:] { #expect(Self.isLikely(count, of: tokens, share: 1.0 / 8)) }
    // Sizes are even within their range.
    let small = read.map(\.payload.count).filter { (30...39).contains($0) }
    for size in 30...39 { #expect(Self.isLikely(small.count { $0 == size }, of: small.count, share: 0.1)) }
  }

  @Test(
    "There are as many tokens as asked for, each as likely",
    arguments: [(1, 256), (1, 3), (2, 1_000), (7, 500), (8, 100), (9, 1), (32, 1_000), (100, 37)])
  func tokens(length: Int, tokens: Int) throws {
    var plan = WorkloadPlan()
    plan.tokenLength = length
    plan.tokens = tokens
    plan.payload = .template("{}")
    var counts: [[UInt8]: Int] = [:]
    for one in try Workload(plan).read(0..<UInt64(Self.count)) { counts[one.token, default: 0] += 1 }
    // With 20 or more a token, that one is not found has a chance of 1000·e⁻²⁰.
    #expect(counts.count == tokens)
    #expect(counts.keys.allSatisfy { $0.count == length })
    for count in counts.values { #expect(Self.isLikely(count, share: 1 / Double(tokens)) || tokens == 1) }
  }

  @Test("A token is the same in every segment and under every mix, and another one with another seed")
  func population() throws {
    func tokens(_ change: (inout WorkloadPlan) -> Void) throws -> Set<[UInt8]> {
      var plan = WorkloadPlan()
      plan.tokens = 50
      change(&plan)
      let workload = try Workload(plan)
      return Set(try workload.read((0..<2_000).map { workload.number(of: $0) }).map(\.token))
    }
    let usual = try tokens { _ in }
    #expect(usual.count == 50)
    #expect(try tokens { ($0.segment, $0.segments) = (1, 4) } == usual)
    #expect(try tokens { ($0.commands, $0.payload) = (.init(0), .template("[{index}]")) } == usual)
    #expect(try tokens { $0.seed = 2 }.isDisjoint(with: usual))
  }

  @Test("All of them and none of them")
  func certain() throws {
    var plan = WorkloadPlan()
    plan.faults = [.missingToken: 0.7, .missingPayload: 0.2, .tokenSize: 0.1]
    let workload = try Workload(plan)
    #expect((0..<10_000).allSatisfy { workload.fault(of: $0) != nil })
    plan.faults = [.missingToken: 0, .oversize: 1e-300]
    let none = try Workload(plan)
    #expect((0..<10_000).allSatisfy { none.fault(of: $0) == nil })
    plan.priorities = .init([(10, 1), (5, 0)])
    #expect(try Workload(plan).read(0..<1_000).allSatisfy { $0.priority == 10 })
  }
}

import Bytes
import GatewaySimulator
import TestSupport
import Testing

@Suite("Device population")
struct DevicePopulationTests {
  private static let seed = DevicePopulation.topicSeed("com.example.app", seed: 1)

  private static func shares(of population: DevicePopulation, topicSeed: UInt64, _ tokens: [[UInt8]]) -> [Device: Int] {
    tokens.reduce(into: [:]) { $0[population.device(of: $1.rawBytes, topicSeed: topicSeed), default: 0] += 1 }
  }

  // MARK: by lot

  @Test("Without shares everybody is active")
  func allActive() throws {
    for population in [DevicePopulation(), try DevicePopulation(shares: .init())] {
      #expect(
        Self.shares(of: population, topicSeed: Self.seed, [[], [1], Array(repeating: 0, count: 32)]) == [.active: 3])
      #expect(population.count == nil)
    }
  }

  /// Where a token counts: the bytes that differ, in tokens that are else alike.
  enum Counting: CaseIterable, Sendable { case first, middle, last, short, long, random }

  @Test(
    "Shares are right within 5 sigma, for tokens that differ in few bits too", arguments: Counting.allCases,
    TestRun.isWhole ? [1, 2, 3, 0, UInt64.max] : [1])
  func shares(counting: Counting, seed: UInt64) throws {
    let total = 40_000
    var random = SeededGenerator(seed: seed)
    let tokens = (0..<total).map { number -> [UInt8] in
      let counter = [UInt8(number >> 16), UInt8(number >> 8 & 255), UInt8(number & 255)]
      switch counting {
      case .first: return counter + Array(repeating: 0, count: 29)
      case .middle: return Array(repeating: 7, count: 15) + counter + Array(repeating: 7, count: 14)
      case .last: return Array(repeating: 0, count: 29) + counter
      case .short: return counter
      case .long: return Array(repeating: 1, count: 97) + counter
      case .random: return random.bytes(32)
      }
    }
    let population = try DevicePopulation(shares: .init(offline: 0.2, uninstalled: 0.05, unknown: 0.01))
    let topicSeed = DevicePopulation.topicSeed("com.example.app", seed: seed)
    let found = Self.shares(of: population, topicSeed: topicSeed, tokens)
    for (device, share) in [(Device.active, 0.74), (.offline, 0.2), (.uninstalled, 0.05), (.unknown, 0.01)] {
      let expected = Double(total) * share
      let sigma = (expected * (1 - share)).squareRoot()
      #expect(abs(Double(found[device] ?? 0) - expected) < 5 * sigma, "\(device)")
    }
  }

  @Test("A share of 1 leaves nobody out", arguments: [Device.offline, .uninstalled, .unknown])
  func whole(device: Device) throws {
    var shares = DevicePopulation.Shares()
    switch device {
    case .offline: shares.offline = 1
    case .uninstalled: shares.uninstalled = 1
    default: shares.unknown = 1
    }
    let population = try DevicePopulation(shares: shares)
    let tokens = (0..<10_000).map { [UInt8($0 >> 8), UInt8($0 & 255)] }
    #expect(Self.shares(of: population, topicSeed: Self.seed, tokens) == [device: 10_000])
  }

  @Test("Lots of two topics, and of two seeds, are independent")
  func independence() throws {
    let population = try DevicePopulation(shares: .init(offline: 0.5))
    let tokens = (0..<20_000).map { [UInt8($0 >> 8), UInt8($0 & 255)] + Array(repeating: UInt8(3), count: 30) }
    let seeds = [
      DevicePopulation.topicSeed("com.example.app", seed: 1), DevicePopulation.topicSeed("com.example.app", seed: 2),
      DevicePopulation.topicSeed("com.example.apq", seed: 1), DevicePopulation.topicSeed("", seed: 1),
    ]
    let lots = seeds.map { seed in tokens.map { population.device(of: $0.rawBytes, topicSeed: seed) } }
    for (first, second) in [(0, 1), (0, 2), (0, 3), (1, 2)] {
      let same = zip(lots[first], lots[second]).count { $0 == $1 }
      #expect(abs(same - 10_000) < 5 * 71, "\(first) and \(second)")
    }
    #expect(lots[0] == tokens.map { population.device(of: $0.rawBytes, topicSeed: seeds[0]) })
  }

  @Test(
    "Shares that are no parts of a whole are refused",
    arguments: [(-0.1, 0, 0), (0, 1.1, 0), (0, 0, Double.nan), (0.5, 0.5, 0.1), (.infinity, 0, 0)])
  func badShares(offline: Double, uninstalled: Double, unknown: Double) {
    let error = #expect(throws: DevicePopulationError.self) {
      try DevicePopulation(shares: .init(offline: offline, uninstalled: uninstalled, unknown: unknown))
    }
    #expect(error?.kind == .badShares)
  }

  @Test("Shares that make 1 but for the last bit are fine")
  func roundedShares() throws {
    _ = try DevicePopulation(shares: .init(offline: 0.7, uninstalled: 0.1, unknown: 0.2))
    _ = try DevicePopulation(shares: .init(offline: 0.1, uninstalled: 0.2, unknown: 0.7))
  }

  // MARK: from a file

  private static func read(_ text: String, maximumTokens: Int = 100) throws -> DevicePopulation {
    try withFile(Array(text.utf8)) { try DevicePopulation(contentsOf: $0, maximumTokens: maximumTokens) }
  }

  @Test("A list says what its tokens are; all others are unknown")
  func list() throws {
    let usual = String(repeating: "0aB1", count: 16)
    let population = try Self.read(
      "# devices\n\n\(usual)\toffline\r\n  00ff   # active\nCAFE uninstalled# gone\n00FF active\n01 unknown\n02")
    func device(_ token: [UInt8]) -> Device { population.device(of: token.rawBytes, topicSeed: Self.seed) }
    #expect(population.count == 5)
    #expect(device((0..<16).flatMap { _ in [0x0a, 0xb1] as [UInt8] }) == .offline)
    #expect(device([0x00, 0xff]) == .active)
    #expect(device([0xca, 0xfe]) == .uninstalled)
    #expect(device([1]) == .unknown)
    #expect(device([2]) == .active)
    #expect(device([3]) == .unknown)
    #expect(device([]) == .unknown)
    #expect(device(Array(repeating: 0, count: 32)) == .unknown)
  }

  @Test("Lines are found wherever a block of the file ends")
  func longList() throws {
    var random = SeededGenerator(seed: 5)
    let tokens = (0..<9_000).map { _ in random.bytes(random.happens(oneIn: 10) ? random.number(1...400) : 32) }
    let text = tokens.map { "\(hex($0)) offline" }.joined(separator: "\n")
    let population = try Self.read(text, maximumTokens: 9_000)
    #expect(tokens.allSatisfy { population.device(of: $0.rawBytes, topicSeed: 0) == .offline })
  }

  @Test("The longest token is read, and one that is longer is not")
  func longestToken() throws {
    let token = [UInt8](repeating: 0xab, count: 65_535)
    let population = try Self.read(hex(token))
    #expect(population.device(of: token.rawBytes, topicSeed: 0) == .active)
    #expect(throws: DevicePopulationError.self) { try Self.read(hex(token) + "00") }
    #expect(throws: DevicePopulationError.self) { try Self.read(String(repeating: "a", count: 1_000_000)) }
  }

  @Test(
    "Errors name file and line",
    arguments: [
      ("00\n\n0g", 3, "'0g' is not a token in hexadecimal digits"), ("000", 1, "the token has an odd number of digits"),
      ("00 sleeping", 1, "unknown state 'sleeping'; expected active, offline, uninstalled or unknown"),
      ("00 active now", 1, "unexpected 'now' after token and state"),
      ("# a\n00 offline\n00", 3, "the token is already listed as offline"),
      ("00 \u{1b}[31m", 1, "unknown state '?[31m'; expected active, offline, uninstalled or unknown"),
    ])
  func badLine(text: String, line: Int, problem: String) throws {
    try withFile(Array(text.utf8)) { path in
      let error = #expect(throws: DevicePopulationError.self) { try DevicePopulation(contentsOf: path) }
      #expect(error?.kind == .badLine(line))
      #expect(error?.description == "\(path):\(line): \(problem)")
    }
  }

  @Test("A list over the limit, and a file that is not there")
  func refused() {
    let long = #expect(throws: DevicePopulationError.self) { try Self.read("00\n01\n00\n02\n", maximumTokens: 2) }
    #expect(long?.kind == .tooManyTokens(line: 4))
    let missing = #expect(throws: DevicePopulationError.self) { try DevicePopulation(contentsOf: "/nowhere/devices") }
    #expect(missing?.kind == .cannotRead)
    #expect(missing?.description == "/nowhere/devices: No such file or directory")
    let folder = #expect(throws: DevicePopulationError.self) { try DevicePopulation(contentsOf: "/tmp") }
    #expect(folder?.description == "/tmp: Is a directory")
  }

  private func hex(_ bytes: [UInt8]) -> String {
    var writer = ByteWriter()
    writer.write(hex: bytes.rawBytes)
    return String(decoding: Array(copying: writer.bytes), as: UTF8.self)
  }
}

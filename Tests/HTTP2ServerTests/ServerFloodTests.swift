import Bytes
import HTTP2
import HTTP2Server
import TestSupport
import Testing

/// What costs a server more than its client, and seeded clients of all kinds.
@Suite("Floods and laws of an HTTP/2 server")
struct ServerFloodTests {
  private static func options() -> ServerOptions {
    var options = ServerOptions()
    options.floods.resets = Allowance(burst: 10, perSecond: 2)
    options.floods.settings = Allowance(burst: 10, perSecond: 2)
    options.floods.pings = Allowance(burst: 10, perSecond: 2)
    options.floods.emptyFrames = Allowance(burst: 10, perSecond: 2)
    options.floods.windowUpdates = Allowance(burst: 10, perSecond: 2)
    options.floods.ignoredFrames = Allowance(burst: 10, perSecond: 2)
    options.floods.continuations = 10
    return options
  }

  private static func send(_ flood: Flood, _ number: Int, _ pair: Pair) {
    switch flood {
    case .resets:
      pair.open(UInt32(2 * number + 3))
      pair.send { $0.writeReset(.cancel, stream: UInt32(2 * number + 3)) }
    case .settings: pair.send { $0.writeSettings([]) }
    case .pings: pair.send { $0.writePing(1) }
    case .emptyFrames: pair.data(1, [], ends: false)
    case .windowUpdates: pair.send { $0.writeWindowUpdate(1) }
    case .ignoredFrames: pair.send { $0.writeFrame(.priority, stream: 1, [0, 0, 0, 0, 1].rawBytes) }
    case .continuations:
      pair.send { $0.writeFrame(number == 0 ? .headers : .continuation, stream: 3, [UInt8]().rawBytes) }
    }
  }

  @Test("Each flood ends the connection at its limit, and not before", arguments: Flood.allCases)
  func flood(flood: Flood) {
    let pair = Pair(Self.options(), settings: [])
    pair.answers = false
    pair.open(1)
    // SETTINGS of the beginning count; HEADERS begin the block that CONTINUATION frames go on with.
    let most = flood == .settings ? 9 : flood == .continuations ? 11 : 10
    for number in 0..<most { Self.send(flood, number, pair) }
    #expect(!pair.hasFailed)
    Self.send(flood, most, pair)
    #expect(pair.events.last == .failed(.flood(flood)))
    #expect(pair.failure == .enhanceYourCalm)
  }

  @Test(
    "With time an allowance comes back", arguments: [Flood.resets, .settings, .pings, .emptyFrames, .windowUpdates])
  func allowance(flood: Flood) {
    let pair = Pair(Self.options())
    pair.answers = false
    pair.open(1)
    for number in 0..<9 { Self.send(flood, number, pair) }
    pair.second = 1
    for number in 9..<11 { Self.send(flood, number, pair) }
    #expect(!pair.hasFailed)
    pair.second = 100
    for number in 11..<21 { Self.send(flood, number, pair) }
    #expect(!pair.hasFailed)
    Self.send(flood, 21, pair)
    #expect(pair.events.last == .failed(.flood(flood)))
  }

  @Test("Each second adds what it adds, and no more") func seconds() {
    let pair = Pair(Self.options())
    for number in 0..<10 { Self.send(.pings, number, pair) }
    pair.second = 1
    for number in 10..<12 { Self.send(.pings, number, pair) }
    #expect(!pair.hasFailed)
    Self.send(.pings, 12, pair)
    #expect(pair.events.last == .failed(.flood(.pings)))
  }

  @Test("Windows that answers used up may be given back at any rate") func justifiedUpdates() {
    let pair = Pair(Self.options())
    pair.answer = (400, [1])
    for stream in stride(from: UInt32(1), to: 2_001, by: 2) {
      pair.request(stream)
      pair.send { $0.writeWindowUpdate(1) }
    }
    #expect(!pair.hasFailed)
  }

  @Test("Answers justify no more WINDOW_UPDATE than may come at once") func savedUpdates() {
    let pair = Pair(Self.options())
    pair.answer = (400, [1])
    Self.send(.windowUpdates, 0, pair)
    for stream in stride(from: UInt32(1), to: 201, by: 2) { pair.request(stream) }
    for number in 0..<10 { Self.send(.windowUpdates, number, pair) }
    // One answer justifies two.
    pair.request(201)
    for number in 0..<2 { Self.send(.windowUpdates, number, pair) }
    #expect(!pair.hasFailed)
    Self.send(.windowUpdates, 2, pair)
    #expect(pair.events.last == .failed(.flood(.windowUpdates)))
  }

  @Test("A field block of one frame above its limit ends the connection, too", arguments: [FrameFlags.endHeaders, []])
  func longFrame(flags: FrameFlags) {
    var options = ServerOptions()
    options.maximumBlock = 100
    let pair = Pair(options)
    let block = pair.block(Pair.fields("/a", [("x", String(repeating: "y", count: 200))]), .withoutIndexing)
    pair.frame(.headers, flags, 1, block)
    #expect(pair.events.last == .failed(.violation(Violation(.blockTooLong, stream: 1))))
  }

  @Test("A field block above its limit ends the connection") func longBlock() {
    var options = ServerOptions()
    (options.maximumBlock, options.maximumFieldList) = (20_000, 1 << 20)
    let pair = Pair(options)
    let long = [UInt8](repeating: 0, count: 16_000)
    pair.send { $0.writeFrame(.headers, stream: 1, long.rawBytes) }
    pair.send { $0.writeFrame(.continuation, stream: 1, long.rawBytes) }
    #expect(pair.events.last == .failed(.violation(Violation(.blockTooLong, stream: 1))))
    let other = Pair()
    other.open(1, "/a", [("x", String(repeating: "y", count: 70_000))])
    #expect(other.failure != nil)
  }

  @Test(
    "Whatever a client does, no stream is answered twice, no window exceeded, no rule broken by the server",
    arguments: seeds(300, of: 1_000))
  func law(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var options = ServerOptions()
    options.streamLimit = random.number(1...20)
    options.excess = random.happens(oneIn: 5) ? .protocolError : .refused
    options.keptContent = random.pick([10, 8_192])
    options.maximumContent = random.pick([500, 1 << 20])
    let pair = Pair(
      options, settings: random.happens(oneIn: 2) ? [Setting(.initialWindowSize, UInt32(random.number(0...60)))] : [])
    pair.answers = random.happens(oneIn: 2)
    pair.answer = (random.pick([200, 410]), [UInt8](repeating: 1, count: random.number(0...50)))
    var (next, open, complete) = (UInt32(1), [UInt32](), [UInt32]())
    for _ in 0..<random.number(20...200) where !pair.hasFailed {
      switch random.number(0...11) {
      case 0...3:
        pair.open(next, "/\(random.number(0...30))", ends: random.happens(oneIn: 6))
        open.append(next)
        next += UInt32(2 * random.number(1...2))
      case 4...6:
        guard let stream = open.randomElement(using: &random) else { continue }
        let ends = random.happens(oneIn: 2)
        pair.data(stream, random.bytes(random.number(0...900)), ends: ends)
        if ends {
          open.removeAll { $0 == stream }
          complete.append(stream)
        }
      case 7:
        if let stream = open.randomElement(using: &random) { pair.send { $0.writeReset(.cancel, stream: stream) } }
      case 8: pair.send { $0.writeWindowUpdate(UInt32(random.number(1...40))) }
      case 9:
        guard let stream = (open + complete).randomElement(using: &random) else { continue }
        pair.send { $0.writeWindowUpdate(UInt32(random.number(1...40)), stream: stream) }
      case 10:
        pair.session.setStreamLimit(random.number(1...20))
        pair.flush()
        if random.happens(oneIn: 2) { pair.send { $0.writeSettingsAcknowledgement() } }
      default:
        if random.happens(oneIn: 30) { pair.session.goAway(lastStream: pair.session.highestStream) }
        pair.flush()
        for stream in complete { pair.respond(stream) }
      }
    }
    for (stream, statuses) in pair.seen.statuses { #expect(statuses.count == 1, "stream \(stream) of seed \(seed)") }
    #expect(pair.seen.serverViolations.isEmpty)
    // Every stream that was answered had ended, or was above the limit on content.
    let ended = Set(
      pair.events.compactMap { if case .ended(let stream, _, _) = $0 { stream.number } else { nil } })
    #expect(Set(pair.seen.statuses.keys).isSubset(of: ended))
  }
}

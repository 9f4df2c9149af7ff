import Bytes
import HTTP2
import ProviderAPI
import PushModel
import TestSupport
import Testing

/// A conversation of a provider and a server that keep the rules, from a seed.
struct RandomConversation {
  var talk: Conversation
  var random: SeededGenerator

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    talk = Conversation()
    var (next, open) = (UInt32(1), [UInt32]())
    // The highest stream with an answer: a last stream below would be untrue (RFC 9113 section 6.8).
    var answered: UInt32 = 0
    var last: UInt32?
    let topics = ["com.example.tide", "com.example.tide.voip"]
    for _ in 0..<random.number(10...60) {
      switch random.number(0...9) {
      case 0...4 where last == nil:
        let token = random.bytes(32).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        var fields = Conversation.fields(
          token, jwt: random.happens(oneIn: 10) ? ProviderJWT.second : ProviderJWT.first, topic: random.pick(topics),
          more: [
            ("apns-push-type", random.pick(["alert", "background"])), ("apns-priority", random.pick(["5", "10"])),
            ("apns-id", "id-\(next)"), ("x-trace", "\(random.number(0...3))"),
          ])
        let indexing = random.pick(HPACKEncoder.Indexing.allCases)
        for place in fields.indices where fields[place].name == ":path" || fields[place].name == "apns-id" {
          fields[place].indexing = indexing
        }
        talk.push(next, fields, #"{"aps":{"alert":"\#(next)"}}"#)
        open.append(next)
        next += 2
      case 5...7:
        guard !open.isEmpty else { continue }
        let stream = open.remove(at: random.number(0...open.count - 1))
        answered = max(answered, stream)
        if random.happens(oneIn: 4) {
          talk.answer(stream, 400, [("apns-id", "A-\(stream)")], body: #"{"reason":"BadDeviceToken"}"#)
        } else {
          talk.answer(stream, 200, [("apns-id", "A-\(stream)")])
        }
      case 8:
        guard !open.isEmpty, random.happens(oneIn: 3) else { continue }
        let stream = open.removeLast()
        talk.server { $0.writeReset(.refusedStream, stream: stream) }
      default:
        guard last == nil, random.happens(oneIn: 8), let lowest = open.min() else { continue }
        let lastStream = random.happens(oneIn: 2) ? max(lowest, answered) : next
        last = lastStream
        talk.server { $0.writeGoAway(lastStream: lastStream, .noError) }
        open.removeAll { $0 > lastStream }
      }
    }
  }
}

@Suite("Laws of provider sessions") struct ProviderLawTests {
  @Test("Pieces of any length tell the same", arguments: seeds(30, of: 300)) func pieces(seed: UInt64) {
    var random = RandomConversation(seed: seed)
    let (session, whole) = random.talk.read()
    var pieces: [Conversation.Piece] = []
    for written in random.talk.written {
      var start = written.range.lowerBound
      while start < written.range.upperBound {
        let end = min(written.range.upperBound, start + random.random.number(1...60))
        pieces.append(.bytes(written.side, start..<end))
        start = end
      }
    }
    let (other, split) = random.talk.read(pieces)
    #expect(whole.violations.isEmpty)
    #expect(split.violations.isEmpty)
    #expect(whole.requests.map { $0.withoutTimes } == split.requests.map { $0.withoutTimes })
    #expect(whole.responses.map(\.status) == split.responses.map(\.status))
    #expect(whole.fates.map(\.fate) == split.fates.map(\.fate))
    #expect(session.fates == other.fates)
    let fates = session.fates
    #expect(fates.accepted + fates.rejected + fates.discarded + fates.unknown == session.notifications)
  }

  @Test(
    "With bytes missing anywhere, each field is as without, or named uncertain, and no fate is another",
    arguments: seeds(150, of: 1_500)) func gaps(seed: UInt64)
  {
    var random = RandomConversation(seed: seed)
    let (_, whole) = random.talk.read()
    let side = random.random.pick([FrameReader.Side.client, .server])
    let length = random.talk.bytes(of: side).count
    // Behind the preface and the first SETTINGS: what is asked is how reading goes on.
    let start = random.random.number(min(60, length - 2)...length - 2)
    let gap = start..<min(length, start + random.random.number(1...600))
    let (session, damaged) = random.talk.read(cut(random.talk, side, gap))
    #expect(damaged.violations.isEmpty)
    var seen: Set<UInt32> = []
    for request in damaged.requests {
      #expect(seen.insert(request.stream).inserted, "stream \(request.stream) twice")
      guard let truth = whole.requests.first(where: { $0.stream == request.stream }) else {
        Issue.record("stream \(request.stream) is invented")
        continue
      }
      compare(request, truth)
    }
    for response in damaged.responses {
      let truth = whole.responses.first { $0.stream == response.stream }
      #expect(truth != nil)
      if let status = response.status { #expect(status == truth?.status) }
      if let reason = response.reason { #expect(reason == truth?.reason) }
      if !response.isUncertain { #expect(response.reason == truth?.reason && response.timestamp == truth?.timestamp) }
      for (name, value) in response.fields where name != "body" { #expect(truth?.fields[name] == value) }
    }
    for fate in damaged.fates where fate.fate != .unknown {
      #expect(fate.fate == whole.fates.first { $0.stream == fate.stream }?.fate)
    }
    let (other, _) = random.talk.read()
    if let most = session.openStreamsMaximum { #expect(most == other.openStreamsMaximum) }
    if let limit = session.firstStreamLimit { #expect(limit == other.firstStreamLimit) }
    if session.areProviderTokensCounted { #expect(session.providerTokens.count == other.providerTokens.count) }
    for (goAway, truth) in zip(damaged.goAways, whole.goAways) where goAway.discarded != nil {
      #expect(goAway.discarded == truth.discarded && goAway.open == truth.open)
    }
    let fates = session.fates
    #expect(fates.accepted + fates.rejected + fates.discarded + fates.unknown == session.notifications)
    // What the gap does not touch is there: every notification whose frames are all outside.
    for request in whole.requests where side == .server || !overlaps(random.talk, request.stream, gap) {
      let found = damaged.requests.first { $0.stream == request.stream }
      #expect(found?.fields["token"] != nil || found?.uncertain.contains("token") == true)
      #expect(found?.payload == request.payload)
    }
  }

  private func cut(_ talk: Conversation, _ side: FrameReader.Side, _ gap: Range<Int>) -> [Conversation.Piece] {
    var pieces: [Conversation.Piece] = []
    var hasGap = false
    for written in talk.written {
      guard written.side == side, written.range.overlaps(gap) else {
        pieces.append(.bytes(written.side, written.range))
        continue
      }
      let range = written.range
      if range.lowerBound < gap.lowerBound { pieces.append(.bytes(side, range.lowerBound..<gap.lowerBound)) }
      if !hasGap { pieces.append(.gap(side, gap)) }
      hasGap = true
      if gap.upperBound < range.upperBound { pieces.append(.bytes(side, gap.upperBound..<range.upperBound)) }
    }
    return pieces
  }

  /// Whether a frame of the stream is touched by the gap; frames are written one by one.
  private func overlaps(_ talk: Conversation, _ stream: UInt32, _ gap: Range<Int>) -> Bool {
    talk.written.contains { written in
      guard written.side == .client, let header = FrameHeader(parsing: written.bytes.rawBytes) else { return false }
      return header.stream == stream && written.range.overlaps(gap)
    }
  }

  private func compare(_ request: ProviderLog.Request, _ truth: ProviderLog.Request) {
    for (name, value) in request.fields { #expect(truth.fields[name] == value, "\(name) of stream \(request.stream)") }
    for (name, value) in truth.fields where request.fields[name] == nil {
      let field = ["path": "token", "method": "headers", "authority": "headers"][name] ?? name
      #expect(request.uncertain.contains(field), "\(name): \(value) of stream \(request.stream) is missing")
    }
    if !request.uncertain.contains("trust") { #expect(request.fields["trust"] == truth.fields["trust"]) }
    if !request.uncertain.contains("headers") { #expect(request.headers == truth.headers) }
    for header in request.headers { #expect(truth.headers.contains(header)) }
    if !request.uncertain.contains("payload") { #expect(request.payload == truth.payload) }
    if let open = request.openStreams { #expect(open == truth.openStreams) }
    if !request.uncertain.contains("stream_limit") { #expect(request.streamLimit == truth.streamLimit) }
    if request.isNumbered { #expect(request.providerToken == truth.providerToken) }
    if request.completion == .complete { #expect(truth.completion == .complete) }
    #expect(request.completion != .incomplete)
  }
}

extension ProviderLog.Request {
  /// Without what depends on how the bytes were cut into pieces.
  var withoutTimes: Self {
    var copy = self
    (copy.started, copy.ended) = (nil, nil)
    return copy
  }
}

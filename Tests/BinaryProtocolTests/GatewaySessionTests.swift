import BinaryProtocol
import PushModel
import TestSupport
import Testing

/// The gateway's side as conversations: what comes in, what the gateway does. Counts are written as [received, accepted,
/// rejected, discarded].
@Suite("Gateway session: conversations")
struct GatewaySessionTests {
  /// A well-formed notification of each command.
  enum Kind: CaseIterable, Sendable {
    case simple, enhanced, framed, framedWithoutIdentifier

    func frame(_ identifier: UInt32, token: [UInt8] = Frame.token, payload: [UInt8] = Frame.payload) -> [UInt8] {
      switch self {
      case .simple: Frame.simple(token: token, payload: payload)
      case .enhanced: Frame.enhanced(identifier, token: token, payload: payload)
      case .framed: Frame.framed(identifier, token: token, payload: payload)
      case .framedWithoutIdentifier: Frame.framed(nil, token: token, payload: payload)
      }
    }

    /// The six bytes that refuse a notification of this kind: command 0 cannot be named, so there are none.
    func answer(_ status: UInt8, _ identifier: UInt8) -> [UInt8] {
      switch self {
      case .simple: []
      case .enhanced, .framed: [8, status, 0, 0, 0, identifier]
      case .framedWithoutIdentifier: [8, status, 0, 0, 0, 0]
      }
    }
  }

  // MARK: accepted

  @Test("Nothing is answered for what is accepted, whatever the command", arguments: Kind.allCases)
  func accepted(kind: Kind) {
    var talk = GatewayTalk()
    for identifier in 1...5 as ClosedRange<UInt32> {
      #expect(talk.send(kind.frame(identifier)) == nil)
      #expect(talk.counts == [Int(identifier), Int(identifier), 0, 0])
    }
    #expect(talk.rest.isEmpty && talk.isBalanced)
  }

  @Test("Nothing came, nothing happened")
  func nothing() {
    var talk = GatewayTalk()
    #expect(talk.send([]) == nil)
    #expect(talk.counts == [0, 0, 0, 0])
  }

  @Test("A frame is kept until it is whole, and is not counted before")
  func partial() {
    var talk = GatewayTalk()
    let frame = Frame.framed(7)
    for byte in frame.dropLast() {
      #expect(talk.send([byte]) == nil)
      #expect(talk.counts == [0, 0, 0, 0])
    }
    #expect(talk.rest == frame.dropLast())
    talk.send([frame.last!])
    #expect(talk.counts == [1, 1, 0, 0])
    #expect(talk.rest.isEmpty)
  }

  @Test("Items in another order, unknown and repeated ones: the first of each id counts")
  func unusualItems() {
    var talk = GatewayTalk()
    let items = [
      FrameItem(id: .notificationIdentifier, data: [0, 0, 0, 9]), FrameItem(id: .deviceToken, data: Frame.token),
      FrameItem(id: .init(rawValue: 77), data: [1, 2, 3]), FrameItem(id: .payload, data: Frame.payload),
      FrameItem(id: .deviceToken, data: [1]), FrameItem(id: .notificationIdentifier, data: [0, 0, 0, 10]),
    ]
    #expect(talk.send(Frame.of(items: items)) == nil)
    #expect(talk.asked == [9])
  }

  // MARK: refused

  static let statuses: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 128, 255, 44]

  @Test("What is decided is answered: all before accepted, all after discarded", arguments: statuses, Kind.allCases)
  func decided(status: UInt8, kind: Kind) {
    for place in [0, 3, 5] {
      var session = GatewaySession()
      let bytes = (1...6 as ClosedRange<UInt32>).flatMap { kind.frame($0) }
      var asked = 0
      let consumed = session.receive(bytes.rawBytes) { _ in
        asked += 1
        return asked == place + 1 ? .status(BinaryStatus(rawValue: status)) : nil
      }
      #expect(consumed == bytes.count)
      #expect([session.received, session.accepted, session.rejected, session.discarded] == [6, place, 1, 5 - place])
      // What follows the refused one is not even looked at.
      #expect(asked == place + 1)
      let ending = session.ending
      #expect(ending?.cause == .rejected)
      #expect(ending?.status.rawValue == status)
      #expect(ending?.notification == place)
      #expect(ending?.identifier == (kind == .enhanced || kind == .framed ? UInt32(place + 1) : nil))
      #expect(ending?.answer == kind.answer(status, UInt8(place + 1)))
    }
  }

  @Test("Token sizes at their edges", arguments: Kind.allCases)
  func tokenSizes(kind: Kind) {
    let cases: [(lengths: ClosedRange<Int>, length: Int, status: UInt8?)] = [
      (32...32, 32, nil), (32...32, 31, 5), (32...32, 33, 5), (32...32, 1, 5), (32...32, 0, 2), (32...32, 1024, 5),
      // A length that no token has is still only a token of a bad size: the frame's end is known.
      (32...32, 1025, 5), (32...32, 65_535, 5),
      (32...100, 31, 5), (32...100, 32, nil), (32...100, 100, nil), (32...100, 101, 5), (0...32, 0, 2),
    ]
    for (lengths, length, status) in cases {
      var talk = GatewayTalk(.init(tokenLengths: lengths))
      let ending = talk.send(kind.frame(3, token: [UInt8](repeating: 1, count: length)))
      #expect(ending?.status.rawValue == status, "\(length) bytes")
      #expect((ending?.answer ?? []) == (status.map { kind.answer($0, 3) } ?? []), "\(length) bytes")
      #expect(talk.isBalanced && talk.rest.isEmpty)
    }
  }

  @Test("By default the rules are those of the guide of 2015")
  func defaults() {
    let rules = GatewaySession.Rules()
    #expect(rules.push.tokenLengths == 32...32 && rules.push.maximumPayloadLength == 2_048)
    #expect(rules.push.checksPriority && rules.answersMalformed)
    #expect(rules.limits == ProtocolLimits(maximumTokenLength: 65_535))
    #expect(GatewaySession().rules == rules && GatewaySession().standing == nil)
    let sizes: [(token: Int, payload: Int, status: UInt8?)] = [
      (32, 2_048, nil), (31, 9, 5), (33, 9, 5), (32, 2_049, 7),
    ]
    for (token, payload, status) in sizes {
      var session = GatewaySession()
      let frame = Frame.framed(1, token: [UInt8](repeating: 1, count: token), payload: Frame.payload(max(20, payload)))
      _ = session.receive(frame.rawBytes) { _ in nil }
      #expect(session.ending?.status.rawValue == status, "\(token) and \(payload) bytes")
    }
  }

  @Test("Payload sizes at their edges", arguments: [256, 2_048, 4_096], Kind.allCases)
  func payloadSizes(limit: Int, kind: Kind) {
    for (length, status) in [(limit - 1, nil), (limit, nil), (limit + 1, 7), (0, 4)] as [(Int, UInt8?)] {
      var talk = GatewayTalk(.init(maximumPayloadLength: limit))
      let payload = length == 0 ? [] : Frame.payload(length)
      #expect(payload.count == length)
      let ending = talk.send(kind.frame(3, payload: payload))
      #expect(ending?.status.rawValue == status, "\(length) bytes")
      #expect((ending?.answer ?? []) == (status.map { kind.answer($0, 3) } ?? []), "\(length) bytes")
    }
  }

  @Test("Items that are missing, and items that are empty, get the same status")
  func missingItems() {
    let token = FrameItem(id: .deviceToken, data: Frame.token)
    let payload = FrameItem(id: .payload, data: Frame.payload)
    let identifier = FrameItem(id: .notificationIdentifier, data: [0, 0, 0, 3])
    let cases: [(items: [FrameItem], answer: [UInt8])] = [
      ([], [8, 2, 0, 0, 0, 0]),
      ([identifier], [8, 2, 0, 0, 0, 3]),
      ([payload, identifier], [8, 2, 0, 0, 0, 3]),
      ([token, identifier], [8, 4, 0, 0, 0, 3]),
      ([token], [8, 4, 0, 0, 0, 0]),
      ([FrameItem(id: .deviceToken, data: []), payload, identifier], [8, 2, 0, 0, 0, 3]),
      ([token, FrameItem(id: .payload, data: []), identifier], [8, 4, 0, 0, 0, 3]),
      // A token of a bad size and no payload: what is missing is named first.
      ([FrameItem(id: .deviceToken, data: [1]), identifier], [8, 4, 0, 0, 0, 3]),
      // An identifier that has not four bytes is none.
      ([token, FrameItem(id: .notificationIdentifier, data: [3])], [8, 4, 0, 0, 0, 0]),
    ]
    for (items, answer) in cases {
      var talk = GatewayTalk()
      #expect(talk.send(Frame.of(items: items))?.answer == answer)
      #expect(talk.counts == [1, 0, 1, 0])
    }
    var talk = GatewayTalk()
    #expect(talk.send(Frame.of(items: [token, payload])) == nil)
  }

  @Test("A certificate without a topic: the first notification is refused, and one that breaks a rule for that")
  func standing() {
    for status in [ErrorResponse.Status.missingTopic, .invalidTopicSize] {
      var talk = GatewayTalk(standing: status)
      #expect(talk.send(Frame.framed(1) + Frame.framed(2))?.answer == [8, status.rawValue, 0, 0, 0, 1])
      #expect(talk.counts == [2, 0, 1, 1])
      // Nobody was asked.
      #expect(talk.asked == [])
      var short = GatewayTalk(standing: status)
      #expect(short.send(Frame.framed(1, token: [1]))?.answer == [8, 5, 0, 0, 0, 1])
    }
  }

  @Test("Priority 10 on what is silent; commands 0 and 1 have it without saying so")
  func priority() {
    let cases: [(frame: [UInt8], answer: [UInt8]?)] = [
      (Frame.framed(3, payload: Frame.silent, priority: 10), [8, 1, 0, 0, 0, 3]),
      (Frame.framed(3, payload: Frame.silent, priority: 5), nil),
      (Frame.framed(3, payload: Frame.silent, priority: nil), nil),
      (Frame.framed(3, payload: Frame.silent, priority: 7), nil),
      (Frame.enhanced(3, payload: Frame.silent), [8, 1, 0, 0, 0, 3]),
      (Frame.simple(payload: Frame.silent), []),
      (Frame.framed(3, priority: 10), nil),
    ]
    for (frame, answer) in cases {
      var talk = GatewayTalk()
      #expect(talk.send(frame)?.answer == answer)
      var lenient = GatewayTalk(.init(checksPriority: false))
      #expect(lenient.send(frame) == nil)
    }
  }

  // MARK: frames from the field

  @Test("pushy's closing frame is answered with its identifier, and proves all before it")
  func knownBad() {
    var talk = GatewayTalk()
    for identifier in 1...30 as ClosedRange<UInt32> { #expect(talk.send(Frame.framed(identifier)) == nil) }
    let ending = talk.send(Frame.knownBad(31))
    #expect(Frame.knownBad(31).count == 5 + 24)
    #expect(ending?.answer == [8, 2, 0, 0, 0, 31])
    #expect(ending?.notification == 30)
    #expect(talk.counts == [31, 30, 1, 0])
  }

  @Test("java-apns' connection test: one byte of token, one of payload, identifier 0")
  func javaConnectionTest() {
    var talk = GatewayTalk()
    let ending = talk.send(Array(hex: "01 00000000 00000000 0001 00 0001 00"))
    #expect(ending?.answer == [8, 5, 0, 0, 0, 0])
    #expect(ending?.identifier == 0)
  }

  @Test("Items that overrun their frame, as rpush's: the identifier is named when it stands before them")
  func overrun() {
    // Length 32 whatever follows, and the token is shorter.
    let token = Frame.item(1, length: 32, [1, 2, 3])
    let identifier = Frame.item(3, [0, 0, 0, 9])
    let cases: [(items: [UInt8], answer: [UInt8])] = [
      (token, [8, 128, 0, 0, 0, 0]),
      (token + identifier, [8, 128, 0, 0, 0, 0]),
      (identifier + token, [8, 128, 0, 0, 0, 9]),
      (Frame.item(2, Frame.payload) + identifier + token, [8, 128, 0, 0, 0, 9]),
      // Of two identifiers the first, as in a frame that is right; one of three bytes is none.
      (identifier + Frame.item(3, [0, 0, 0, 10]) + token, [8, 128, 0, 0, 0, 9]),
      (Frame.item(3, [0, 0, 8]) + identifier + token, [8, 128, 0, 0, 0, 9]),
      // The identifier itself overruns, or its header is cut.
      (Frame.item(3, length: 4, [0, 0, 9]), [8, 128, 0, 0, 0, 0]),
      (identifier + [3, 0], [8, 128, 0, 0, 0, 9]),
      ([3], [8, 128, 0, 0, 0, 0]),
    ]
    for (items, answer) in cases {
      var talk = GatewayTalk()
      // The frame's own length is right, so those behind it are found and counted.
      let ending = talk.send(Frame.framed(1) + Frame.around(items) + Frame.framed(3) + Frame.framed(4))
      #expect(ending?.answer == answer)
      #expect(ending?.notification == 1)
      #expect(talk.counts == [4, 1, 1, 2])
      #expect(talk.isBalanced && talk.rest.isEmpty)
      var silent = GatewayTalk(.init(answersMalformed: false))
      let close = silent.send(Frame.framed(1) + Frame.around(items))
      #expect(close?.response == nil && close?.status == .protocolError)
    }
  }

  // MARK: what is no frame

  static let noFrames: [(bytes: [UInt8], problem: ParseError.Problem)] = [
    ([3], .unknownCommand(3)), ([0xff, 2, 0, 0], .unknownCommand(255)), (Array("GET / HTTP".utf8), .unknownCommand(71)),
    (Array(hex: "02 ffffffff 01"), .frameTooLong(4_294_967_295)), (Array(hex: "02 00020001"), .frameTooLong(131_073)),
    (Array(hex: "00 0000 0000"), .emptyNotification),
  ]

  @Test("What is no frame ends all: one is counted, whatever follows is swallowed", arguments: noFrames.indices)
  func noFrame(index: Int) {
    let (bytes, problem) = Self.noFrames[index]
    for answers in [true, false] {
      var talk = GatewayTalk(.init(answersMalformed: answers))
      let ending = talk.send(Frame.framed(1) + bytes)
      #expect(ending?.cause == .malformed(ParseError(problem, at: 0)))
      #expect(ending?.notification == 1 && ending?.identifier == nil)
      #expect(ending?.answer == (answers ? [8, 128, 0, 0, 0, 0] : []))
      #expect(talk.counts == [2, 1, 1, 0])
      talk.send(Frame.framed(2) + [UInt8](repeating: 0, count: 100_000))
      // No boundary is known any more, so nothing is counted, and nothing is kept.
      #expect(talk.counts == [2, 1, 1, 0])
      #expect(talk.isBalanced && talk.rest.isEmpty)
    }
  }

  @Test("A frame of 4 GB is refused with its header, not waited for")
  func hugeFrame() {
    var talk = GatewayTalk()
    #expect(talk.send(Array(hex: "02 ffffff")) == nil)
    #expect(talk.send([0xff])?.status == .protocolError)
    var longest = GatewayTalk()
    #expect(longest.send(Array(hex: "02 00020000")) == nil)
    let ending = longest.send([UInt8](repeating: 1, count: 131_072))
    #expect(ending?.cause == .malformed(ParseError(.itemOverrun(item: 1, length: 257), at: 0)))
    #expect(longest.counts == [1, 0, 1, 0])
  }

  @Test("A command-1 token over a limit of its own: the identifier was read before the length")
  func identifierBeforeLimit() {
    let rules = GatewaySession.Rules(limits: ProtocolLimits(maximumTokenLength: 40, maximumPayloadLength: 50))
    for frame in [
      Frame.enhanced(9, token: .init(repeating: 1, count: 41)), Frame.enhanced(9, payload: Frame.payload(51)),
    ] {
      var talk = GatewayTalk(rules)
      #expect(talk.send(Frame.enhanced(8) + frame)?.answer == [8, 128, 0, 0, 0, 9])
    }
    var simple = GatewayTalk(rules)
    #expect(simple.send(Frame.simple(payload: Frame.payload(51)))?.answer == [8, 128, 0, 0, 0, 0])
  }

  // MARK: discarded

  @Test("What follows a refused one is counted when it is whole, over any number of pieces")
  func discarded() {
    var talk = GatewayTalk(refusals: [2: .invalidToken])
    let frame = Frame.framed(3, token: [], payload: [])
    #expect(talk.send(Frame.framed(1) + Frame.framed(2) + frame.prefix(7))?.answer == [8, 8, 0, 0, 0, 2])
    #expect(talk.counts == [2, 1, 1, 0])
    #expect(talk.rest.count == 7)
    #expect(talk.send(Array(frame.dropFirst(7)) + Frame.simple().prefix(1)) == nil)
    #expect(talk.counts == [3, 1, 1, 1])
    #expect(talk.rest.count == 1)
    // The ending is the first one's, and nobody is asked any more.
    #expect(talk.session.ending?.notification == 1)
    #expect(talk.asked == [1, 2])
    talk.session.shutDown()
    #expect(talk.session.ending?.cause == .rejected)
    #expect(talk.isBalanced)
  }

  @Test("What is no frame behind a refused one is swallowed and not counted; the answer stays")
  func malformedBehindRejection() {
    var talk = GatewayTalk(refusals: [1: .invalidToken])
    #expect(talk.send(Frame.framed(1) + Frame.framed(2) + [9, 9, 9])?.answer == [8, 8, 0, 0, 0, 1])
    #expect(talk.counts == [2, 0, 1, 1])
    talk.send(Frame.framed(3))
    #expect(talk.counts == [2, 0, 1, 1])
    #expect(talk.isBalanced && talk.rest.isEmpty)
    // Items that do not fit are nobody's business there.
    var overrun = GatewayTalk(refusals: [1: .invalidToken])
    overrun.send(Frame.framed(1) + Frame.around([1]) + Frame.framed(3))
    #expect(overrun.counts == [3, 0, 1, 2])
  }

  // MARK: shutdown

  @Test("Shutdown after n: the last accepted one is named, the next is discarded", arguments: 0...4)
  func shutdownAfter(count: Int) {
    for piecewise in [false, true] {
      var talk = GatewayTalk(shutdownAfter: count)
      let frames = (1...4 as ClosedRange<UInt32>).map { Frame.framed($0 + 10) }
      var ending: GatewaySession.Ending?
      for piece in piecewise ? frames : [Array(frames.joined())] { ending = talk.send(piece) ?? ending }
      #expect(ending?.cause == .shutdown)
      #expect(ending?.status == .shutdown)
      #expect(ending?.notification == (count == 0 ? nil : count - 1))
      #expect(ending?.answer == [8, 10, 0, 0, 0, count == 0 ? 0 : UInt8(count + 10)])
      #expect(talk.counts == [4, count, 0, 4 - count])
      #expect(talk.asked.count == count)
      #expect(talk.isBalanced)
    }
  }

  @Test("A refusal comes before the shutdown that was due behind it")
  func refusedBeforeShutdown() {
    var talk = GatewayTalk(shutdownAfter: 3, refusals: [3: .invalidToken])
    let ending = talk.send((1...5 as ClosedRange<UInt32>).flatMap { Frame.framed($0) })
    #expect(ending?.answer == [8, 8, 0, 0, 0, 3])
    #expect(talk.counts == [5, 2, 1, 2])
  }

  @Test("Shutdown by call, with half a frame waiting: it is discarded once it is whole")
  func shutdownByCall() {
    var talk = GatewayTalk()
    let frame = Frame.framed(3)
    talk.send(Frame.framed(1) + Frame.framed(2) + frame.prefix(9))
    talk.session.shutDown()
    #expect(talk.session.ending?.answer == [8, 10, 0, 0, 0, 2])
    #expect(talk.session.ending?.notification == 1)
    talk.send(Array(frame.dropFirst(9)))
    #expect(talk.counts == [3, 2, 0, 1])
    // A second call says nothing new.
    let ending = talk.session.ending
    talk.session.shutDown()
    #expect(talk.session.ending == ending)
  }

  @Test("Shutdown before anything came, and behind one without an identifier: nothing can be named")
  func shutdownNamesNothing() {
    var idle = GatewayTalk()
    idle.session.shutDown()
    #expect(idle.session.ending?.answer == [8, 10, 0, 0, 0, 0])
    #expect(idle.session.ending?.notification == nil)
    for frame in [Frame.simple(), Frame.framed(nil)] {
      var talk = GatewayTalk()
      talk.send(Frame.framed(1) + frame)
      talk.session.shutDown()
      #expect(talk.session.ending?.answer == [8, 10, 0, 0, 0, 0])
      #expect(talk.session.ending?.notification == 1)
    }
  }

  // MARK: laws

  @Test("However the bytes are split, the same comes out", arguments: 1...200 as ClosedRange<UInt64>)
  func splits(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let (bytes, talk) = random.conversation()
    var whole = talk
    whole.send(bytes)
    #expect(whole.isBalanced)
    for _ in 0..<4 {
      var split = talk
      let longest = random.pick([1, 3, 40, 400])
      var offset = 0
      while offset < bytes.count {
        let end = min(bytes.count, offset + random.number(0...longest))
        split.send(Array(bytes[offset..<end]))
        #expect(split.isBalanced)
        offset = end
      }
      #expect(split.counts == whole.counts)
      #expect(split.session.ending == whole.session.ending)
      #expect(split.session.bytes == whole.session.bytes)
      #expect(split.rest == whole.rest)
      #expect(split.asked == whole.asked)
    }
  }
}

extension SeededGenerator {
  /// Bytes as a provider would write them, with a few that none should, and a gateway to read them.
  fileprivate mutating func conversation() -> (bytes: [UInt8], talk: GatewayTalk) {
    var talk = GatewayTalk(
      .init(
        tokenLengths: pick([32...32, 32...100]), maximumPayloadLength: pick([256, 2_048]),
        answersMalformed: happens(oneIn: 2)),
      standing: happens(oneIn: 10) ? .missingTopic : nil, shutdownAfter: happens(oneIn: 3) ? number(0...12) : .max)
    let bad = happens(oneIn: 2) ? 12 : 400
    var bytes: [UInt8] = []
    for identifier in 1...UInt32(number(1...20)) {
      if happens(oneIn: bad) {
        talk.refusals[identifier] = pick([.invalidToken, .processingError, ErrorResponse.Status.none])
      }
      if happens(oneIn: bad) {
        bytes += record(.notification)
      } else if happens(oneIn: bad * 2) {
        bytes += pick([Frame.around([1]), Frame.knownBad(identifier), [7], Array(hex: "02ffffffff"), Frame.framed(nil)])
      } else {
        bytes += pick(GatewaySessionTests.Kind.allCases).frame(identifier)
      }
    }
    bytes.removeLast(happens(oneIn: 3) ? number(0...20) : 0)
    return (bytes, talk)
  }
}

import Bytes
import Foundation
import HTTP2
import Measurement
import ProviderAPI
import TestSupport
import Testing

@testable import GatewaySimulator

/// Faults of the HTTP/2 provider API, as conversations at a time that the test sets.
@Suite("Faults of HTTP/2 on demand")
struct HTTP2FaultTests {
  private func conversation(_ faults: String...) throws -> HTTP2Conversation {
    var behavior = Behavior()
    behavior.http2Faults = try faults.map { try HTTP2Fault($0) }
    return HTTP2Conversation(behavior: behavior)
  }

  private func expectBalance(_ conversation: HTTP2Conversation) {
    let counts = conversation.takeCounts()
    #expect(counts.received == counts.accepted + counts.rejections + counts.discarded)
  }

  // MARK: the grammar

  @Test("A fault that is written is the same when it is read") func roundTrip() throws {
    for kind in DisturbedRun.kinds + WrongFrame.allCases.map({ "frame,wrong=\($0.rawValue)" }) {
      for occasion in DisturbedRun.occasions + [
        "token=0f0a", "prefix=ab", "topic=a.b", "connection=2..5", "until=1m30s",
      ] {
        let fault = try HTTP2Fault("\(kind),\(occasion)")
        #expect(try HTTP2Fault(fault.description) == fault)
      }
    }
    for text in [
      "goaway,last=answered,grace=2s,code=ENHANCE_YOUR_CALM,reason=BadCertificate,end=rst,idle=5s",
      "goaway,reason=none",
      "goaway,code=4711", "silence,idle=1h", "delay,lognormal=20ms,sigma=1.5", "delay,file=a file", "slow,rate=4KiB",
      "throttle,rate=0.5", "reset,code=99", "close,way=rst,bytes=0",
    ] {
      let fault = try HTTP2Fault(text)
      #expect(try HTTP2Fault(fault.description) == fault)
    }
    #expect(try HTTP2Fault("silence,idle=1s") == HTTP2Fault("silence,of=connection,idle=1s"))
    #expect(try HTTP2Fault("delay,time=1ms").description == "delay,time=1ms")
  }

  @Test(
    "What is no fault is named, with what it has to be",
    arguments: [
      ("", "no fault is ''"), ("explode", "no fault is 'explode'"), ("delay", "delay takes one of"),
      ("delay,time=1ms,exponential=1ms", "delay takes one of"), ("delay,time=5", "time has to be"),
      ("delay,time=5ms..1ms", "time has to be"), ("delay,time=2d", "time has to be"),
      ("delay,sigma=1,time=1s", "sigma is"),
      ("refuse,every=0", "every has to be"), ("refuse,every=2,every=3", "every is given twice"),
      ("refuse,every=2,probability=0.5", "exclude each other"), ("refuse,probability=2", "probability has to be"),
      ("refuse,idle=1s", "idle is of"), ("silence,of=stream,idle=1s", "idle is of"),
      ("refuse,code=CANCEL", "no 'code'"),
      ("refuse,", "is not KEY=VALUE"), ("refuse,every", "is not KEY=VALUE"), ("refuse,every=", "is not KEY=VALUE"),
      ("reset,code=REFUSED_STREAM", "is the fault 'refuse'"), ("reset,code=NOPE", "code has to be"),
      ("frame", "needs wrong="), ("frame,wrong=x", "wrong has to be unknown-type"),
      ("answer", "needs status= or content="),
      ("answer,status=199", "status has to be"), ("streams,limit=-1", "limit has to be"),
      ("token,token=1", "no fault is"),
      ("refuse,token=0", "token has to be"), ("refuse,index=5..2", "index has to be"),
      ("refuse,from=2s,until=1s", "later"),
      ("refuse,connection=0", "connection has to be"), ("slow,rate=0", "rate has to be"),
      ("throttle,rate=0", "rate has"),
    ])
  func problems(text: String, words: String) {
    #expect { try HTTP2Fault(text) } throws: { "\($0)".contains(words) }
  }

  // MARK: when

  @Test("every, index, times, token, prefix and topic choose notifications; those that they leave out are not counted")
  func occasions() throws {
    let one = String(repeating: "0f", count: 32)
    let two = "ab" + String(repeating: "0f", count: 31)
    for (occasion, refused) in [
      ("every=3", [2, 5, 8]), ("index=4..6", [4, 5, 6]), ("times=2", [0, 1]), ("token=\(two)", [1, 3, 5, 7, 9]),
      ("prefix=ab,every=2", [3, 7]), ("topic=other", [0, 4, 8]), ("topic=other,index=1..9,times=1", [4]),
      ("connection=1,index=9", [9]), ("connection=2", []), ("probability=0", []),
      ("probability=1", Array(0..<10)),
    ] as [(String, [Int])] {
      let conversation = try conversation("refuse,\(occasion)")
      var hits: [Int] = []
      for number in 0..<10 {
        let answer = conversation.push([
          ":path": "/3/device/\(number % 2 == 0 ? one : two)",
          "apns-topic": number % 4 == 0 ? "other" : "com.example.app",
        ])
        if answer.isReset { hits.append(number) } else { #expect(answer.status == 200) }
      }
      #expect(hits == refused, "\(occasion)")
      let counts = conversation.takeCounts()
      #expect(counts.discarded == refused.count && counts.faults["refuse"] ?? 0 == refused.count)
      expectBalance(conversation)
    }
  }

  @Test("from and until are times since the fault was set; a period is that of the connection") func times() throws {
    let conversation = try conversation("refuse,from=100ms,until=300ms")
    var refused: [Int64] = []
    for _ in 0..<10 {
      if conversation.push().isReset { refused.append(conversation.now - HTTP2Conversation.start) }
      conversation.now += 50
    }
    #expect(refused == [100, 150, 200, 250])
    let later = try self.conversation("reset,every=100ms")
    refused = []
    for _ in 0..<10 {
      if later.push().isReset { refused.append(later.now - HTTP2Conversation.start) }
      later.now += 60
    }
    // The first after each period.
    #expect(refused == [120, 240, 300, 420, 540])
  }

  @Test("Of two faults that decide about an answer the first does; a delay goes with each") func several() throws {
    let conversation = try conversation("refuse,every=2", "reset,code=CANCEL", "delay,time=10ms")
    conversation.push()
    conversation.push()
    #expect(conversation.resets == [3: .refusedStream])
    conversation.pass(.milliseconds(10))
    #expect(conversation.resets == [1: .cancel, 3: .refusedStream])
    #expect(conversation.takeCounts().faults == ["refuse": 1, "reset": 1, "delay": 2])
    expectBalance(conversation)
  }

  @Test("Faults change while the connection is open; one that stays goes on with its counts") func changes() throws {
    let conversation = HTTP2Conversation()
    #expect(conversation.push().status == 200)
    #expect(conversation.nextDue == nil)
    conversation.adopt([try HTTP2Fault("delay,time=5s")])
    #expect(conversation.push().status == 0)
    conversation.adopt([])
    #expect(conversation.push().status == 200)
    #expect(conversation.nextDue == .seconds(5))
    conversation.pass(.seconds(5))
    #expect(conversation.answered == [1, 5, 3])
    #expect(conversation.nextDue == nil)
    expectBalance(conversation)
  }

  // MARK: kinds

  @Test("A delayed answer comes when it is due, neither earlier nor twice") func delay() throws {
    let conversation = try conversation("delay,time=20ms")
    #expect(conversation.push().status == 0)
    #expect(conversation.nextDue == .milliseconds(20))
    conversation.pass(.milliseconds(19))
    #expect(conversation.answered == [])
    conversation.pass(.milliseconds(1))
    #expect(conversation.answered == [1])
    conversation.pass(.seconds(1))
    #expect(conversation.answered == [1])
    #expect(conversation.takeCounts().accepted == 1)
    // A client that has reset the stream gets nothing, also when the stream's place is taken.
    conversation.push()
    conversation.send([0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8])
    conversation.push()
    conversation.pass(.milliseconds(20))
    #expect(conversation.answered == [1, 5])
    let counts = conversation.takeCounts()
    #expect((counts.accepted, counts.unknownAccepted) == (3, 1))
    #expect(conversation.violations.isEmpty)
  }

  @Test("Distributions of delays have their mean and median; a file's lines are drawn") func distributions() throws {
    var random = SplitMix64(seed: 4)
    func draws(_ text: String) throws -> [Double] {
      var fault = try HTTP2Fault(text)
      try fault.readFile()
      guard case .delay(let delay) = fault.kind else { return [] }
      return (0..<20_000).map { _ in Double(delay.draw(&random)) / 1e6 }.sorted()
    }
    let uniform = try draws("delay,time=10ms..30ms")
    #expect(uniform[0] >= 10 && uniform[19_999] <= 30 && abs(uniform[10_000] - 20) < 1)
    let exponential = try draws("delay,exponential=20ms")
    #expect(abs(exponential.reduce(0, +) / 20_000 - 20) < 1 && abs(exponential[10_000] - 20 * log(2)) < 1)
    let lognormal = try draws("delay,lognormal=20ms,sigma=0.5")
    #expect(abs(lognormal[10_000] - 20) < 1 && abs(lognormal[16_827] - 20 * exp(0.5)) < 2)
    try withTemporaryFolder { folder in
      let path = folder.appending(path: "ms").path
      try "# measured\n1\n\n 2.5 \r\n400\n".write(toFile: path, atomically: true, encoding: .utf8)
      #expect(Set(try draws("delay,file=\(path)")) == [1, 2.5, 400])
      for (text, words) in [("", "no delays"), ("1\nx\n", "line 2"), ("-1\n", "line 1"), ("3600001\n", "line 1")] {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        #expect { try DelayList(path: path) } throws: { "\($0)".contains(words) }
      }
    }
    #expect { try DelayList(path: "/nowhere/ms") } throws: { "\($0)".contains("No such file") }
  }

  @Test("Answers wait for each other, and come in another order; a lone one comes in time") func disorder() throws {
    let conversation = try conversation("disorder,depth=5,within=100ms")
    for _ in 0..<4 { #expect(conversation.push().status == 0) }
    #expect(conversation.push().status == 200)
    #expect(conversation.answered.sorted() == [1, 3, 5, 7, 9] && conversation.answered != [1, 3, 5, 7, 9])
    conversation.push()
    conversation.pass(.milliseconds(99))
    #expect(conversation.answered.count == 5)
    conversation.pass(.milliseconds(1))
    #expect(conversation.answered.last == 11)
    expectBalance(conversation)
  }

  @Test("A silent stream is processed and never answered; the connection goes on") func silentStream() throws {
    let conversation = try conversation("silence,times=1")
    #expect(conversation.push() == HTTP2Conversation.Answer())
    #expect(conversation.push().status == 200)
    conversation.pass(.seconds(3_600))
    #expect(conversation.answered == [3] && conversation.effects.isEmpty)
    conversation.finish()
    let counts = conversation.takeCounts()
    #expect((counts.accepted, counts.unknownAccepted, counts.discarded) == (2, 1, 0))
  }

  @Test("A silent connection gets no byte, and processes nothing: neither its PING nor what follows") func silence()
    throws
  {
    for fault in ["silence,of=connection,index=1", "silence,idle=10s"] {
      let conversation = try conversation(fault, "delay,time=25s,index=0")
      conversation.push()
      if fault.contains("idle") {
        #expect(conversation.nextDue == .seconds(10))
        conversation.now += 9_999
        conversation.send([])
        conversation.pass(.milliseconds(1))
        #expect(!conversation.isSilent)
        conversation.pass(.milliseconds(9_999))
      }
      let bytes = conversation.received
      for _ in 0..<3 { #expect(conversation.push() == HTTP2Conversation.Answer()) }
      conversation.send([0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 8))
      conversation.pass(.seconds(100))
      #expect(conversation.isSilent && conversation.received == bytes && conversation.nextDue == nil)
      conversation.finish()
      let counts = conversation.takeCounts()
      #expect((counts.received, counts.accepted, counts.discarded) == (4, 1, 3))
      // The first is never answered, as it waited.
      #expect((counts.unknownAccepted, counts.unknownDiscarded) == (1, 3))
    }
  }

  @Test("GOAWAY names the last stream as told, with its code and reason, and what is above is not processed")
  func goAway() throws {
    let seen = try conversation("goaway,every=2")
    seen.push()
    #expect(seen.goAways.isEmpty)
    #expect(seen.push().status == 200)
    #expect(seen.goAways == [.init(last: 3, code: .noError, debug: #"{"reason":"Shutdown"}"#)])
    #expect(seen.effects == [.drain])
    #expect(seen.push() == HTTP2Conversation.Answer())
    #expect((seen.takeCounts().accepted, seen.takeCounts().discarded, seen.takeCounts().unknownDiscarded) == (2, 1, 0))

    let notice = try conversation("goaway,last=notice,grace=50ms,times=1,code=11,reason=none")
    notice.push()
    #expect(notice.goAways == [.init(last: 0x7fff_ffff, code: .enhanceYourCalm, debug: "")])
    // What a client sends before it knows is processed.
    #expect(notice.push().status == 200)
    notice.pass(.milliseconds(50))
    #expect(notice.goAways.last == .init(last: 3, code: .enhanceYourCalm, debug: ""))
    #expect(notice.effects == [.drain] && notice.takeCounts().goAways == 2)

    // A request that is not complete is above the last answered one, and dropped.
    let answered = try conversation("goaway,last=answered,index=2,end=fin")
    let first = answered.push()
    answered.begin()
    answered.push()
    answered.begin()
    #expect(first.status == 200)
    #expect(answered.goAways.map(\.last) == [5])
    #expect(answered.effects == [.close(isReset: false)])
    answered.finish()
    let counts = answered.takeCounts()
    #expect((counts.received, counts.accepted, counts.discarded, counts.incomplete) == (3, 2, 1, 1))
    expectBalance(answered)
  }

  @Test("After GOAWAY no fault says another one") func oneGoAway() throws {
    let conversation = try conversation("goaway")
    for _ in 0..<2 { conversation.begin() }
    for stream: UInt32 in [1, 3] {
      var writer = ByteWriter()
      writer.writeFrame(.data, flags: .endStream, stream: stream, Array("{}".utf8).rawBytes)
      conversation.send(Array(copying: writer.bytes))
    }
    #expect(conversation.goAways.map(\.last) == [3])
    #expect(conversation.answered == [1, 3] && conversation.takeCounts().faults == ["goaway": 1])
  }

  @Test("A fault of time hits the connection at its time, no notification, and nothing when its own time is over")
  func ofTime() throws {
    let conversation = try conversation("streams,limit=5,every=1s")
    conversation.now += 2_000
    conversation.push()
    #expect(conversation.limits == [1_000])
    conversation.pass(.zero)
    #expect(conversation.limits == [1_000, 5])
    let over = try self.conversation("streams,limit=5,every=10s,until=10s")
    #expect(over.nextDue == nil)
    let within = try self.conversation("streams,limit=5,every=10s,until=11s")
    #expect(within.nextDue == .seconds(10))
    // The earliest of all that waits.
    let both = try self.conversation("delay,time=10s", "goaway,every=30s", "streams,every=20s")
    #expect(both.nextDue == .seconds(20))
    both.push()
    #expect(both.nextDue == .seconds(10))
  }

  @Test("GOAWAY comes by the clock, too, once a period or when nothing has come for a time") func goAwayByTime() throws
  {
    for fault in ["goaway,every=30s", "goaway,idle=30s"] {
      let conversation = try conversation(fault)
      #expect(conversation.nextDue == .seconds(30))
      conversation.pass(.milliseconds(29_999))
      #expect(conversation.goAways.isEmpty)
      conversation.pass(.milliseconds(1))
      #expect(conversation.goAways.map(\.last) == [0])
      #expect(conversation.effects == [.drain] && conversation.nextDue == nil)
    }
    let both = try conversation("streams,limit=1,every=1s", "streams,limit=5,every=1s,times=1")
    both.pass(.seconds(3))
    both.pass(.seconds(1))
    #expect(both.limits == [1_000, 1, 5, 1])
  }

  @Test("Streams are reset with the code that is told; all but REFUSED_STREAM were processed") func resets() throws {
    let conversation = try conversation("reset,code=INTERNAL_ERROR,every=2", "refuse,every=3")
    for _ in 0..<6 { conversation.push() }
    #expect(conversation.resets == [3: .internalError, 7: .internalError, 11: .internalError, 9: .refusedStream])
    let counts = conversation.takeCounts()
    #expect((counts.accepted, counts.unknownAccepted, counts.discarded) == (5, 3, 1))
    expectBalance(conversation)
  }

  @Test("TooManyRequests is by token: each has its rate, over time") func throttle() throws {
    let conversation = try conversation("throttle,rate=2")
    func statuses(_ digit: String) -> [Int] {
      (0..<4).map { _ in conversation.push([":path": "/3/device/" + String(repeating: digit, count: 64)]).status }
    }
    #expect(statuses("a") == [200, 200, 429, 429])
    #expect(statuses("b") == [200, 200, 429, 429])
    conversation.now += 500
    #expect(statuses("a") == [200, 429, 429, 429])
    conversation.now += 60_000
    #expect(statuses("a") == [200, 200, 429, 429])
    #expect(conversation.takeCounts().rejected == [ProviderReason(rawValue: "TooManyRequests"): 9])
    #expect(conversation.takeCounts().faults == ["throttle": 9])
  }

  @Test("A connection is closed within an answer: half of its fields, or as many bytes as are told") func cut() throws {
    for (fault, isReset, bytes, told) in [
      ("close", false, nil, 1), ("close,way=rst", true, nil, 1), ("close,way=fin,bytes=1", false, 1, 0),
      ("close,bytes=0", false, 0, 0), ("close,bytes=9", false, 9, 0), ("close,bytes=1000", false, nil, 1),
    ] as [(String, Bool, Int?, Int)] {
      // A rejection has fields and content.
      let conversation = try conversation("\(fault),index=1")
      conversation.push()
      let before = conversation.received
      let answer = conversation.push(["apns-priority": "7"])
      // Only a whole frame is an answer to a client.
      #expect(answer.status == (fault.contains("1000") ? 400 : 0))
      if let bytes { #expect(conversation.received == before + bytes) }
      #expect(conversation.received < before + 200)
      #expect(conversation.effects == [.close(isReset: isReset)])
      // What follows is counted, and not processed.
      let end = conversation.received
      conversation.push()
      #expect(conversation.received == end)
      let counts = conversation.takeCounts()
      #expect((counts.accepted, counts.rejections, counts.discarded) == (1, 1, 1))
      #expect((counts.unknownRejected, counts.unanswered, counts.unknownDiscarded) == (1 - told, told, 1))
    }
  }

  @Test("No window is opened any more, or the connection is read slowly") func slow() throws {
    let conversation = try conversation("slow")
    conversation.push(content: [UInt8](repeating: 0x20, count: 4_000))
    let before = conversation.received
    for _ in 0..<14 { conversation.push(content: [UInt8](repeating: 0x20, count: 4_000)) }
    // Answers only: fields of 9 + 54 bytes at most.
    #expect(conversation.received - before <= 14 * 63)
    #expect(conversation.violations.isEmpty)
    // The window of 65,535 bytes is used up.
    conversation.push(content: [UInt8](repeating: 0x20, count: 6_000))
    #expect(conversation.goAways.map(\.code) == [.flowControlError])
    let other = try self.conversation("slow,rate=1000")
    other.push()
    #expect(other.effects == [.slow(bytesPerSecond: 1_000)])
  }

  @Test(
    "Every wrong frame is on the wire, most of them wrong for an observer too, and the notification is in the books",
    arguments: WrongFrame.allCases)
  func wrongFrames(wrong: WrongFrame) throws {
    let conversation = try conversation("frame,wrong=\(wrong.rawValue),times=1")
    conversation.push()
    // Those that need what an observer does not know for certain: a stream that it may have missed, windows, or settings.
    let unseen: Set<WrongFrame> = [.unknownType, .idleStream, .pushPromise, .windowOverflow, .secondAnswer]
    #expect(conversation.violations.isEmpty == unseen.contains(wrong), "\(conversation.violations)")
    let right = HTTP2Conversation()
    right.push()
    #expect(conversation.received != right.received)
    let counts = conversation.takeCounts()
    #expect((counts.accepted, counts.unknownAccepted) == (1, wrong.replacesAnswer ? 1 : 0))
    #expect(counts.faults == ["frame": 1])
  }

  @Test("Answers have the status and the content that are told, and the books have what the provider was told")
  func answers() throws {
    for (fault, status, content, accepted, key) in [
      ("answer,status=503", 503, #"{"reason":"InternalServerError"}"#, 0, "InternalServerError"),
      ("answer,status=999,content=none", 999, "", 0, "HTTP 999"),
      ("answer,status=418,content=html", 418, "<html><body>418</body></html>", 0, "HTTP 418"),
      ("answer,status=500,content=cut", 500, #"{"reason":"Inter"#, 0, "HTTP 500"),
      ("answer,status=500,content=empty", 500, "{}", 0, "HTTP 500"), ("answer,status=299", 299, "", 1, ""),
      ("answer,content=html", 200, "<html><body>200</body></html>", 1, ""),
    ] {
      let conversation = try conversation(fault)
      let answer = conversation.push()
      #expect((answer.status, answer.content) == (status, content))
      let counts = conversation.takeCounts()
      #expect(counts.accepted == accepted && counts.rejections == 1 - accepted)
      if accepted == 0 { #expect(counts.rejected == [ProviderReason(rawValue: key): 1]) }
    }
    // What is rejected anyway keeps its status with 2xx.
    #expect(try conversation("answer,status=299").push(["apns-priority": "7"]).status == 400)
  }

  // MARK: the books

  @Test("300 disturbed runs: no stream is answered twice, no rule is broken, and a recording has the same books")
  func law() throws {
    var (kinds, requests) = (Set<String>(), 0)
    var unknown = 0
    for seed in 1...300 as ClosedRange<UInt64> {
      let run = try DisturbedRun(seed: seed)
      run.run(steps: 150)
      let (counts, fates) = (run.counts, run.recorded.fates)
      let name: Comment = "seed \(seed): \(run.faults.joined(separator: " "))"
      #expect(!run.hasFailed, name)
      #expect(run.serverViolations.isEmpty && run.clientViolations.isEmpty, name)
      #expect(run.mostAnswers <= 1, name)
      #expect(counts.received == counts.accepted + counts.rejections + counts.discarded, name)
      #expect(run.recorded.notifications == counts.received + counts.incomplete, name)
      #expect(fates.accepted == counts.accepted - counts.unknownAccepted, name)
      #expect(fates.rejected == counts.rejections - counts.unknownRejected, name)
      // Behind a frame that is cut a recording does not know what was to come: what never ended is of unknown fate, too.
      let doubtful = fates.unknown - counts.unknownAccepted - counts.unknownRejected - counts.unknownDiscarded
      #expect(doubtful >= 0 && doubtful <= (counts.faults["close"] == nil ? 0 : counts.incomplete), name)
      #expect(
        fates.discarded == counts.discarded - counts.unknownDiscarded + counts.incomplete - doubtful, name)
      kinds.formUnion(counts.faults.keys)
      requests += counts.received
      unknown += fates.unknown
    }
    // The runs are not empty.
    #expect(
      kinds.count == HTTP2Fault.kinds.count && requests > 3_000 && unknown > 100, "\(kinds) \(requests) \(unknown)")
  }
}

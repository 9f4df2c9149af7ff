import Bytes
import DeviceProtocol
import Foundation
import Measurement
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// Recordings of the device channel and of local push.
@Suite("Recordings of messages to devices")
struct MessageRecordTests {
  private static func options(_ kind: MessageProtocol? = nil, threads: Int = 1, blockLength: Int? = nil)
    -> DissectionOptions
  {
    var options = DissectionOptions()
    if let kind { options.messagePorts = [7_777: kind] }
    options.threads = .exactly(threads)
    if let blockLength {
      options.leastWeightForThreads = 1
      options.capture.blockLength = blockLength
    }
    return options
  }

  private static func read(_ bytes: [UInt8], _ options: DissectionOptions = DissectionOptions()) throws -> Collector {
    try withTemporaryFile(bytes) { try dissect($0, options) }
  }

  private static func expectWhole(_ seen: Collector, _ talk: MessageTalk, _ comment: Comment) {
    for direction in [Direction.client, .server] {
      let sent = talk.words.filter { $0.isClient == (direction == .client) }.map(\.message)
      #expect(seen.messages.filter { $0.direction == direction }.map(\.message) == sent, comment)
    }
    #expect(seen.gaps.isEmpty && seen.malformed.isEmpty, comment)
    #expect(seen.connections.first?.messages == talk.words.count, comment)
    #expect(seen.connections.first?.otherProtocol == OtherProtocol(talk.kind), comment)
    #expect(seen.summaries.first?.messages == talk.words.count, comment)
    #expect(seen.notifications.isEmpty && seen.requests.isEmpty && seen.tuples.isEmpty, comment)
  }

  @Test(
    "Conversations are recognised on any port, in pieces of any size, and all of their messages are read",
    arguments: seeds(10, of: 100), [7_777, 443, 2195, 2196] as [UInt16])
  func whole(seed: UInt64, port: UInt16) throws {
    for size in [1_000_000, 61, 1] {
      var random = SeededGenerator(seed: seed)
      let talk = MessageTalk.any(&random)
      let seen = try talk.capture(port: port, size: size).dissected()
      Self.expectWhole(seen, talk, "seed \(seed), size \(size)")
      let connection = try #require(seen.connections.first)
      expectTiling(of: connection, .client, in: seen)
      expectTiling(of: connection, .server, in: seen)
      for (message, word) in zip(seen.messages, talk.words) { #expect(message.place.length == word.bytes.count) }
    }
  }

  @Test("A message has the packet and the time of its last byte", arguments: seeds(10, of: 100))
  func places(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let seen = try talk.capture(size: 40).dissected()
    // The handshake is three packets.
    var packet = 3
    for (message, word) in zip(seen.messages, talk.words) {
      packet += (word.bytes.count + 39) / 40
      #expect(message.place.packet == packet)
      #expect(message.place.time.nanoseconds == 1_450_000_000_000_000_000 + Int64(packet) * 1_000_000)
    }
  }

  @Test("A capture without the handshake is read from its first message on", arguments: seeds(20, of: 200))
  func withoutHandshake(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let seen = try talk.capture(port: 7_777, isFromStart: false).dissected()
    Self.expectWhole(seen, talk, "seed \(seed)")
    #expect(seen.connections.first?.server?.port == 7_777)
  }

  @Test("The messages tell the ends where the handshake is missing and the ports do not")
  func ends() throws {
    var random = SeededGenerator(seed: 1)
    let talk = MessageTalk.devices(&random)
    let seen = try talk.capture(port: 50_001, isFromStart: false).dissected()
    #expect(seen.connections.first?.server?.port == 50_001)
    Self.expectWhole(seen, talk, "devices")
  }

  @Test(
    "With a stated port the middle of a connection is read, and nothing is invented", arguments: seeds(40, of: 400))
  func middle(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    var capture = CaptureBuilder()
    let line = capture.connect(to: 7_777, handshake: false)
    var skipped = (client: random.number(0...400), server: random.number(0...400))
    var cut: Set<Direction> = []
    for word in talk.words {
      let skip = min(word.bytes.count, word.isClient ? skipped.client : skipped.server)
      if word.isClient { skipped.client -= skip } else { skipped.server -= skip }
      let rest = Array(word.bytes[skip...])
      if rest.isEmpty { continue }
      if skip > 0 { cut.insert(word.isClient ? .client : .server) }
      if word.isClient { capture.client(line, rest) } else { capture.server(line, rest) }
    }
    capture.finish(line)
    let seen = try capture.dissected(Self.options(talk.kind))
    try Self.expectPart(seen, of: talk, "seed \(seed)")
    // The last message of each end is whole, and proven by the end.
    for isClient in [true, false] {
      let direction: Direction = isClient ? .client : .server
      let own = talk.words.filter { $0.isClient == isClient }
      guard own.last.map({ $0.bytes.count + 400 < own.reduce(0) { $0 + $1.bytes.count } }) == true else { continue }
      #expect(seen.messages.last { $0.direction == direction }?.message == own.last?.message)
      // What is there of the first message began before the recording, and was not lost in it.
      let reasons = Set(seen.gaps.filter { $0.direction == direction }.map(\.reason))
      #expect(reasons == (cut.contains(direction) ? [.beforeCapture] : []), "seed \(seed)")
    }
  }

  /// The messages are some of those that were sent, in their order; and every byte is in one record.
  private static func expectPart(_ seen: Collector, of talk: MessageTalk, _ comment: Comment) throws {
    for isClient in [true, false] {
      let direction: Direction = isClient ? .client : .server
      let sent = talk.words.filter { $0.isClient == isClient }.map(\.message)
      var next = 0
      for record in seen.messages where record.direction == direction {
        while next < sent.count, sent[next] != record.message { next += 1 }
        #expect(next < sent.count, comment)
        next += 1
      }
      if let connection = seen.connections.first, connection.messages != nil {
        expectTiling(of: connection, direction, in: seen)
      }
    }
  }

  @Test(
    "After packets were removed no message is invented, and no claim is made that the whole recording refutes",
    arguments: seeds(60, of: 600))
  func removed(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let capture = talk.capture(size: random.pick([30, 200, 5_000]))
    let cut = try #require(CutCapture(capture.bytes))
    let share = random.pick([2, 5, 20])
    let kept = cut.records.indices.filter { $0 < 3 || !random.happens(oneIn: share) }
    let lossy = cut.file(kept)
    for kind in [nil, talk.kind] {
      let seen = try Self.read(lossy, Self.options(kind))
      try Self.expectPart(seen, of: talk, "seed \(seed)")
      let part = try inspected(lossy, Self.options(kind))
      let whole = try inspected(capture.bytes)
      try Self.expectSofter(part, than: whole, "seed \(seed)")
    }
  }

  @Test(
    "A capture that ends anywhere has a beginning of the messages, and softer claims", arguments: seeds(30, of: 300))
  func cut(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let capture = talk.capture(size: random.pick([30, 5_000]))
    let cut = try #require(CutCapture(capture.bytes))
    let bytes = cut.file(Array(0..<random.number(3...cut.records.count)))
    let seen = try Self.read(bytes)
    // A beginning too short to be recognised has none.
    #expect(seen.messages.map(\.message) == talk.words.prefix(seen.messages.count).map(\.message))
    let part = try inspected(bytes)
    let whole = try inspected(capture.bytes)
    try Self.expectSofter(part, than: whole, "seed \(seed)")
  }

  @Test("Packets in another order, and twice, change no message", arguments: seeds(20, of: 200))
  func reordered(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let cut = try #require(CutCapture(talk.capture(size: 200).bytes))
    var order = Array(cut.records.indices)
    for place in stride(from: 3, to: order.count - 3, by: 2) where random.happens(oneIn: 2) {
      order.swapAt(place, place + 1)
    }
    if let twice = order.dropFirst(3).randomElement(using: &random) { order.insert(twice, at: order.count - 2) }
    let seen = try Self.read(cut.file(order))
    for direction in [Direction.client, .server] {
      #expect(
        seen.messages.filter { $0.direction == direction }.map(\.message)
          == talk.words.filter { $0.isClient == (direction == .client) }.map(\.message), "seed \(seed)")
    }
    #expect(seen.gaps.isEmpty && seen.malformed.isEmpty)
  }

  private func inspected(_ bytes: [UInt8], _ options: DissectionOptions = DissectionOptions()) throws
    -> InspectionReport
  {
    try withTemporaryFile(bytes) { path in
      let shared = SharedSink(Inspection())
      var dissection = Dissection(into: shared, options: options)
      _ = try dissection.read(try .open(path, options: options.capture), source: path) { _ in true }
      dissection.finish()
      return shared.sink.finish()
    }
  }

  /// What a part of a recording claims is claimed by the whole, too.
  private static func expectSofter(_ part: InspectionReport, than whole: InspectionReport, _ comment: Comment) throws {
    if let counts = part.devices {
      let all = try #require(whole.devices)
      #expect(counts.unacknowledged <= all.unacknowledged, comment)
      #expect(counts.acknowledged <= all.acknowledged, comment)
      #expect(counts.notGrowing <= all.notGrowing, comment)
      #expect(
        counts.deliveries == counts.acknowledged + counts.unacknowledged + counts.open + counts.notGrowing, comment)
    }
    if let counts = part.localPush {
      let all = try #require(whole.localPush)
      #expect(counts.unacknowledged <= all.unacknowledged, comment)
      #expect(counts.acknowledged <= all.acknowledged && counts.late <= all.late, comment)
      #expect(counts.silences <= all.silences, comment)
      #expect(counts.requests == counts.acknowledged + counts.late + counts.unacknowledged + counts.open, comment)
    }
  }

  @Test("Threads and small blocks change nothing", arguments: seeds(6, of: 60))
  func threads(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var capture = CaptureBuilder()
    var lines: [(line: Int, talk: MessageTalk)] = []
    for number in 0..<4 {
      lines.append((capture.connect(from: UInt16(40_001 + number), to: 7_777), .any(&random)))
    }
    let gateway = capture.connect(from: 41_000)
    for place in 0..<20 {
      for (line, talk) in lines where place < talk.words.count {
        let word = talk.words[place]
        if word.isClient { capture.client(line, word.bytes) } else { capture.server(line, word.bytes) }
        if random.happens(oneIn: 9) { capture.lose(line, random.number(1...40), fromServer: random.happens(oneIn: 2)) }
      }
      capture.client(gateway, push(UInt32(place), device: 1))
    }
    let expected = try writtenLines(of: capture.bytes, Self.options(blockLength: 300))
    #expect(expected.contains(#""type":"device""#) || expected.contains(#""type":"local_push""#))
    for threads in [2, 3, 8] {
      #expect(try writtenLines(of: capture.bytes, Self.options(threads: threads, blockLength: 300)) == expected)
    }
  }

  private func writtenLines(of bytes: [UInt8], _ options: DissectionOptions, _ redaction: Redaction? = nil) throws
    -> String
  {
    try withTemporaryFile(bytes) { path in
      var text: [UInt8] = []
      let writer = JSONLinesWriter {
        text.append(copying: $0)
        return true
      }
      if let redaction {
        try read(path, options, RedactedRecords(writer, redaction))
      } else {
        try read(path, options, writer)
      }
      writer.flush()
      return String(decoding: text, as: UTF8.self)
    }
  }

  private func read(_ path: String, _ options: DissectionOptions, _ sink: some RecordSink) throws {
    let shared = SharedSink(sink)
    var dissection = Dissection(into: shared, options: options)
    _ = try dissection.read(try .open(path, options: options.capture), source: "a") { _ in true }
    dissection.finish()
  }

  // MARK: what is claimed

  @Test("Notifications are not acknowledged only where the device's end was recorded")
  func acknowledged() throws {
    enum Damage { case none, gap, malformed }
    for (hasEnd, damage, open, unacknowledged) in [
      (true, Damage.none, 0, 2), (false, .none, 2, 0), (true, .gap, 2, 0), (true, .malformed, 2, 0),
    ] {
      var talk = MessageTalk(.devices)
      talk.device(.online(.init(apps: [.init(token: MessageTalk.token, topic: "t")])), isClient: true)
      for sequence in 1...5 as ClosedRange<UInt64> {
        talk.device(
          .deliver(
            .init(token: MessageTalk.token, topic: "t", sequence: sequence, payload: [], sent: 0)), isClient: false)
        if sequence == 3 {
          talk.device(.acknowledge(token: MessageTalk.token, topic: "t", sequence: sequence), isClient: true)
        }
      }
      var capture = CaptureBuilder()
      let line = capture.connect(to: 7_777)
      for word in talk.words {
        if word.isClient { capture.client(line, word.bytes) } else { capture.server(line, word.bytes) }
      }
      switch damage {
      case .none: break
      case .gap: capture.lose(line, 30)
      // Any message may be in it.
      case .malformed:
        capture.client(
          line, written { $0.write(framed: .bigEndian) { $0.write(Array(#"{"message":"x"}"#.utf8).rawBytes) } })
      }
      if damage != .none { capture.client(line, written { DeviceMessage.offline(reason: nil).write(to: &$0) }) }
      if hasEnd { capture.finish(line) }
      let report = try inspected(capture.bytes)
      let counts = try #require(report.devices)
      #expect((counts.deliveries, counts.acknowledged) == (5, 3))
      #expect((counts.open, counts.unacknowledged) == (open, unacknowledged), "\(hasEnd) \(damage)")
      #expect(report.findings.contains { $0.kind == .notAcknowledged } == (unacknowledged > 0))
      #expect(report.connections.first?.devices?.acknowledged == 3)
      #expect(!report.findings.contains { $0.kind == .nothingRead || $0.kind == .otherProtocol })
    }
  }

  @Test("Devices that come at once are no provider's storm of connections", arguments: [false, true])
  func storm(isOfProviders: Bool) throws {
    var capture = CaptureBuilder()
    // Others, of the other kind, over hours.
    for number in 0..<70 as Range<UInt16> {
      let line = capture.connect(from: 30_001 + number, to: isOfProviders ? 7_777 : 2_195)
      if isOfProviders {
        capture.client(line, written { DeviceMessage.online(.init(apps: [])).write(to: &$0) })
      } else {
        capture.client(line, push(UInt32(number), device: 1))
      }
      capture.finish(line)
      capture.milliseconds += 120_000
    }
    for number in 0..<70 as Range<UInt16> {
      let line = capture.connect(from: 40_001 + number, to: isOfProviders ? 2_195 : 7_777)
      if isOfProviders {
        capture.client(line, push(UInt32(number), device: 1))
      } else {
        capture.client(line, written { DeviceMessage.online(.init(apps: [])).write(to: &$0) })
      }
      capture.finish(line)
    }
    let report = try inspected(capture.bytes)
    #expect(report.findings.contains { $0.kind == .reconnectStorm } == isOfProviders)
    #expect(report.devices?.connections == 70)
    #expect(report.opensPerMinute?.max == (isOfProviders ? 70 : 1))
  }

  @Test("Late and missing acknowledgements of local push, and silences, are counted with their times")
  func localPush() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 7_777)
    func bytes(_ message: LocalPushMessage) -> [UInt8] { written { message.write(to: &$0) } }
    let user = LocalPushMessage.User(identifier: "u", deviceName: "d")
    capture.client(line, bytes(.init(request: 1, .user(user))))
    capture.server(line, bytes(.init(acknowledging: 1)))
    capture.server(line, bytes(.init(request: 2, .heartbeat(count: 1))))
    capture.milliseconds += 11_000
    capture.client(line, bytes(.init(acknowledging: 2)))
    capture.server(line, bytes(.init(request: 3, .heartbeat(count: 2))))
    capture.milliseconds += 31_000
    capture.server(line, bytes(.init(request: 4, .heartbeat(count: 3))))
    capture.client(line, bytes(.init(acknowledging: 4)))
    capture.finish(line)
    let report = try inspected(capture.bytes)
    let counts = try #require(report.localPush)
    #expect((counts.requests, counts.acknowledged, counts.late, counts.unacknowledged, counts.open) == (4, 2, 1, 1, 0))
    #expect((counts.heartbeats, counts.silences, counts.messages) == (3, 1, 7))
    let interval = try #require(counts.longestIntervalS)
    #expect(abs(interval - 31.001) < 0.01)
    let kinds = report.findings.map(\.kind)
    #expect(
      kinds.contains(.acknowledgedLate) && kinds.contains(.requestsUnacknowledged) && kinds.contains(.serverSilent))
    #expect(report.findings.first { $0.kind == .serverSilent }?.text.contains("31.0 s") == true)
  }

  @Test("A request that a gap let come late is not called unacknowledged")
  func lateRequest() throws {
    var capture = CaptureBuilder()
    let line = capture.connect(to: 7_777)
    func bytes(_ message: LocalPushMessage) -> [UInt8] { written { message.write(to: &$0) } }
    capture.client(line, bytes(.init(request: 1, .user(.init(identifier: "u", deviceName: "d")))))
    capture.server(line, bytes(.init(acknowledging: 1)))
    capture.lose(line, 50)
    // Proven only by the next message, which comes after the answer.
    capture.client(line, bytes(.init(request: 2, .directory([]))))
    capture.server(line, bytes(.init(acknowledging: 2)))
    capture.milliseconds += 20_000
    capture.client(line, bytes(.init(request: 3, .directory([]))))
    capture.server(line, bytes(.init(acknowledging: 3)))
    capture.finish(line)
    let counts = try #require(try inspected(capture.bytes).localPush)
    #expect((counts.requests, counts.acknowledged, counts.unacknowledged, counts.late) == (3, 3, 0, 0))
  }

  @Test("Saved records have the claims of the recording, and a part of them has none", arguments: seeds(20, of: 200))
  func saved(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    var capture = CaptureBuilder()
    let line = capture.connect(to: 7_777)
    for word in talk.words {
      capture.milliseconds += random.pick([0, 0, 9_000, 40_000])
      if word.isClient { capture.client(line, word.bytes) } else { capture.server(line, word.bytes) }
      if random.happens(oneIn: 12) { capture.lose(line, 20, fromServer: random.happens(oneIn: 2)) }
    }
    if random.happens(oneIn: 2) { capture.finish(line) }
    let direct = try inspected(capture.bytes)
    let lines = try writtenLines(of: capture.bytes, Self.options()).split(separator: "\n").map { Array($0.utf8) }
    let read = try Self.inspected(lines)
    #expect(read.devices == direct.devices && read.localPush == direct.localPush, "seed \(seed)")
    #expect(read.findings.map(\.kind) == direct.findings.map(\.kind), "seed \(seed)")
    // Without acknowledgements nothing is known of any.
    let without = lines.filter { line in
      let text = String(decoding: line, as: UTF8.self)
      return !text.contains(#""kind":"acknowledge""#) && !text.contains(#""command":"acknowledge""#)
    }
    let part = try Self.inspected(without)
    if without.count < lines.count {
      #expect((part.devices?.unacknowledged ?? 0) == 0 && (part.devices?.acknowledged ?? 0) == 0, "seed \(seed)")
      #expect((part.localPush?.unacknowledged ?? 0) == 0 && (part.localPush?.silences ?? 0) == 0, "seed \(seed)")
    }
  }

  private static func inspected(_ lines: [[UInt8]]) throws -> InspectionReport {
    var reader = RecordReader()
    var sink = SharedSink(Inspection())
    for line in lines { reader.scan(line.rawBytes) }
    for line in lines { try reader.read(line.rawBytes, into: &sink) }
    reader.finish(into: &sink)
    return sink.sink.finish()
  }

  // MARK: what is private

  @Test("Nothing private is in redacted records of any format", arguments: seeds(10, of: 100))
  func redacted(seed: UInt64) throws {
    let secret = "Se-CR.et\(seed)"
    let (token, other) = ([UInt8](repeating: 0xab, count: 20) + [1, 2], [UInt8](repeating: 0xcd, count: 20) + [3])
    let user = LocalPushMessage.User(identifier: "9F-\(secret)", deviceName: "Of \(secret)")
    let json = Array(#"{"aps":{"alert":"\#(secret)"},"\#(secret)":{"\#(secret)":["\#(secret)"]}}"#.utf8)
    var devices = MessageTalk(.devices)
    devices.device(.register(.init(device: 7, topic: secret, language: secret)), isClient: true)
    devices.device(.registered(.init(device: 7, topic: secret, token: token)), isClient: false)
    devices.device(.online(.init(apps: [.init(token: token, topic: secret)])), isClient: true)
    for payload in [json, Array(secret.utf8), []] {
      devices.device(
        .deliver(
          .init(
            token: token, topic: secret, sequence: 1, payload: payload, pushType: secret, collapseID: secret, sent: 5)),
        isClient: false)
    }
    devices.device(.acknowledge(token: token, topic: secret, sequence: 1), isClient: true)
    devices.device(.tokenChanged(.init(topic: secret, old: token, new: other)), isClient: false)
    devices.device(.refused(reason: .storage, topic: secret), isClient: false)
    devices.device(.offline(reason: secret), isClient: true)
    var push = MessageTalk(.localPush)
    push.localPush(.init(request: 1, .user(user)), isClient: true)
    for content: LocalPushMessage.Content in [
      .invite(from: user, to: user), .text(secret, from: user, to: user), .callAction(secret, of: user),
      .directory([user, user]), .other(key: 9, json), .other(key: 9, Array(secret.utf8)),
    ] {
      push.localPush(.init(request: 2, content), isClient: false)
    }
    let unknown = Array(#"{"message":"\#(secret)","topic":1}"#.utf8)
    let faulty = written { output in output.write(framed: .bigEndian) { $0.write(unknown.rawBytes) } }
    let redaction = try #require(Redaction(key: [UInt8](repeating: 9, count: 16), keepsAddresses: false))
    for talk in [devices, push] {
      var capture = CaptureBuilder()
      let line = capture.connect(to: 7_777)
      capture.send(talk, on: line)
      if talk.kind == .devices { capture.server(line, faulty + Array(secret.utf8)) }
      let hex = "ababababababab"
      let plain = try outputs(capture.bytes, nil)
      #expect(plain.contains { $0.contains(secret) })
      #expect(talk.kind == .localPush || plain.contains { $0.contains(hex) })
      let redacted = try outputs(capture.bytes, redaction)
      for text in redacted {
        let found = [secret, secret.lowercased(), "abababab", "cdcdcdcd"].filter { text.contains($0) }
        #expect(found.isEmpty, "\(found) in \(text.prefix(2_000))")
        let base64 = String(decoding: written { $0.write(base64: Array(secret.utf8).rawBytes) }, as: UTF8.self)
        #expect(!text.contains(base64.filter { $0 != "=" }.dropLast()))
      }
    }
  }

  private func outputs(_ bytes: [UInt8], _ redaction: Redaction?) throws -> [String] {
    try withTemporaryFile(bytes) { path in
      var texts: [String] = []
      func write(_ make: (@escaping RecordOutput) -> some RecordSink) throws {
        var text: [UInt8] = []
        let sink = make {
          text.append(copying: $0)
          return true
        }
        let shared = SharedSink(sink)
        if let redaction {
          try read(path, Self.options(), RedactedRecords(shared, redaction))
        } else {
          try read(path, Self.options(), shared)
        }
        shared.sink.pause()
        texts.append(String(decoding: text, as: UTF8.self))
      }
      try write { JSONLinesWriter(output: $0) }
      try write { CSVWriter(output: $0) }
      try write { TableWriter(output: $0) }
      return texts
    }
  }

  @Test("A redacted recording has the same messages but for what is private", arguments: seeds(10, of: 100))
  func redactedStructure(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let bytes = MessageTalk.any(&random).capture().bytes
    let redaction = try #require(Redaction(key: [UInt8](repeating: 9, count: 16), keepsAddresses: false))
    let keys = { (text: String) in text.split(separator: "\n").map { $0.matches(of: /"([a-z_]+)":/).map { $0.1 } } }
    let plain = try writtenLines(of: bytes, Self.options())
    let redacted = try writtenLines(of: bytes, Self.options(), redaction)
    #expect(keys(plain) == keys(redacted))
  }

  // MARK: others

  @Test("What is no message is read as before", arguments: seeds(20, of: 200))
  func others(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let bodies = [
      #"{"message":"offline"}"#, #"{"message":"refused","reason":"storage"}"#, #"{"jsonrpc":"2.0"}"#, "{}",
    ]
    let body = Array(random.pick(bodies).utf8)
    var capture = CaptureBuilder()
    let line = capture.connect(to: 7_777)
    capture.client(line, written { output in output.write(framed: .bigEndian) { $0.write(body.rawBytes) } })
    capture.finish(line)
    let seen = try capture.dissected()
    #expect(seen.messages.isEmpty && seen.connections.first?.messages == nil)
    #expect(seen.connections.first?.otherProtocol == nil)
  }

  @Test("Too little memory gives up bytes and says so")
  func memory() throws {
    var random = SeededGenerator(seed: 3)
    let talk = MessageTalk.devices(&random, notifications: 30)
    let bytes = talk.capture(size: 50).bytes
    var hasGivenUp = false
    for memory in [64, 500, 700, 1_000, 1_400] {
      var options = Self.options(blockLength: 200)
      options.maximumMemory = memory
      let seen = try Self.read(bytes, options)
      let isGivenUp = seen.gaps.contains { $0.reason == .givenUp }
      if isGivenUp { #expect(seen.connections.first?.limits.contains(.memory) == true, "\(memory)") }
      hasGivenUp = hasGivenUp || isGivenUp
      try Self.expectPart(seen, of: talk, "\(memory) B of memory")
    }
    #expect(hasGivenUp)
  }

  @Test("The selected records are a filter of all", arguments: seeds(10, of: 100))
  func selected(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let talk = MessageTalk.any(&random)
    let bytes = talk.capture().bytes
    let all = try Self.read(bytes).messages
    var selection = RecordSelection()
    switch random.number(0...3) {
    case 0: selection.types = [talk.kind == .devices ? .device : .localPush]
    case 1: selection.identifiers = [11]
    case 2:
      let token = all.lazy.flatMap(\.tokens).first
      selection.tokens = [token.flatMap { RecordSelection.TokenPrefix(String($0.prefix(5))) }].compactMap { $0 }
      if selection.tokens.isEmpty { selection.identifiers = [12] }
    default: selection.topics = [MessageTalk.topic]
    }
    let shared = SharedSink(Collector())
    try withTemporaryFile(bytes) { try read($0, Self.options(), SelectedRecords(shared, selection)) }
    let expected = all.filter { Self.fits($0, selection) }
    #expect(shared.sink.messages == expected, "seed \(seed)")
    #expect(shared.sink.summaries.first?.messages == expected.count)
  }

  private static func fits(_ record: MessageRecord, _ selection: RecordSelection) -> Bool {
    if case .localPush(let push) = record {
      guard selection.tokens.isEmpty, selection.topics.isEmpty else { return false }
      return selection.identifiers.isEmpty || selection.identifiers.contains(push.message.identifier)
    }
    guard case .device(let device) = record, selection.identifiers.isEmpty else { return false }
    if !selection.topics.isEmpty { return device.message.topics.contains(MessageTalk.topic) }
    guard let prefix = selection.tokens.first else { return true }
    return record.tokens.contains { $0.hasPrefix(prefix.text) }
  }
}

extension MessageRecord {
  var message: ObservedMessage {
    switch self {
    case .device(let record): .device(record.message)
    case .localPush(let record): .localPush(record.message)
    }
  }

  /// Tokens in hexadecimal digits.
  var tokens: [String] {
    guard case .device(let record) = self else { return [] }
    return record.message.tokens.map { token in
      String(decoding: written { $0.write(hex: token.rawBytes) }, as: UTF8.self)
    }
  }
}

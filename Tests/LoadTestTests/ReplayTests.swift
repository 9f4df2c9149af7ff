import BinaryProtocol
import Bytes
import GatewaySimulator
import Measurement
import TestSupport
import Testing

@testable import LoadTest

/// Makes replays of records that are written here.
enum Records {
  static func replay(_ lines: [String], limit: Int = .max) throws -> Replay {
    var maker = try ReplayMaker(limit: limit, directory: "/tmp")
    for line in lines { try maker.add(record: Array(line.utf8).rawBytes) }
    return try maker.finish()
  }

  /// A time as records have it, so many milliseconds after some moment.
  static func time(_ milliseconds: Int) -> String {
    let digits = String(1_000 + milliseconds % 1_000).dropFirst()
    let seconds = String(100 + milliseconds / 1_000 % 60).dropFirst()
    return "2015-09-16T01:\(String(100 + milliseconds / 60_000).dropFirst()):\(seconds).\(digits)Z"
  }

  /// A notification that is told from others by its expiration.
  static func notification(_ number: Int, at milliseconds: Int? = nil, connection: Int = 1) -> String {
    let time = milliseconds.map { #""time":"\#(self.time($0))","# } ?? ""
    return
      #"{"type":"notification","connection":\#(connection),\#(time)"command":2,"identifier":9,"expiration":\#(number),"token":"\#(String(repeating: "ab", count: 32))","payload_length":2,"payload":{}}"#
  }

  /// The order in which they are sent.
  static func order(_ replay: Replay) throws -> [UInt32?] {
    try Workload(WorkloadPlan(), replay: replay).read(0..<UInt64(replay.count)).map(\.expiration)
  }
}

@Suite("Replays of records")
struct ReplayTests {
  /// The one notification of a record, as bytes, with identifier 1.
  private func bytes(_ members: String) throws -> [UInt8] {
    let replay = try Records.replay([#"{"type":"notification",\#(members)}"#])
    return try Workload(WorkloadPlan(), replay: replay).bytes(0)
  }

  @Test("Frames are as recorded, byte for byte but for the identifier")
  func frames() throws {
    #expect(
      try bytes(#""command":0,"token":"0a0b","payload_length":4,"payload":"hi""#)
        == [0, 0, 2, 10, 11, 0, 4] + Array(#""hi""#.utf8))
    #expect(
      try bytes(#""command":1,"identifier":77,"expiration":258,"token":"","payload_length":0"#)
        == [1, 0, 0, 0, 1, 0, 0, 1, 2, 0, 0, 0, 0])
    #expect(
      try bytes(#""command":2,"identifier":7,"priority":5,"token":"0A0b","payload_length":3,"payload":123"#)
        == [2, 0, 0, 0, 22, 1, 0, 2, 10, 11, 2, 0, 3] + Array("123".utf8) + [3, 0, 4, 0, 0, 0, 1, 5, 0, 1, 5])
    // Nothing is added that was not there.
    #expect(try bytes(#""command":2"#) == [2, 0, 0, 0, 0])
    #expect(try bytes(#""command":2,"token":"01""#) == [2, 0, 0, 0, 4, 1, 0, 1, 1])
    // Unknown, repeated and misplaced items; of those with one id the first that fits counts.
    #expect(
      try bytes(
        #""command":2,"identifier":7,"token":"01","items":[[9,"aabb"],[1,"02"],[3,"00"]],"item_order":[3,9,1,3,1]"#)
        == [2, 0, 0, 0, 24, 3, 0, 4, 0, 0, 0, 1, 9, 0, 2, 0xaa, 0xbb, 1, 0, 1, 1, 3, 0, 1, 0, 1, 0, 1, 2])
    #expect(
      try bytes(#""command":2,"priority":10,"items":[[0,""],[200,"01"]]"#)
        == [2, 0, 0, 0, 11, 0, 0, 0, 5, 0, 1, 10, 200, 0, 1, 1])
  }

  @Test("Payloads keep their length: white space that a record does not have is put behind them")
  func payloads() throws {
    func payload(_ members: String) throws -> String {
      String(decoding: try bytes(#""command":0,"token":"",\#(members)"#).dropFirst(5), as: UTF8.self)
    }
    #expect(try payload(#""payload_length":9,"payload":{"a":1}"#) == #"{"a":1}  "#)
    // Written again with white space by another program.
    #expect(
      try payload(#""payload_length":15,"payload": { "a" : [ 1, 2 ], "b\"": "x y" }"#) == #"{"a":[1,2],"b\"":"x y"}"#)
    #expect(try payload(#""payload":null"#) == "null")
    #expect(
      try bytes(#""command":0,"token":"","payload_length":3,"payload_base64":"AP8K""#) == [0, 0, 0, 0, 3, 0, 255, 10])
    #expect(try bytes(#""command":0,"token":"","payload_length":1,"payload_base64":"/w==""#) == [0, 0, 0, 0, 1, 255])
    #expect(
      try bytes(#""command":0,"token":"","payload_length":2,"payload_base64":"+/8=""#) == [0, 0, 0, 0, 2, 0xfb, 0xff])
  }

  @Test(
    "What cannot be sent is refused with its reason",
    arguments: [
      (#""token":"00""#, "command"), (#""command":3"#, "'command' exceeds 2"), (#""command":"2""#, "whole number"),
      (#""command":0,"token":"0""#, "'token' is not hexadecimal"),
      (#""command":0,"token":"0x""#, "'token' is not hexadecimal"),
      (#""command":0,"token":7"#, "wrong type of value for 'token'"),
      (#""command":0,"token":"\#(String(repeating: "00", count: 65_536))""#, "'token' exceeds 65535"),
      (#""command":0,"payload_length":3"#, "there is no payload"),
      (#""command":0,"payload_length":65536"#, "exceeds 65535"),
      (#""command":0,"payload":"\#(String(repeating: "x", count: 65_536))""#, "'payload' exceeds 65535"),
      (#""command":0,"payload_base64":"AA""#, "not Base64"), (#""command":0,"payload_base64":"A=AA""#, "not Base64"),
      (#""command":0,"payload_base64":"AA==AAAA""#, "not Base64"),
      (#""command":0,"payload_base64":"A!AA""#, "not Base64"),
      (#""command":2,"priority":256"#, "'priority' exceeds 255"),
      (#""command":2,"expiration":4294967296"#, "'expiration' exceeds"),
      (#""command":2,"identifier":-1"#, "whole number"), (#""command":2,"time":"yesterday""#, "invalid 'time'"),
      (#""command":2,"time":1"#, "wrong type of value for 'time'"),
      (#""command":2,"items":[[1]]"#, "'items' is not a list"),
      (#""command":2,"items":[["00",1]]"#, "'items' is not a list"),
      (#""command":2,"items":{"a":1}"#, "'items' is not a list"),
      (#""command":2,"items":"x""#, "wrong type of value for 'items'"),
      (#""command":2,"item_order":[256]"#, "'item_order' is not a list"),
      (#""command":2,"item_order":[[true]]"#, "'item_order' is not a list"), (#""command":2"#, "not a JSON object"),
    ])
  func refused(members: String, reason: String) {
    let line = #"{"type":"notification",\#(members)"# + (reason == "not a JSON object" ? "" : "}")
    do {
      _ = try Records.replay([line])
      Issue.record("\(members.prefix(60)) is taken")
    } catch ReplayMaker.Failure.record(let error) {
      #expect(error.description.contains(reason))
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test("Whoever writes a recorded notification is told that it has no token, so that its refusal is expected")
  func faults() throws {
    let replay = try Records.replay([
      Records.notification(1), #"{"type":"notification","command":2,"identifier":1,"token":"","payload_length":0}"#,
      #"{"type":"notification","command":1,"token":"","payload_length":0}"#, Records.notification(2),
    ])
    let workload = try Workload(WorkloadPlan(), replay: replay)
    var output = ByteWriter()
    let faults = (0..<4 as Range<UInt64>).map { workload.encode($0, into: &output) }
    #expect(faults == [nil, .missingToken, .missingToken, nil])
  }

  @Test("Frames whose items did not fit are counted and not sent again as others")
  func malformed() throws {
    let whole = Records.notification(1)
    let cut = whole.dropLast() + #","problem":"item 5 of length 4 overruns its frame at offset 79"}"#
    let replay = try Records.replay([whole, String(cut), Records.notification(2)])
    #expect(replay.count == 2 && replay.skippedRecords == 1)
  }

  @Test("Other records are counted and not looked at; nothing, or more than the limit, is refused")
  func others() throws {
    let lines = [
      #"{"type":"capture","schema":1}"#, Records.notification(1), "", #"{"type":"gap","time":"?","token":7}"#,
      Records.notification(2), #"{"type":"summary"}"#, "  ",
    ]
    let replay = try Records.replay(lines, limit: 2)
    #expect(replay.count == 2 && replay.skippedRecords == 3 && replay.length == .zero)
    #expect(throws: ReplayMaker.Failure.self) { try Records.replay(lines, limit: 1) }
    #expect(throws: ReplayMaker.Failure.self) { try Records.replay([#"{"type":"summary"}"#]) }
    #expect(throws: ReplayMaker.Failure.self) { try Records.replay([#"{"type":"capture","schema":2}"#]) }
    do {
      _ = try ReplayMaker(limit: 1, directory: "/nowhere")
      Issue.record("a file is made nowhere")
    } catch { #expect(error.description.contains("No such file")) }
  }

  @Test("Connections are joined by time; in each the order stays; without a time one follows at once")
  func order() throws {
    let replay = try Records.replay([
      Records.notification(0, at: 5_000), Records.notification(1, at: 7_000, connection: 2),
      Records.notification(2, at: 6_000), Records.notification(3),
      // Recorded as earlier than what its connection wrote before it.
      Records.notification(4, at: 1_000, connection: 2), Records.notification(5, at: 6_500),
    ])
    #expect(try Records.order(replay) == [0, 2, 3, 5, 1, 4])
    #expect((0..<6).map { replay.time(of: $0) / 1_000_000 } == [0, 1_000, 1_000, 1_500, 2_000, 2_000])
    // Behind a capture record connections are others.
    let two = try Records.replay([
      Records.notification(0, at: 5_000), #"{"type":"capture","schema":1}"#, Records.notification(1, at: 4_000),
    ])
    #expect(try Records.order(two) == [1, 0])
  }
}

@Suite("Schedules of recorded times")
struct RecordedScheduleTests {
  @Test(
    "Due times are the recorded ones by the factor, and counting agrees with them",
    arguments: 1...20 as ClosedRange<UInt64>)
  func pure(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var (time, times) = (0, [Int]())
    for _ in 0..<random.number(1...300) {
      times.append(time)
      time += random.pick([0, 0, 1, random.number(0...2_000)])
    }
    let replay = try Records.replay(times.enumerated().map { Records.notification($0, at: $1) })
    let speed = random.pick([0.5, 1, 10, 3.7])
    let step = random.number(1...4)
    let first = random.number(0...step - 1)
    let schedule = RecordedSchedule(replay, speed: speed, first: first, step: step)
    let mine = stride(from: first, to: times.count, by: step).map { Double(times[$0]) / 1_000 / speed }
    #expect(schedule.count == mine.count)
    for (index, due) in mine.enumerated() { #expect(abs((schedule.time(of: index) ?? -1) - due) < 1e-9) }
    #expect(schedule.time(of: mine.count) == nil && schedule.time(of: -1) == nil)
    for _ in 0..<100 {
      let now = random.pick([Double(random.number(-10...time + 10)) / 1_000 / speed, -1, 1e12])
      let count = (0..<mine.count).count { schedule.time(of: $0).map { $0 <= now } ?? false }
      #expect(schedule.count(at: now) == count)
      #expect(schedule.count(at: now, known: random.number(0...count)) == count)
    }
    // A pacer tells of each once, and of all at last.
    var pacer = Pacer(schedule, limit: random.pick([.max, mine.count / 2]))
    var (told, now) = (0, 0.0)
    while let next = pacer.dueTime() {
      #expect(next == schedule.time(of: told) && pacer.time(of: told) == next)
      now = max(now, next + random.pick([0, Double(random.number(0...500)) / 1_000]))
      let due = pacer.due(at: now)
      #expect(due >= 1)
      told += due
      #expect(told == min(schedule.count(at: now), told))
    }
    #expect(pacer.due(at: 1e15) == 0)
  }

  @Test("Loops and segments share a trace: together they send each notification once, each when it is due")
  func shares() throws {
    let replay = try Records.replay((0..<100).map { Records.notification($0, at: 10 * $0) })
    var seen: [Int: Double] = [:]
    for segment in 0..<2 {
      for part in 0..<3 {
        var plan = LoadPlan()
        (plan.workload.segment, plan.workload.segments) = (segment, 2)
        (plan.replay, plan.pace) = (replay, .recorded(replay, speed: 2))
        let workload = try Workload(plan.workload, replay: replay)
        let pacer = try #require(plan.pacer(plan.shares(of: 3)[part], limit: .max))
        var index = 0
        while let due = pacer.dueTime(ofNext: index) {
          // As `LoopRunner.globalIndex`.
          let number = Int(workload.number(of: index * 3 + part))
          #expect(seen.updateValue(due, forKey: number) == nil)
          index += 1
        }
      }
    }
    #expect(seen.count == 100)
    for (number, due) in seen { #expect(abs(due - Double(number) * 0.005) < 1e-9) }
  }
}

@Suite("Replays")
struct ReplayRunTests {
  @Test("Books of a replay balance, whatever is refused", arguments: [nil, 4.0])
  func books(speed: Double?) async throws {
    let simulation = try await LoadSimulation {
      $0.behavior.rejections = [.init(.every(70), status: .processingError)]
    }
    var lines = (0..<1_000).map { Records.notification($0, at: 2 * $0, connection: $0 % 3) }
    // Recorded markers: they are refused, and known to be.
    for number in [100, 500] {
      lines.insert(#"{"type":"notification","command":2,"identifier":1,"token":"","payload_length":0}"#, at: number)
    }
    let replay = try Records.replay(lines)
    let plan = simulation.plan {
      $0.replay = replay
      $0.count = replay.count
      $0.pace = speed.map { .recorded(replay, speed: $0) } ?? .unlimited
      $0.connections.count = 3
      $0.threads = 2
    }
    let outcome = try await simulation.runner(plan).run()
    expectBalance(outcome, await simulation.books())
    #expect(outcome.books.generated == 1_002)
    #expect(outcome.books.rejected >= 2 && outcome.books.accepted + outcome.books.rejected == 1_002)
    let result = outcome.result(Environment())
    #expect(result.replay?.notifications == 1_002)
    // Four times as fast as recorded, and no faster.
    if speed != nil { #expect(result.measuredS >= 1.998 / 4) }
  }
}

import Foundation
import GatewaySimulator
import TestSupport
import Testing

@Suite("Event log", .waiting)
struct EventLogTests {
  private func event(_ name: String, time: Int64 = 0, _ change: (inout EventLog.Event) -> Void = { _ in })
    -> EventLog.Event
  {
    var event = EventLog.Event(name, time: time)
    change(&event)
    return event
  }

  private func lines(_ path: String) throws -> [String] {
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
    #expect(text.isEmpty || text.utf8.last == UInt8(ascii: "\n"))
    return text.utf8.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
  }

  private func object(_ line: String) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
  }

  private func withLog(maximumWaitingBytes: Int = 16 << 20, _ body: (EventLog, String) throws -> Void) throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("log").path
      try body(try EventLog(path: path, maximumWaitingBytes: maximumWaitingBytes), path)
    }
  }

  // MARK: lines

  @Test("All fields in one line") func allFieldsInOneLine() throws {
    try withLog { log, path in
      log.write(
        event("rejected", time: 1_442_365_323_123_456_789) {
          $0.client = "127.0.0.1:50000"
          $0.topic = "com.example.app"
          $0.connection = 7
          $0.status = 8
          $0.identifier = .max
          $0.notification = 41
          $0.accepted = 41
          $0.discarded = 3
          $0.reason = "token"
          $0.tls = "TLSv1.2"
          $0.suite = "ECDHE-ECDSA-AES128-GCM-SHA256"
          $0.resumed = false
        })
      log.write(event("accepted"))
      log.write(.started(at: 0))
      log.close()
      try #expect(
        lines(path) == [
          #"{"time":"2015-09-16T01:02:03.123456789Z","event":"rejected","client":"127.0.0.1:50000","#
            + #""topic":"com.example.app","connection":7,"status":8,"identifier":4294967295,"notification":41,"#
            + #""accepted":41,"discarded":3,"reason":"token","tls":"TLSv1.2","#
            + #""suite":"ECDHE-ECDSA-AES128-GCM-SHA256","resumed":false}"#,
          #"{"time":"1970-01-01T00:00:00.000000000Z","event":"accepted"}"#,
          #"{"time":"1970-01-01T00:00:00.000000000Z","event":"started","schema":1}"#,
        ])
      #expect(log.failure == nil && log.droppedLines == 0)
    }
  }

  /// Whatever stands in a certificate comes back from the line as it was.
  @Test("Text of strangers comes back") func textOfStrangersComesBack() throws {
    // No U+FEFF: Foundation's reader loses it.
    let pieces =
      ["\"", "\\", "\n", "\r", "\t", "\0", "\u{1f}", "\u{7f}", "/", "{", "}", "é", "\u{2028}"]
      + ["\u{1F4F1}", "\u{10FFFF}", "\u{300}", "n", "u0041", "</script>"]
    var random = SeededGenerator(seed: 11)
    let topics = (0..<3_000).map { _ in
      (0..<Int.random(in: 0...10, using: &random)).map { _ in
        pieces[Int.random(in: 0..<pieces.count, using: &random)]
      }.joined()
    }
    try withLog { log, path in
      for topic in topics { log.write(event("accepted") { $0.topic = topic }) }
      log.close()
      let lines = try lines(path)
      #expect(lines.count == topics.count)
      for (line, topic) in zip(lines, topics) {
        let read = try #require(try object(line)["topic"] as? String)
        #expect(Array(read.unicodeScalars) == Array(topic.unicodeScalars))
      }
    }
  }

  @Test("Times are those of the calendar") func timesAreThoseOfTheCalendar() throws {
    let formatter = ISO8601DateFormatter()
    formatter.timeZone = TimeZone(identifier: "UTC")
    var random = SeededGenerator(seed: 5)
    let times: [Int64] =
      [0, -1, 1, .max, .min, 951_782_400_000_000_000, 951_868_799_999_999_999, -62_135_596_800]
      + (0..<2_000).map { _ in Int64.random(in: .min ... .max, using: &random) }
    try withLog { log, path in
      for time in times { log.write(event("a", time: time)) }
      log.close()
      for (line, time) in zip(try lines(path), times) {
        let second = time / 1_000_000_000 - (time % 1_000_000_000 < 0 ? 1 : 0)
        let fraction = String(time &- second &* 1_000_000_000)
        let date = formatter.string(from: Date(timeIntervalSince1970: TimeInterval(second))).dropLast()
        let text = "\(date)." + String(repeating: "0", count: 9 - fraction.count) + fraction + "Z"
        let read = try object(line)["time"] as? String
        #expect(read == text)
      }
    }
  }

  // MARK: writing

  @Test("Lines go to the end of a file that anybody may read") func linesGoToTheEndOfAFileThatAnybodyMayRead() throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("log").path
      for name in ["a", "b"] {
        let log = try EventLog(path: path)
        log.write(event(name))
        log.close()
        log.close()
      }
      let names = try lines(path).map { try object($0)["event"] as? String }
      #expect(names == ["a", "b"])
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode.map { $0 & 0o600 } == 0o600 && mode.map { $0 & 0o133 } == 0)
    }
  }

  @Test("A line is there soon") func aLineIsThereSoon() throws {
    try withLog { log, path in
      log.write(event("a"))
      let deadline = Date(timeIntervalSinceNow: 60)
      while try lines(path).isEmpty && Date() < deadline { Thread.sleep(forTimeInterval: 0.02) }
      try #expect(lines(path).count == 1)
      log.close()
    }
  }

  @Test("Nothing is lost when it is let go") func nothingIsLostWhenItIsLetGo() throws {
    try withTemporaryFolder { folder in
      let path = folder.appendingPathComponent("log").path
      do {
        let log = try EventLog(path: path)
        log.write(event("a"))
      }
      try #expect(lines(path).count == 1)
    }
  }

  @Test("Lines of many threads stay whole") func linesOfManyThreadsStayWhole() throws {
    let (writers, each) = (8, 5_000)
    try withLog { log, path in
      DispatchQueue.concurrentPerform(iterations: writers) { writer in
        for number in 0..<each {
          log.write(
            event("a") {
              $0.connection = writer
              $0.notification = number
              $0.topic = String(repeating: "x", count: number % 200)
            })
        }
      }
      log.close()
      var next = [Int](repeating: 0, count: writers)
      for line in try lines(path) {
        let object = try object(line)
        let writer = try #require(object["connection"] as? Int)
        #expect(object["notification"] as? Int == next[writer])
        next[writer] += 1
      }
      #expect(next == [Int](repeating: each, count: writers))
      #expect(log.droppedLines == 0)
    }
  }

  // MARK: when it cannot be written

  @Test("What cannot be opened", arguments: [("/nowhere/log", "No such file or directory"), ("/", "Is a directory")])
  func whatCannotBeOpened(_ path: String, _ reason: String) {
    let error = #expect(throws: EventLog.OpenError.self) { _ = try EventLog(path: path) }
    #expect(error?.description == "\(path): \(reason)")
  }

  @Test("A full disk is reported") func aFullDiskIsReported() throws {
    let log = try EventLog(path: "/dev/full")
    for _ in 0..<10 { log.write(event("a")) }
    log.close()
    log.write(event("a"))
    #expect(log.failure == "/dev/full: No space left on device")
    #expect(log.droppedLines == 11)
  }

  @Test("A reader that goes away is reported") func aReaderThatGoesAwayIsReported() async throws {
    try await withPipe { path, reader in
      let log = try EventLog(path: path)
      close(reader)
      // A process that another test starts may have the reader for a moment.
      for _ in 0..<6_000 where log.failure == nil {
        log.write(event("a"))
        try await Task.sleep(for: .milliseconds(10))
      }
      log.close()
      #expect(log.failure == "\(path): Broken pipe")
    }
  }

  /// Nobody reads the pipe, so that lines wait until there is no room; then somebody does.
  @Test("What has no room is dropped and counted") func whatHasNoRoomIsDroppedAndCounted() async throws {
    try await withPipe { path, reader in
      let log = try EventLog(path: path, maximumWaitingBytes: 200_000)
      let count = 20_000
      for number in 0..<count { log.write(event("a") { $0.notification = number }) }
      #expect(log.droppedLines > 0)
      // On a thread of its own as the test is: it blocks until the log has closed the pipe.
      let (begun, begins) = AsyncStream.makeStream(of: Void.self)
      async let reading = {
        begins.finish()
        return try FileHandle(fileDescriptor: reader, closeOnDealloc: true).readToEnd() ?? Data()
      }()
      // The log waits for its reader for some seconds only.
      for await _ in begun {}
      log.close()
      let received = try await reading
      var (written, dropped, bytes) = (0, 0, 0)
      for line in received.split(separator: UInt8(ascii: "\n")) {
        let object = try object(String(decoding: line, as: UTF8.self))
        if object["event"] as? String == "dropped" {
          dropped += try #require(object["count"] as? Int)
        } else {
          written += 1
          bytes += line.count + 1
        }
      }
      // What the pipe holds was written before anybody read.
      #expect(bytes <= 200_000 + 65_536)
      #expect(dropped > 0 && dropped == log.droppedLines)
      #expect(written + dropped == count)
      #expect(log.failure == nil)
    }
  }

  @Test("Closing does not wait forever for a reader, but long enough", .timeLimit(.minutes(5)))
  func closingDoesNotWaitForeverForAReader() async throws {
    try await withPipe { path, reader in
      let log = try EventLog(path: path)
      for _ in 0..<10_000 { log.write(event("a")) }
      let start = ContinuousClock.now
      log.close()
      // The waits are of 100 ms, and the first of them may have begun before.
      #expect(ContinuousClock.now - start >= .milliseconds(4_900))
      #expect(log.failure == "\(path): the pipe has no reader")
      #expect(log.droppedLines > 0)
      close(reader)
    }
  }

  /// A named pipe and the end that reads it.
  private func withPipe(_ body: (String, Int32) async throws -> Void) async throws {
    try await inTemporaryFolder { folder in
      let path = folder.appendingPathComponent("pipe").path
      try #require(unsafe mkfifo(path, 0o600) == 0)
      // Not blocking while it is opened: there is no writer yet.
      let reader = unsafe open(path, O_RDONLY | O_NONBLOCK)
      try #require(reader >= 0)
      _ = fcntl(reader, F_SETFL, 0)
      try await body(path, reader)
    }
  }
}

import BinaryProtocol
import PacketCapture
import PushModel
import TLSDecryption
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// Gives connections the subject of a certificate, as if they had been TLS.
private struct CertificateSink: RecordSink {
  let collector: StoryCollector
  let subjects: [String?]

  var isOpen: Bool { collector.isOpen }
  func receive(_ record: CaptureRecord) { collector.receive(record) }
  func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    collector.receive(fields, frame, at: place, index: index)
  }
  func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    collector.receive(malformed: problem, fields, frame, at: place, index: index)
  }
  func receive(_ record: ErrorResponseRecord) { collector.receive(record) }
  func receive(_ record: FateRecord) { collector.receive(record) }
  func receive(_ record: borrowing FeedbackRecord) { collector.receive(record) }
  func receive(_ record: GapRecord) { collector.receive(record) }
  func receive(_ record: MalformedRecord) { collector.receive(record) }
  func receive(_ record: SummaryRecord) { collector.receive(record) }
  func receive(_ outcome: CaptureOutcome) { collector.receive(outcome) }
  func receive(_ record: ConnectionRecord) {
    var record = record
    if let subject = subjects[record.connection - 1] {
      record.tls = TLSSummary()
      record.tls?.clientSubject = subject
    }
    collector.receive(record)
  }
}

@Suite("Topics of stories")
struct TopicTests {
  /// The number of sendings of each story, when one content is sent on a connection for each subject.
  private func sent(_ subjects: [String?], topic: String? = nil) throws -> (stories: [Int], tokens: [Int]) {
    var capture = CaptureBuilder()
    for number in subjects.indices {
      let line = capture.connect(from: UInt16(40_001 + number))
      capture.client(line, push(UInt32(number), device: 1))
    }
    var options = StoryCollector.Options()
    options.selection.topics = Set([topic].compactMap { $0 })
    let book = StoryBook()
    return try withTemporaryFile(capture.bytes) { path in
      let sink = CertificateSink(collector: StoryCollector(options, into: book), subjects: subjects)
      let shared = SharedSink(sink)
      var dissection = Dissection(into: shared, options: DissectionOptions())
      _ = try dissection.read(try .open(path, options: DissectionOptions().capture), source: path) { _ in true }
      dissection.finish()
      try sink.collector.write()
      return (book.stories.map(\.sendings.count), book.tokens.map(\.sent))
    }
  }

  @Test("One token and payload to several topics are several notifications and tokens") func several() throws {
    let (a, b) = ("UID=com.example.a,CN=A", "UID=com.example.b,CN=B")
    #expect(try sent([a, b, a]) == ([2, 1], [2, 1]))
    // The topic of the third is not known.
    #expect(try sent([a, b, nil]) == ([1, 1, 1], [1, 1, 1]))
  }

  @Test("A connection without a certificate is of the only topic that there is") func only() throws {
    let subject = "UID=com.example.a,CN=A"
    #expect(try sent([nil, subject, nil]) == ([3], [3]))
    #expect(try sent([nil, "CN=no topic", nil]) == ([3], [3]))
  }

  @Test("A topic selects stories that were sent on one of its connections") func selection() throws {
    let (a, b) = ("UID=com.example.a,CN=A", "UID=com.example.b,CN=B")
    #expect(try sent([a, b, a], topic: "com.example.a") == ([2], [2]))
    #expect(try sent([a, b, a], topic: "com.example.c") == ([], []))
    #expect(try sent([nil, nil], topic: "com.example.a") == ([], []))
  }
}

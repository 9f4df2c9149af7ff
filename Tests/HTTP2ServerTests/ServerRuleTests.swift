import Bytes
import HTTP2
import HTTP2Server
import Testing

/// What RFC 9113 prescribes when a client breaks a rule.
@Suite("Rules of an HTTP/2 server")
struct ServerRuleTests {
  /// A client's mistake, and the error code of the GOAWAY or RST_STREAM that answers it.
  struct Mistake: Sendable, CustomTestStringConvertible {
    var name: String
    var code: ErrorCode
    /// Ends the stream and not the connection.
    var isOfStream = false
    var make: @Sendable (Pair) -> Void
    var testDescription: String { name }

    init(_ name: String, _ code: ErrorCode, stream: Bool = false, _ make: @escaping @Sendable (Pair) -> Void) {
      (self.name, self.code, isOfStream, self.make) = (name, code, stream, make)
    }
  }

  static func frame(
    _ type: FrameType, _ flags: FrameFlags = [], _ stream: UInt32 = 0, _ payload: [UInt8] = []
  ) -> @Sendable (Pair) -> Void {
    { pair in pair.send { $0.writeFrame(type, flags: flags, stream: stream, payload.rawBytes) } }
  }

  static let mistakes: [Mistake] = [
    Mistake("DATA on stream 0 (6.1)", .protocolError, frame(.data, .endStream, 0, [1])),
    Mistake("DATA on an idle stream (5.1)", .protocolError, frame(.data, .endStream, 5, [1])),
    Mistake("padding as long as DATA (6.1)", .protocolError) {
      $0.open(1)
      frame(.data, [.padded, .endStream], 1, [9, 1])($0)
    },
    Mistake("HEADERS on stream 0 (6.2)", .protocolError, frame(.headers, .endHeaders, 0, [0x82])),
    Mistake("HEADERS on an even stream (5.1.1)", .protocolError, frame(.headers, .endHeaders, 2, [0x82])),
    Mistake("a lower stream (5.1.1)", .protocolError) {
      $0.request(5)
      $0.open(3)
    },
    Mistake("PRIORITY on stream 0 (6.3)", .protocolError, frame(.priority, [], 0, [0, 0, 0, 0, 1])),
    Mistake("RST_STREAM on stream 0 (6.4)", .protocolError, frame(.reset, [], 0, [0, 0, 0, 8])),
    Mistake("RST_STREAM on an idle stream (6.4)", .protocolError, frame(.reset, [], 7, [0, 0, 0, 8])),
    Mistake("RST_STREAM of 3 bytes (6.4)", .frameSizeError) {
      $0.open(1)
      frame(.reset, [], 1, [0, 0, 8])($0)
    },
    Mistake("SETTINGS on a stream (6.5)", .protocolError, frame(.settings, [], 1)),
    Mistake("SETTINGS of 5 bytes (6.5)", .frameSizeError, frame(.settings, [], 0, [0, 1, 0, 0, 0])),
    Mistake("an acknowledgement with a payload (6.5)", .frameSizeError) {
      frame(.settings, .acknowledgement, 0, [0, 1, 0, 0, 0, 0])($0)
    },
    Mistake("ENABLE_PUSH of 2 (6.5.2)", .protocolError, frame(.settings, [], 0, [0, 2, 0, 0, 0, 2])),
    Mistake("INITIAL_WINDOW_SIZE of 2³¹ (6.5.2)", .flowControlError, frame(.settings, [], 0, [0, 4, 0x80, 0, 0, 0])),
    Mistake("MAX_FRAME_SIZE of 100 (6.5.2)", .protocolError, frame(.settings, [], 0, [0, 5, 0, 0, 0, 100])),
    Mistake("PUSH_PROMISE (8.4)", .protocolError, frame(.pushPromise, .endHeaders, 1, [0, 0, 0, 2, 0x82])),
    Mistake("PING on a stream (6.7)", .protocolError, frame(.ping, [], 1, [UInt8](repeating: 0, count: 8))),
    Mistake("PING of 7 bytes (6.7)", .frameSizeError, frame(.ping, [], 0, [UInt8](repeating: 0, count: 7))),
    Mistake("GOAWAY on a stream (6.8)", .protocolError, frame(.goAway, [], 1, [UInt8](repeating: 0, count: 8))),
    Mistake("WINDOW_UPDATE of 0 on the connection (6.9)", .protocolError, frame(.windowUpdate, [], 0, [0, 0, 0, 0])),
    Mistake("WINDOW_UPDATE of 0 on a stream (6.9)", .protocolError, stream: true) {
      $0.open(1)
      frame(.windowUpdate, [], 1, [0, 0, 0, 0])($0)
    },
    Mistake("WINDOW_UPDATE on an idle stream (5.1)", .protocolError, frame(.windowUpdate, [], 9, [0, 0, 0, 1])),
    Mistake("a window above 2³¹−1 (6.9.1)", .flowControlError, frame(.windowUpdate, [], 0, [0x7f, 0xff, 0xff, 0xff])),
    Mistake("a stream's window above 2³¹−1 (6.9.1)", .flowControlError, stream: true) {
      $0.open(1)
      frame(.windowUpdate, [], 1, [0x7f, 0xff, 0xff, 0xff])($0)
    },
    Mistake("CONTINUATION without a block (6.10)", .protocolError, frame(.continuation, .endHeaders, 1, [0x82])),
    Mistake("another frame within a block (6.10)", .protocolError) {
      frame(.headers, [], 1, [0x82])($0)
      frame(.ping, [], 0, [UInt8](repeating: 0, count: 8))($0)
    },
    Mistake("CONTINUATION of another stream (6.10)", .protocolError) {
      frame(.headers, [], 1, [0x82])($0)
      frame(.continuation, .endHeaders, 3, [0x82])($0)
    },
    Mistake("a frame of 16,385 bytes (4.2)", .frameSizeError) {
      $0.open(1)
      frame(.data, [], 1, [UInt8](repeating: 0, count: 16_385))($0)
    },
    Mistake("a block that cannot be decoded (4.3)", .compressionError, frame(.headers, .endHeaders, 1, [0xff])),
    Mistake("DATA after the end (5.1)", .streamClosed, stream: true) {
      $0.answers = false
      $0.request(1)
      $0.data(1, [1])
    },
    Mistake("DATA after the answer (5.1)", .streamClosed, stream: true) {
      $0.request(1)
      $0.data(1, [1])
    },
    Mistake("HEADERS after the end (5.1)", .streamClosed, stream: true) {
      $0.answers = false
      $0.request(1)
      $0.open(1)
    },
    Mistake("trailers without END_STREAM (8.1)", .protocolError, stream: true) {
      $0.open(1)
      $0.open(1)
    },
    Mistake("content-length that is not true (8.1.1)", .protocolError, stream: true) {
      $0.open(1, "/a", [("content-length", "5")])
      $0.data(1, [1])
    },
    Mistake("content-length without content (8.1.1)", .protocolError, stream: true) {
      $0.open(1, "/a", ends: true, [("content-length", "5")])
    },
    Mistake("an upper-case name (8.2.1)", .protocolError, stream: true) { $0.open(1, "/a", [("X-A", "1")]) },
    Mistake("a connection field (8.2.2)", .protocolError, stream: true) { $0.open(1, "/a", [("connection", "close")]) },
    Mistake("te other than trailers (8.2.2)", .protocolError, stream: true) { $0.open(1, "/a", [("te", "gzip")]) },
    Mistake("a pseudo-field behind others (8.3)", .protocolError, stream: true) {
      $0.open(1, "/a", [("x", "1"), (":method", "POST")])
    },
    Mistake("a repeated path (8.3)", .protocolError, stream: true) { $0.open(1, "/a", [(":path", "/b")]) },
    Mistake("a response's pseudo-field (8.3)", .protocolError, stream: true) { $0.open(1, "/a", [(":status", "200")]) },
    Mistake("an empty path (8.3.1)", .protocolError, stream: true) { $0.open(1, "") },
    Mistake("no path (8.3.1)", .protocolError, stream: true) {
      let block = $0.block([(":method", "POST"), (":scheme", "https")])
      frame(.headers, .endHeaders, 1, block)($0)
    },
  ]

  @Test("Each broken rule is answered with its code", arguments: mistakes) func broken(mistake: Mistake) {
    let pair = Pair()
    mistake.make(pair)
    if mistake.isOfStream {
      #expect(pair.seen.resets.values.contains(mistake.code))
      #expect(pair.seen.goAways.isEmpty)
      // The connection goes on.
      pair.answers = true
      pair.request(99)
      #expect(pair.seen.statuses[99] == [200])
    } else {
      #expect(pair.failure == mistake.code)
      #expect(pair.hasFailed)
      pair.request(99)
      #expect(pair.seen.statuses[99] == nil)
    }
    #expect(pair.seen.serverViolations.isEmpty)
  }

  @Test("Another preface, or another first frame, ends the connection") func preface() {
    let pair = Pair(greets: false)
    pair.send(Array("GET / HTTP/1.1\r\n".utf8))
    #expect(pair.hasFailed)
    #expect(pair.events == [.failed(.violation(Violation(.connectionPreface)))])
    let other = Pair(greets: false)
    other.send {
      $0.writePreface()
      $0.writePing(1)
    }
    #expect(other.events == [.failed(.violation(Violation(.firstFrame)))])
  }

  @Test("Undefined frames, settings and flags are ignored") func undefined() {
    let pair = Pair(settings: [Setting(SettingName(rawValue: 99), 1)])
    Self.frame(FrameType(rawValue: 0x42), FrameFlags(rawValue: 0xff), 3, [1, 2])(pair)
    pair.request(5)
    #expect(pair.seen.statuses == [5: [200]])
  }
}

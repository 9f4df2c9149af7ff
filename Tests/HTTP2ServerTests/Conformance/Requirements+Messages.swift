import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Sections 8 and 10: requests and answers.
extension ConformanceTests {
  private static func malformed(
    _ section: String, _ words: String, _ more: [(String, String)], ends: Bool = true
  ) -> Requirement {
    Requirement(section, words, .streamError(.protocolError)) {
      $0.open(1, "/a", ends: ends, more)
      #expect($0.paths.isEmpty)
    }
  }

  private static func fields(
    _ section: String, _ words: String, _ fields: [(String, String)],
    _ outcome: Requirement.Outcome = .streamError(.protocolError)
  ) -> Requirement {
    Requirement(section, words, outcome) { $0.headers(1, fields) }
  }

  static let messages: [Requirement] = [
    Requirement("8.1", "a request is HEADERS, DATA and trailers", .goesOn) {
      $0.open(1)
      $0.data(1, [1], ends: false)
      $0.data(1, [2], ends: false)
      $0.headers(1, [("x-sum", "3")])
      #expect($0.contents[1] == [1, 2] && $0.seen.statuses[1] == [200])
    },
    Requirement("8.1", "an answer is one HEADERS, and DATA of which the last one ends it", .goesOn) {
      $0.answer = (400, [UInt8](repeating: 1, count: 20_000))
      $0.request(1)
      #expect($0.frames.suffix(3).map(\.header.type) == [.headers, .data, .data])
      #expect($0.frames.suffix(3).map { $0.header.flags.contains(.endStream) } == [false, false, true])
      $0.answer = (200, [])
      $0.request(3)
      #expect($0.frames.last?.header.flags == [.endHeaders, .endStream])
    },
    Requirement("8.1", "trailers without the end are malformed", .streamError(.protocolError)) {
      $0.open(1)
      $0.headers(1, [("x-sum", "3")], ends: false)
    },
    Requirement("8.1", "a pseudo-field in trailers is malformed", .streamError(.protocolError)) {
      $0.open(1)
      $0.headers(1, [(":path", "/a")])
    },
    Requirement(
      "8.1", "an answer before the end of the request is whole, and RST_STREAM without an error follows",
      .streamError(.noError), options: ServerOptions().with(\.maximumContent, 1_000)
    ) {
      $0.answer = (413, [1, 2, 3])
      $0.open(1)
      $0.data(1, [UInt8](repeating: 0, count: 1_001), ends: false)
      #expect($0.frames.suffix(3).map(\.header.type) == [.headers, .data, .reset])
      #expect($0.seen.ended == [1])
    },
    Requirement("8.1.1", "less content than content-length is malformed", .streamError(.protocolError)) {
      $0.open(1, "/a", [("content-length", "5")])
      $0.data(1, [1, 2], ends: false)
      $0.data(1, [3, 4])
    },
    Requirement("8.1.1", "more content than content-length is malformed", .streamError(.protocolError)) {
      $0.open(1, "/a", [("content-length", "5")])
      $0.data(1, [1, 2, 3, 4, 5, 6])
    },
    Requirement("8.1.1", "no content with a content-length is malformed", .streamError(.protocolError)) {
      $0.open(1, "/a", ends: true, [("content-length", "5")])
      #expect($0.seen.statuses.isEmpty)
    },
    Requirement("8.1.1", "less content than content-length before trailers is malformed", .streamError(.protocolError))
    {
      $0.open(1, "/a", [("content-length", "5")])
      $0.data(1, [1, 2], ends: false)
      $0.headers(1, [("x-sum", "3")])
    },
    Requirement("8.1.1", "content-length is the sum of all frames, without padding", .goesOn) {
      $0.open(1, "/a", [("content-length", "5")])
      $0.data(1, [1, 2], ends: false)
      $0.frame(.data, [.padded, .endStream], 1, [4, 3, 4, 5, 0, 0, 0, 0])
      #expect($0.contents[1] == [1, 2, 3, 4, 5])
    },
    Requirement("8.1.1", "the same content-length twice is not malformed", .goesOn) {
      $0.open(1, "/a", [("content-length", "1"), ("content-length", "1")])
      $0.data(1, [1])
      #expect($0.seen.statuses[1] == [200])
    },
    malformed("8.1.1", "a content-length that is no number is malformed", [("content-length", "5x")], ends: false),
    malformed("8.1.1", "an empty content-length is malformed", [("content-length", "")], ends: false),
    malformed("8.1.1", "a negative content-length is malformed", [("content-length", "-1")], ends: false),
    malformed(
      "8.1.1", "two different content-lengths are malformed", [("content-length", "1"), ("content-length", "2")],
      ends: false),
    malformed("8.2.1", "a name with letters of upper case is malformed", [("x-A", "1")]),
    malformed("8.2.1", "a name with a blank is malformed", [("x a", "1")]),
    malformed("8.2.1", "a name with a control character is malformed", [("x\u{1}", "1")]),
    malformed("8.2.1", "a name with DEL is malformed", [("x\u{7f}", "1")]),
    malformed("8.2.1", "a name with a letter that is not ASCII is malformed", [("ä", "1")]),
    malformed("8.2.1", "a name with a colon in it is malformed", [("x:y", "1")]),
    malformed("8.2.1", "an empty name is malformed", [("", "1")]),
    malformed("8.2.1", "a value with NUL is malformed", [("x", "a\0b")]),
    malformed("8.2.1", "a value with a line feed is malformed", [("x", "a\nb")]),
    malformed("8.2.1", "a value with a carriage return is malformed", [("x", "a\rb")]),
    malformed("8.2.1", "a value behind a blank is malformed", [("x", " a")]),
    malformed("8.2.1", "a value before a blank is malformed", [("x", "a ")]),
    malformed("8.2.1", "a value behind a tabulator is malformed", [("x", "\ta")]),
    malformed("8.2.1", "a value before a tabulator is malformed", [("x", "a\t")]),
    malformed("8.2.1", "a value of one blank is malformed", [("x", " ")]),
    Requirement("8.2.1", "other characters, within a value blanks too, are none of the session's business", .goesOn) {
      $0.open(1, "/a", ends: true, [("x", "a b\tc\u{7f}ü"), ("!#$%&'*+-.^_`|~09az", ""), ("y", "")])
      #expect($0.seen.statuses[1] == [200])
    },
    malformed("8.2.2", "connection is malformed", [("connection", "close")]),
    malformed("8.2.2", "proxy-connection is malformed", [("proxy-connection", "close")]),
    malformed("8.2.2", "keep-alive is malformed", [("keep-alive", "1")]),
    malformed("8.2.2", "transfer-encoding is malformed", [("transfer-encoding", "chunked")]),
    malformed("8.2.2", "transfer-encoding without a value, by its index, is malformed", [("transfer-encoding", "")]),
    malformed("8.2.2", "upgrade is malformed", [("upgrade", "h2c")]),
    malformed("8.2.2", "te of anything but trailers is malformed", [("te", "gzip")]),
    malformed("8.2.2", "te of more than trailers is malformed", [("te", "trailers, gzip")]),
    Requirement("8.2.2", "connection in trailers is malformed", .streamError(.protocolError)) {
      $0.open(1)
      $0.headers(1, [("connection", "close")])
    },
    Requirement("8.2.2", "te of trailers is not malformed", .goesOn) {
      $0.open(1, "/a", ends: true, [("te", "trailers")])
    },
    malformed("8.3", "a pseudo-field behind another field is malformed", [("x", "1"), (":x", "1")]),
    malformed("8.3", "a pseudo-field of answers is malformed", [(":status", "200")]),
    malformed("8.3", "an undefined pseudo-field is malformed", [(":x", "1")]),
    malformed(
      "8.3", "the protocol of a CONNECT that the server has not offered is malformed", [(":protocol", "websocket")]),
    malformed("8.3", "a repeated path is malformed", [(":path", "/a")]),
    malformed("8.3", "a repeated authority is malformed", [(":authority", "localhost")]),
    malformed("8.3", "a pseudo-field with a line feed is malformed", [(":authority", "a\nb")]),
    fields("8.3.1", "a request without method is malformed", [(":scheme", "https"), (":path", "/")]),
    fields("8.3.1", "a request without scheme is malformed", [(":method", "GET"), (":path", "/")]),
    fields("8.3.1", "a request without path is malformed", [(":method", "GET"), (":scheme", "https")]),
    fields("8.3.1", "an empty path is malformed", [(":method", "GET"), (":scheme", "https"), (":path", "")]),
    fields(
      "8.3.1", "a path without a slash before it is malformed",
      [(":method", "GET"), (":scheme", "https"), (":path", "a")]),
    fields(
      "8.3.1", "an asterisk as a path is malformed, but of OPTIONS",
      [(":method", "GET"), (":scheme", "https"), (":path", "*")]),
    fields(
      "8.3.1", "the asterisk is a path of OPTIONS", [(":method", "OPTIONS"), (":scheme", "https"), (":path", "*")],
      .goesOn),
    fields(
      "8.3.1", "paths of other schemes are what they are", [(":method", "GET"), (":scheme", "urn"), (":path", "a")],
      .goesOn),
    fields(
      "8.3.1", "host instead of an authority is enough",
      [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "a")], .goesOn),
    Requirement("8.3.2", "an answer has one status of three digits, and no other pseudo-field", .goesOn) {
      for (stream, status) in [(1, 200), (3, 410), (5, 503)] as [(UInt32, Int)] {
        $0.answer = (status, [])
        $0.request(stream)
        #expect($0.seen.statuses[stream] == [status])
      }
    },
    Requirement("8.4", "PUSH_PROMISE of a client is an error", .connectionError(.protocolError)) {
      $0.open(1)
      $0.frame(.pushPromise, .endHeaders, 1, [0, 0, 0, 2] + $0.block(Pair.fields("/a")))
    },
    Requirement(
      "8.4", "the server promises nothing, even if the client would take it", .goesOn,
      settings: [Setting(.enablePush, 1)]
    ) {
      for stream: UInt32 in [1, 3] { $0.request(stream) }
      #expect($0.frames(.pushPromise).isEmpty)
    },
    fields(
      "8.5", "CONNECT has an authority, and neither scheme nor path", [(":method", "CONNECT"), (":authority", "a:1")],
      .goesOn),
    fields(
      "8.5", "CONNECT with a scheme is malformed",
      [(":method", "CONNECT"), (":authority", "a:1"), (":scheme", "https")]),
    fields("8.5", "CONNECT with a path is malformed", [(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")]),
    fields("8.5", "CONNECT without an authority is malformed", [(":method", "CONNECT")]),
    fields("8.5", "another method is not CONNECT", [(":method", "CONNECTED"), (":authority", "a:1")]),
    malformed("8.6", "an upgrade is malformed, and no answer is 101", [("upgrade", "websocket")]),
    Requirement(
      "8.7", "a refused request has had no effect, and its stream no answer", .shown,
      options: ServerOptions().with(\.streamLimit, 1)
    ) {
      $0.answers = false
      $0.open(1)
      $0.request(3)
      #expect($0.events.last == .refused(stream: 3, .streamLimit))
      #expect($0.seen.resets == [3: .refusedStream] && $0.paths[3] == nil)
    },
    Requirement(
      "10.5.1", "a field section above the limit ends the connection", .connectionError(.enhanceYourCalm),
      options: ServerOptions().with(\.maximumFieldList, 1_000)
    ) { $0.open(1, "/a", [("x", String(repeating: "y", count: 1_000))]) },
  ]
}

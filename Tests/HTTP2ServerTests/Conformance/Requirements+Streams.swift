import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Section 5: streams, errors, extensions.
extension ConformanceTests {
  static let streams: [Requirement] = [
    Requirement("5.1", "DATA on an idle stream is an error", .connectionError(.protocolError)) { $0.data(5, [1]) },
    Requirement(
      "5.1", "DATA on a stream of the server's is one, below the client's streams, too",
      .connectionError(.protocolError)
    ) {
      $0.request(5)
      $0.data(2, [1])
    },
    Requirement("5.1", "WINDOW_UPDATE on an idle stream is one", .connectionError(.protocolError)) {
      $0.frame(.windowUpdate, [], 9, [0, 0, 0, 1])
    },
    Requirement("5.1", "WINDOW_UPDATE on a stream of the server's is one", .connectionError(.protocolError)) {
      $0.request(5)
      $0.frame(.windowUpdate, [], 2, [0, 0, 0, 1])
    },
    Requirement("5.1", "PRIORITY on any stream is none", .goesOn) {
      $0.request(1)
      for stream: UInt32 in [1, 2, 3, 51] { $0.frame(.priority, [], stream, [0, 0, 0, 0, 1]) }
    },
    Requirement("5.1", "DATA after the end of a request is an error", .streamError(.streamClosed)) {
      $0.answers = false
      $0.request(1)
      $0.data(1, [1])
    },
    Requirement("5.1", "HEADERS after the end of a request are an error", .streamError(.streamClosed)) {
      $0.answers = false
      $0.request(1)
      $0.open(1)
    },
    Requirement("5.1", "WINDOW_UPDATE and RST_STREAM after the end are none", .goesOn) {
      $0.answers = false
      $0.request(1)
      $0.send { $0.writeWindowUpdate(1, stream: 1) }
      $0.send { $0.writeReset(.cancel, stream: 1) }
      #expect($0.openStreams == 0)
    },
    Requirement("5.1", "WINDOW_UPDATE and RST_STREAM after the answer are none", .goesOn) {
      $0.request(1)
      $0.send { $0.writeWindowUpdate(1, stream: 1) }
      $0.send { $0.writeReset(.cancel, stream: 1) }
    },
    Requirement("5.1", "DATA after the answer is an error", .streamError(.streamClosed)) {
      $0.request(1)
      $0.data(1, [1])
    },
    Requirement("5.1", "what is on its way on a stream that the server has reset is dropped", .goesOn) {
      $0.answers = false
      $0.open(1)
      $0.session.reset(0, .internalError)
      $0.flush()
      $0.data(1, [1], ends: false)
      $0.send { $0.writeWindowUpdate(1, stream: 1) }
      $0.headers(1, [("x-sum", "1")])
      $0.send { $0.writeReset(.cancel, stream: 1) }
      #expect($0.seen.resets == [1: .internalError])
      $0.seen.resets = [:]
    },
    Requirement("5.1", "what follows a malformed request is dropped", .shown) {
      $0.open(1, "/a", [("X", "y")])
      $0.data(1, [1], ends: false)
      $0.headers(1, [("x-sum", "1")])
      #expect($0.frames(.reset).count == 1 && !$0.hasFailed)
    },
    Requirement(
      "5.1", "it is dropped however many streams were reset since", .shown,
      options: ServerOptions().with(\.streamLimit, 1)
    ) { pair in
      pair.answers = false
      for stream in stride(from: UInt32(1), to: 1_001, by: 2) { pair.open(stream) }
      #expect(pair.frames(.reset).count == 499)
      for stream in stride(from: UInt32(3), to: 1_001, by: 2) {
        pair.data(stream, [1], ends: false)
        pair.headers(stream, [("x-sum", "1")])
      }
      #expect(pair.frames(.reset).count == 499)
      #expect(!pair.hasFailed)
    },
    Requirement(
      "5.1", "content on reset streams uses up the connection's window", .connectionError(.flowControlError),
      options: ServerOptions().with(\.opensWindows, false)
    ) {
      $0.answers = false
      $0.open(1)
      $0.session.reset(0, .internalError)
      for _ in 0..<4 { $0.data(1, [UInt8](repeating: 0, count: 16_384), ends: false) }
    },
    Requirement("5.1", "nothing is sent on a stream that is reset or answered", .shown) {
      $0.answers = false
      $0.answer = (400, [UInt8](repeating: 1, count: 70_000))
      $0.request(1)
      $0.respond(1)
      $0.send { $0.writeReset(.cancel, stream: 1) }
      let length = $0.written.count
      $0.send { $0.writeWindowUpdate(100_000) }
      $0.send { $0.writeWindowUpdate(100_000, stream: 1) }
      $0.respond(1)
      #expect($0.written.count == length)
    },
    Requirement("5.1.1", "a request on a stream of the server's is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, .endHeaders, 2, $0.block(Pair.fields("/a")))
    },
    Requirement("5.1.1", "a lower number than that of an earlier request is an error", .connectionError(.protocolError))
    {
      $0.request(5)
      $0.open(3)
    },
    Requirement("5.1.1", "the number of an answered request is an error", .connectionError(.protocolError)) {
      $0.request(5)
      $0.open(5)
    },
    Requirement("5.1.1", "a request closes the idle streams below it", .streamError(.streamClosed, on: 3)) {
      $0.request(5)
      $0.data(3, [1])
    },
    Requirement("5.1.1", "numbers may be left out", .goesOn) {
      for stream: UInt32 in [1, 9, 11, 77] { $0.request(stream) }
      #expect($0.seen.statuses.count == 4)
    },
    Requirement(
      "5.1.2", "a stream above the limit is refused", .streamError(.refusedStream, on: 3),
      options: ServerOptions().with(\.streamLimit, 2)
    ) {
      $0.answers = false
      $0.open(51)
      for stream: UInt32 in [53, 55] { $0.open(stream) }
      #expect($0.seen.resets == [55: .refusedStream])
      $0.seen.resets = [3: .refusedStream]
      $0.data(51, [1])
      $0.respond(51)
    },
    Requirement(
      "5.1.2", "a stream above the limit is an error of the stream, if told so", .shown,
      options: ServerOptions().with(\.streamLimit, 1).with(\.excess, .protocolError)
    ) {
      $0.answers = false
      $0.open(1)
      $0.open(3)
      #expect($0.seen.resets == [3: .protocolError])
    },
    Requirement(
      "5.1.2", "it is one of the connection, if told so, also when no stream is allowed",
      .connectionError(.protocolError),
      options: ServerOptions().with(\.streamLimit, 0).with(\.excess, .goAway)
    ) {
      $0.open(1)
      #expect($0.seen.goAways.map(\.last) == [0])
    },
    Requirement(
      "5.1.2", "streams that the server has closed do not count", .goesOn,
      options: ServerOptions().with(\.streamLimit, 1)
    ) {
      for stream: UInt32 in [1, 3, 5] { $0.request(stream) }
    },
    Requirement("5.2", "windows are 65,535 bytes at first, of the connection and of a stream", .shown) {
      $0.answer = (400, [UInt8](repeating: 1, count: 70_000))
      $0.request(1)
      #expect($0.seen.contents[1]?.count == 65_535)
      $0.send { $0.writeWindowUpdate(10_000) }
      #expect($0.seen.contents[1]?.count == 65_535)
      $0.send { $0.writeWindowUpdate(10_000, stream: 1) }
      #expect($0.seen.contents[1]?.count == 70_000)
    },
    Requirement("5.3", "priorities, of a stream on itself too, change nothing", .goesOn) {
      $0.frame(.headers, [.priority, .endHeaders, .endStream], 1, [0x80, 0, 0, 1, 255] + $0.block(Pair.fields("/a")))
      $0.frame(.priority, [], 3, [0, 0, 0, 3, 0])
      #expect($0.seen.statuses[1] == [200])
    },
    Requirement(
      "5.4.1", "GOAWAY of an error names the last stream, and nothing follows it",
      .connectionError(.protocolError)
    ) {
      $0.answers = false
      $0.request(1)
      $0.request(5)
      $0.frame(.ping, [], 1, eight)
      #expect($0.seen.goAways.map(\.last) == [5])
      $0.respond(1)
      #expect($0.seen.statuses.isEmpty)
    },
    Requirement("5.4.2", "RST_STREAM is not answered by one", .goesOn) {
      $0.request(1)
      $0.answers = false
      $0.open(3)
      for stream: UInt32 in [1, 3, 3] { $0.send { $0.writeReset(.cancel, stream: stream) } }
    },
    Requirement("5.5", "an undefined frame within a field block is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, [], 1, [0x82])
      $0.frame(FrameType(rawValue: 0x42), [], 1)
    },
    Requirement(
      "5.5", "undefined settings are ignored, and acknowledged", .goesOn,
      settings: [Setting(SettingName(rawValue: 99), .max)]
    ) { #expect($0.seen.acknowledgements == 1) },
  ]
}

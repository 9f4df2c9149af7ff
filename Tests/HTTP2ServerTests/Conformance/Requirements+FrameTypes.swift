import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Sections 6 and 7: each type of frame, error codes.
extension ConformanceTests {
  static let frameTypes: [Requirement] = [
    Requirement("6.1", "DATA on stream 0 is an error", .connectionError(.protocolError)) {
      $0.frame(.data, [], 0, [1])
    },
    Requirement("6.1", "padding as long as the payload is an error", .connectionError(.protocolError)) {
      $0.open(1)
      $0.frame(.data, [.padded, .endStream], 1, [2, 1])
    },
    Requirement("6.1", "padding is no content", .goesOn) {
      $0.open(1)
      $0.frame(.data, [.padded, .endStream], 1, [2, 7, 0, 0])
      #expect($0.contents[1] == [7])
      $0.open(3)
      $0.frame(.data, [.padded, .endStream], 3, [1, 0])
      #expect($0.contents[3] == [])
    },
    Requirement(
      "6.1", "padding uses up the window", .connectionError(.flowControlError),
      options: ServerOptions().with(\.opensWindows, false)
    ) {
      $0.open(1)
      for _ in 0..<4 { $0.frame(.data, .padded, 1, [255] + [UInt8](repeating: 0, count: 16_383)) }
    },
    Requirement("6.2", "HEADERS on stream 0 are an error", .connectionError(.protocolError)) {
      $0.frame(.headers, .endHeaders, 0, [0x82])
    },
    Requirement("6.2", "padding beyond the field block is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, [.padded, .priority, .endHeaders], 1, [2, 0, 0, 0, 0, 15, 0x82])
    },
    Requirement("6.2", "padding and priority are no fields", .goesOn) {
      let block = $0.block(Pair.fields("/a"))
      $0.frame(.headers, [.padded, .priority, .endHeaders, .endStream], 1, [3, 0, 0, 0, 0, 15] + block + [0, 0, 0])
      #expect($0.paths[1] == "/a" && $0.seen.statuses[1] == [200])
    },
    Requirement("6.2", "HEADERS without their end are followed by nothing else", .connectionError(.protocolError)) {
      $0.frame(.headers, [], 1, [0x82])
      $0.frame(.headers, .endHeaders, 1, [0x82])
    },
    Requirement("6.3", "PRIORITY on stream 0 is an error", .connectionError(.protocolError)) {
      $0.frame(.priority, [], 0, [0, 0, 0, 0, 1])
    },
    Requirement("6.3", "PRIORITY of another length than 5 is an error", .streamError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.priority, [], 1, [0, 0, 0, 1])
    },
    Requirement("6.4", "RST_STREAM on stream 0 is an error", .connectionError(.protocolError)) {
      $0.frame(.reset, [], 0, [0, 0, 0, 8])
    },
    Requirement("6.4", "RST_STREAM on an idle stream is an error", .connectionError(.protocolError)) {
      $0.frame(.reset, [], 7, [0, 0, 0, 8])
    },
    Requirement("6.4", "RST_STREAM on a stream of the server's is an error", .connectionError(.protocolError)) {
      $0.request(7)
      $0.frame(.reset, [], 2, [0, 0, 0, 8])
    },
    Requirement("6.4", "RST_STREAM of another length than 4 is an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.reset, [], 1, [0, 0, 8])
    },
    Requirement("6.6", "PUSH_PROMISE is an error", .connectionError(.protocolError)) {
      $0.request(1)
      $0.frame(.pushPromise, .endHeaders, 1, [0, 0, 0, 2, 0x82])
    },
    Requirement("6.7", "PING is acknowledged with its data", .goesOn) {
      $0.send { $0.writePing(0x0102_0304_0506_0708) }
      #expect($0.frames(.ping).map(\.payload) == [[1, 2, 3, 4, 5, 6, 7, 8]])
      #expect($0.frames(.ping).map(\.header.flags) == [.acknowledgement])
    },
    Requirement("6.7", "an acknowledgement of PING is not answered", .goesOn) {
      $0.send { $0.writePing(1, isAcknowledgement: true) }
      #expect($0.frames(.ping).isEmpty)
    },
    Requirement("6.7", "PING on a stream is an error", .connectionError(.protocolError)) {
      $0.frame(.ping, [], 1, eight)
    },
    Requirement("6.7", "PING of another length than 8 is an error", .connectionError(.frameSizeError)) {
      $0.frame(.ping, [], 0, eight + [0])
    },
    Requirement("6.8", "GOAWAY on a stream is an error", .connectionError(.protocolError)) {
      $0.frame(.goAway, [], 1, eight)
    },
    Requirement("6.8", "GOAWAY of less than 8 bytes is an error", .connectionError(.frameSizeError)) {
      $0.frame(.goAway, [], 0, [0, 0, 0, 0, 0, 0, 0])
    },
    Requirement("6.8", "after GOAWAY of the client its requests are answered", .goesOn) {
      $0.answers = false
      $0.request(1)
      $0.frame(.goAway, [], 0, eight + [1, 2])
      #expect($0.events.last == .goAway(lastStream: 0, .noError))
      $0.respond(1)
      #expect($0.seen.statuses[1] == [200])
    },
    Requirement("6.8", "the last stream of the server's GOAWAY never rises", .shown) {
      $0.answers = false
      $0.request(1)
      $0.session.goAway(lastStream: 0x7fff_ffff)
      $0.request(3)
      $0.session.goAway(lastStream: 1)
      $0.request(5)
      $0.session.goAway(lastStream: 5)
      $0.flush()
      $0.frame(.ping, [], 1, eight)
      #expect($0.seen.goAways.map(\.last) == [0x7fff_ffff, 1, 1, 1])
    },
    Requirement("6.8", "frames above the last stream are dropped, and decoded, and counted", .shown) {
      $0.answers = false
      $0.open(1)
      $0.session.goAway(lastStream: 1)
      $0.flush()
      $0.open(3, "/3")
      for _ in 0..<8 { $0.data(3, [UInt8](repeating: 0, count: 8_000), ends: false) }
      $0.headers(3, [("x-sum", "1")])
      $0.headers(1, [("x-sum", "1")])
      #expect($0.events.last.map { if case .ended = $0 { true } else { false } } == true)
      #expect($0.frames(.reset).isEmpty && !$0.hasFailed)
      #expect($0.frames(.windowUpdate).count == 1)
      $0.respond(1)
      #expect($0.isDrained)
    },
    Requirement("6.10", "CONTINUATION on stream 0 is an error", .connectionError(.protocolError)) {
      $0.frame(.continuation, .endHeaders, 0, [0x82])
    },
    Requirement("6.10", "CONTINUATION without a field block is an error", .connectionError(.protocolError)) {
      $0.open(1)
      $0.frame(.continuation, .endHeaders, 1, [0x82])
    },
    Requirement("6.10", "CONTINUATION behind the end of a block is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, [], 1, $0.block(Pair.fields("/a")))
      $0.frame(.continuation, .endHeaders, 1)
      $0.frame(.continuation, .endHeaders, 1)
    },
    Requirement("6.10", "another frame within a block is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, [], 1, [0x82])
      $0.frame(.ping, [], 0, eight)
    },
    Requirement("6.10", "CONTINUATION of another stream within a block is an error", .connectionError(.protocolError)) {
      $0.frame(.headers, [], 1, [0x82])
      $0.frame(.continuation, .endHeaders, 3, [0x82])
    },
    Requirement("6.10", "any part of a block may be in CONTINUATION", .goesOn) {
      let block = $0.block(Pair.fields("/a"))
      $0.frame(.headers, .endStream, 1)
      for byte in block.prefix(10) { $0.frame(.continuation, [], 1, [byte]) }
      $0.frame(.continuation, .endHeaders, 1, Array(block.dropFirst(10)))
      #expect($0.paths[1] == "/a" && $0.seen.statuses[1] == [200])
    },
    Requirement("7", "undefined error codes change nothing", .goesOn) {
      $0.answers = false
      $0.open(1)
      $0.send { $0.writeReset(ErrorCode(rawValue: 0xdead_beef), stream: 1) }
      $0.send { $0.writeGoAway(lastStream: 0, ErrorCode(rawValue: 99)) }
      #expect($0.openStreams == 0)
    },
  ]
}

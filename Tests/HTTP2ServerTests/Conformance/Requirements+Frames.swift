import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Sections 3 and 4: the beginning, frames, field blocks.
extension ConformanceTests {
  static let connection: [Requirement] = [
    Requirement("3.4", "the first frame of the server is SETTINGS, and waits for nothing", .shown, greets: false) {
      #expect($0.frames.map(\.header.type) == [.settings])
    },
    Requirement("3.4", "the client's first SETTINGS are acknowledged behind the server's own", .goesOn) {
      #expect($0.frames.map(\.header.type) == [.settings, .settings])
      #expect($0.frames.map { $0.header.flags.contains(.acknowledgement) } == [false, true])
    },
    Requirement("3.4", "another preface is an error", .connectionError(.protocolError), greets: false) {
      $0.send(Array("GET / HTTP/1.1\r\n".utf8))
    },
    Requirement(
      "3.4", "a preface that is wrong at its end is an error", .connectionError(.protocolError), greets: false
    ) {
      $0.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r".utf8))
    },
    Requirement(
      "3.4", "another first frame than SETTINGS is an error", .connectionError(.protocolError), greets: false
    ) {
      $0.send { $0.writePreface() }
      $0.frame(.ping, [], 0, eight)
    },
    Requirement(
      "3.4", "an acknowledgement as the first frame is an error", .connectionError(.protocolError), greets: false
    ) {
      $0.send {
        $0.writePreface()
        $0.writeSettingsAcknowledgement()
      }
    },
  ]

  static let frames: [Requirement] = [
    Requirement("4.1", "frames of undefined types are ignored, on whichever stream", .goesOn) {
      $0.answers = false
      $0.open(1)
      for stream: UInt32 in [0, 1, 2, 77] { $0.raw(FrameType(rawValue: 0x42), flags: 0xff, stream, [1, 2]) }
    },
    Requirement("4.1", "undefined flags are ignored", .goesOn) {
      $0.raw(.headers, flags: 0xd2 | 0x04, 1, $0.block(Pair.fields("/a")))
      $0.raw(.data, flags: 0xf6 | 0x01, 1, [1])
      #expect($0.seen.statuses[1] == [200] && $0.contents[1] == [1])
      $0.raw(.ping, flags: 0xfe, 0, eight)
      #expect($0.frames(.ping).map(\.header.flags.rawValue) == [1])
      $0.raw(.settings, flags: 0xfe, 0, [])
      $0.raw(.windowUpdate, flags: 0xff, 0, [0, 0, 0, 1])
    },
    Requirement("4.1", "the reserved bit of a stream's number is ignored", .goesOn) {
      $0.frame(.headers, [.endHeaders, .endStream], 1 | 1 << 31, $0.block(Pair.fields("/a")))
      #expect($0.seen.statuses[1] == [200])
    },
    Requirement("4.2", "a frame of 16,384 bytes is read", .goesOn) {
      $0.open(1)
      $0.data(1, [UInt8](repeating: 7, count: 16_384))
      #expect($0.seen.statuses[1] == [200])
    },
    Requirement("4.2", "DATA of 16,385 bytes is an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.data, [], 1, [UInt8](repeating: 0, count: 16_385))
    },
    Requirement("4.2", "HEADERS of 16,385 bytes are an error", .connectionError(.frameSizeError)) {
      $0.frame(.headers, .endHeaders, 1, [UInt8](repeating: 0, count: 16_385))
    },
    Requirement("4.2", "a frame of an undefined type of 16,385 bytes is an error", .connectionError(.frameSizeError)) {
      $0.frame(FrameType(rawValue: 0x42), [], 0, [UInt8](repeating: 0, count: 16_385))
    },
    Requirement("4.2", "DATA without the length of their padding are an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.data, .padded, 1)
    },
    Requirement("4.2", "trailers without the length of their padding are an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.headers, [.padded, .endHeaders, .endStream], 1)
    },
    Requirement("4.2", "trailers without room for their priority are an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.headers, [.priority, .endHeaders, .endStream], 1, [0, 0, 0, 0])
    },
    Requirement("4.2", "PUSH_PROMISE without its stream is an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.pushPromise, .endHeaders, 1, [0, 0, 0])
    },
    Requirement(
      "4.2", "no frame is longer than the client reads, and it may read longer ones", .shown,
      settings: [Setting(.initialWindowSize, 100_000)]
    ) {
      $0.answer = (400, [UInt8](repeating: 1, count: 50_000))
      $0.request(1)
      #expect($0.frames(.data).map(\.header.payloadLength) == [16_384, 16_384, 16_384, 848])
      $0.send { $0.writeWindowUpdate(100_000) }
      $0.request(3)
      #expect($0.frames(.data).allSatisfy { $0.header.payloadLength <= 16_384 })
    },
    Requirement("4.3", "a field block that cannot be decoded is an error", .connectionError(.compressionError)) {
      $0.frame(.headers, .endHeaders, 1, [0xff])
    },
    Requirement(
      "4.3", "a block that cannot be decoded is one on a closed stream, too", .connectionError(.compressionError)
    ) {
      $0.request(1)
      $0.frame(.headers, .endHeaders, 1, [0x80])
    },
    Requirement(
      "4.3", "fields of a refused stream are decoded, since later ones refer to them", .goesOn,
      options: ServerOptions().with(\.streamLimit, 2)
    ) {
      $0.answers = false
      for stream: UInt32 in [1, 3, 5] { $0.open(stream, "/\(stream)") }
      #expect($0.seen.resets == [5: .refusedStream])
      $0.seen.resets = [:]
      for stream: UInt32 in [1, 3] {
        $0.data(stream, [1])
        $0.respond(stream)
      }
      $0.open(7, "/5")
      #expect($0.paths[7] == "/5")
      $0.data(7, [1])
      $0.respond(7)
    },
    Requirement("4.3", "fields of malformed requests and of reset streams are decoded", .goesOn) {
      $0.open(1, "/malformed", [("X", "y")])
      $0.answers = false
      $0.open(3)
      $0.send { $0.writeReset(.cancel, stream: 3) }
      $0.headers(3, [("x-late", "z")])
      $0.open(5, "/malformed", [("x-late", "z")])
      #expect($0.paths[5] == "/malformed")
      #expect($0.seen.resets == [1: .protocolError])
      $0.seen.resets = [:]
    },
    Requirement(
      "4.3.1", "a smaller table is confirmed at the beginning of the next field block, and once", .goesOn,
      settings: [Setting(.headerTableSize, 0)]
    ) {
      $0.request(1)
      $0.request(3)
      #expect($0.frames(.headers).map { $0.payload[0] } == [0x20, 0x88])
    },
    Requirement("4.3.1", "of several sizes between two blocks the smallest is confirmed", .goesOn) {
      $0.send { $0.writeSettings([Setting(.headerTableSize, 10)]) }
      $0.send { $0.writeSettings([Setting(.headerTableSize, 4_096)]) }
      $0.send { $0.writeSettings([Setting(.headerTableSize, 200)]) }
      $0.request(1)
      #expect($0.frames(.headers).map { $0.payload[0] } == [0x2a])
    },
    Requirement("4.3.1", "a larger table is not claimed", .goesOn, settings: [Setting(.headerTableSize, 65_536)]) {
      $0.send { $0.writeSettings([Setting(.headerTableSize, 8_192)]) }
      $0.request(1)
      #expect($0.frames(.headers).map { $0.payload[0] } == [0x88])
    },
    Requirement("4.3.1", "a size above the server's is an error", .connectionError(.compressionError)) {
      $0.frame(.headers, .endHeaders, 1, [0x3f, 0xe2, 0x1f] + $0.block(Pair.fields("/a")))
    },
    Requirement("4.3.1", "a size behind a field is an error", .connectionError(.compressionError)) {
      $0.frame(.headers, .endHeaders, 1, $0.block(Pair.fields("/a")) + [0x20])
    },
    Requirement("4.3.1", "sizes at the beginning of a block are taken", .goesOn) {
      $0.frame(.headers, [.endHeaders, .endStream], 1, [0x20, 0x3f, 0xe1, 0x1f] + $0.block(Pair.fields("/a")))
      #expect($0.paths[1] == "/a")
    },
  ]
}

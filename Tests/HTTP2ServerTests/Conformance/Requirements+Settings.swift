import Bytes
import HTTP2
import HTTP2Server
import Testing

/// Sections 6.5 and 6.9: settings and windows.
extension ConformanceTests {
  static let settings: [Requirement] = [
    Requirement("6.5", "SETTINGS on a stream are an error", .connectionError(.protocolError)) {
      $0.frame(.settings, [], 1)
    },
    Requirement("6.5", "SETTINGS whose length is no multiple of 6 are an error", .connectionError(.frameSizeError)) {
      $0.frame(.settings, [], 0, [0, 1, 0, 0, 0])
    },
    Requirement("6.5", "an acknowledgement with a payload is an error", .connectionError(.frameSizeError)) {
      $0.frame(.settings, .acknowledgement, 0, [0, 1, 0, 0, 0, 0])
    },
    Requirement("6.5.2", "ENABLE_PUSH other than 0 and 1 is an error", .connectionError(.protocolError)) {
      $0.frame(.settings, [], 0, [0, 2, 0, 0, 0, 2])
    },
    Requirement("6.5.2", "the server does not announce ENABLE_PUSH", .goesOn) {
      #expect($0.seen.settings.joined().allSatisfy { $0.name != .enablePush })
    },
    Requirement("6.5.2", "INITIAL_WINDOW_SIZE above 2³¹−1 is an error", .connectionError(.flowControlError)) {
      $0.frame(.settings, [], 0, [0, 4, 0x80, 0, 0, 0])
    },
    Requirement("6.5.2", "MAX_FRAME_SIZE below 16,384 is an error", .connectionError(.protocolError)) {
      $0.send { $0.writeSettings([Setting(.maximumFrameSize, 16_383)]) }
    },
    Requirement("6.5.2", "MAX_FRAME_SIZE above 16,777,215 is an error", .connectionError(.protocolError)) {
      $0.send { $0.writeSettings([Setting(.maximumFrameSize, 16_777_216)]) }
    },
    Requirement("6.5.2", "the ends of the ranges are no errors", .goesOn) {
      $0.answers = false
      $0.open(1)
      $0.send {
        $0.writeSettings([
          Setting(.maximumFrameSize, 16_777_215), Setting(.maximumFrameSize, 16_384), Setting(.enablePush, 1),
          Setting(.initialWindowSize, 0x7fff_ffff), Setting(.maximumConcurrentStreams, 0),
          Setting(.headerTableSize, .max),
        ])
      }
    },
    Requirement("6.5.3", "values apply in their order, and the last one of a name counts", .shown) {
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 100), Setting(.initialWindowSize, 7)]) }
      $0.answer = (400, [UInt8](repeating: 1, count: 20))
      $0.request(1)
      #expect($0.seen.contents[1]?.count == 7)
    },
    Requirement(
      "6.5.3", "each SETTINGS frame is acknowledged at once, before what it allows is used", .shown,
      settings: [Setting(.initialWindowSize, 0)]
    ) {
      $0.answer = (400, [1])
      $0.request(1)
      $0.send {
        $0.writeSettings([])
        $0.writeSettings([Setting(.initialWindowSize, 1)])
      }
      #expect($0.seen.acknowledgements == 3)
      #expect($0.frames.suffix(3).map(\.header.type) == [.settings, .settings, .data])
    },
    Requirement(
      "6.5.3", "limits that are not acknowledged allow no more than the highest of them", .shown,
      options: ServerOptions().with(\.streamLimit, 1)
    ) {
      $0.answers = false
      $0.session.setStreamLimit(2)
      $0.flush()
      for stream: UInt32 in [1, 3, 5] { $0.open(stream) }
      #expect($0.seen.resets == [5: .refusedStream])
    },
    Requirement(
      "6.5.3", "an acknowledgement is of the oldest SETTINGS", .goesOn, options: ServerOptions().with(\.streamLimit, 5)
    ) {
      $0.answers = false
      $0.session.setStreamLimit(2)
      $0.session.setStreamLimit(1)
      $0.flush()
      $0.send { $0.writeSettingsAcknowledgement() }
      $0.open(1)
      $0.open(3)
      #expect($0.seen.resets.isEmpty)
      for stream: UInt32 in [1, 3] {
        $0.data(stream, [1])
        $0.respond(stream)
      }
    },
  ]

  static let windows: [Requirement] = [
    Requirement("6.9", "WINDOW_UPDATE of 0 on a stream is an error", .streamError(.protocolError)) {
      $0.open(1)
      $0.frame(.windowUpdate, [], 1, [0, 0, 0, 0])
    },
    Requirement(
      "6.9", "WINDOW_UPDATE of 0 on the connection is an error of the connection", .connectionError(.protocolError)
    ) {
      $0.frame(.windowUpdate, [], 0, [0x80, 0, 0, 0])
    },
    Requirement("6.9", "WINDOW_UPDATE of another length than 4 is an error", .connectionError(.frameSizeError)) {
      $0.open(1)
      $0.frame(.windowUpdate, [], 1, [0, 0, 0, 1, 0])
    },
    Requirement(
      "6.9", "the reserved bit of an increment is ignored", .shown, settings: [Setting(.initialWindowSize, 0)]
    ) {
      $0.answer = (400, [1, 2])
      $0.request(1)
      $0.frame(.windowUpdate, [], 1, [0x80, 0, 0, 1])
      #expect($0.seen.contents[1] == [1])
    },
    Requirement(
      "6.9.1", "more content than the connection's window allows is an error",
      .connectionError(.flowControlError), options: ServerOptions().with(\.opensWindows, false)
    ) {
      for stream: UInt32 in [1, 3, 5, 7] { $0.request(stream, [UInt8](repeating: 0, count: 16_384)) }
      $0.request(9, [1])
    },
    Requirement(
      "6.9.1", "as much content as the connection's window allows is none", .shown,
      options: ServerOptions().with(\.opensWindows, false)
    ) {
      for stream: UInt32 in [1, 3, 5] { $0.request(stream, [UInt8](repeating: 0, count: 16_384)) }
      $0.request(7, [UInt8](repeating: 0, count: 16_383))
      #expect($0.seen.statuses.count == 4 && !$0.hasFailed)
    },
    Requirement(
      "6.9.1", "more than a stream's window allows is an error of the stream", .streamError(.flowControlError),
      options: ServerOptions().with(\.streamWindow, 1_000).with(\.opensWindows, false)
    ) {
      $0.open(1)
      $0.data(1, [UInt8](repeating: 0, count: 1_000), ends: false)
      #expect($0.seen.resets.isEmpty)
      $0.data(1, [0], ends: false)
    },
    Requirement("6.9.1", "a window above 2³¹−1 is an error", .connectionError(.flowControlError)) {
      $0.frame(.windowUpdate, [], 0, [0x7f, 0xff, 0xff, 0xff])
    },
    Requirement("6.9.1", "a window of exactly 2³¹−1 is none", .goesOn) {
      $0.answers = false
      $0.open(1)
      for stream: UInt32 in [0, 1] { $0.send { $0.writeWindowUpdate(0x7fff_ffff - 65_535, stream: stream) } }
    },
    Requirement("6.9.1", "a stream's window above 2³¹−1 is an error of the stream", .streamError(.flowControlError)) {
      $0.open(1)
      $0.send { $0.writeWindowUpdate(0x7fff_ffff - 65_534, stream: 1) }
    },
    Requirement(
      "6.9.1", "the server keeps to both windows, and goes on as either opens", .shown,
      settings: [Setting(.initialWindowSize, 40_000)]
    ) {
      $0.answer = (400, [UInt8](repeating: 1, count: 50_000))
      $0.request(1)
      $0.request(3)
      #expect($0.seen.contents[1]?.count == 40_000 && $0.seen.contents[3]?.count == 25_535)
      $0.send { $0.writeWindowUpdate(10_000, stream: 1) }
      #expect($0.seen.contents[1]?.count == 40_000)
      $0.send { $0.writeWindowUpdate(24_464) }
      // 3 waits for the connection's window for longer.
      #expect($0.seen.contents[3]?.count == 40_000 && $0.seen.contents[1]?.count == 49_999)
      $0.send { $0.writeWindowUpdate(10_001) }
      #expect($0.seen.ended == [1])
      $0.send { $0.writeWindowUpdate(10_000, stream: 3) }
      #expect($0.seen.ended == [1, 3])
    },
    Requirement(
      "6.9.2", "a changed INITIAL_WINDOW_SIZE moves the windows of open streams", .shown,
      settings: [Setting(.initialWindowSize, 3)]
    ) {
      $0.answer = (400, [UInt8](repeating: 1, count: 20))
      $0.request(1)
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 10)]) }
      #expect($0.seen.contents[1]?.count == 10)
    },
    Requirement(
      "6.9.2", "a negative window has to become positive first", .shown,
      settings: [Setting(.initialWindowSize, 10)]
    ) {
      $0.answer = (400, [UInt8](repeating: 1, count: 20))
      $0.request(1)
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 0)]) }
      $0.send { $0.writeWindowUpdate(10, stream: 1) }
      #expect($0.seen.contents[1]?.count == 10)
      $0.send { $0.writeWindowUpdate(1, stream: 1) }
      #expect($0.seen.contents[1]?.count == 11)
    },
    Requirement("6.9.2", "INITIAL_WINDOW_SIZE does not move the connection's window", .shown) {
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 100_000)]) }
      $0.answer = (400, [UInt8](repeating: 1, count: 80_000))
      $0.request(1)
      #expect($0.seen.contents[1]?.count == 65_535)
    },
    Requirement(
      "6.9.2", "a window that it opens while the connection's is closed is used later", .shown,
      settings: [Setting(.initialWindowSize, 10)]
    ) {
      $0.answer = (400, [UInt8](repeating: 1, count: 30))
      $0.request(1)
      $0.answer = (400, [UInt8](repeating: 1, count: 65_525))
      $0.request(3)
      $0.send { $0.writeWindowUpdate(65_515, stream: 3) }
      #expect($0.seen.ended == [3] && $0.seen.contents[1]?.count == 10)
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 65_535)]) }
      $0.send { $0.writeWindowUpdate(1_000) }
      #expect($0.seen.ended == [1, 3])
    },
    Requirement(
      "6.9.2", "a stream's window that INITIAL_WINDOW_SIZE moves above 2³¹−1 is an error",
      .connectionError(.flowControlError)
    ) {
      $0.open(1)
      $0.send { $0.writeWindowUpdate(0x7fff_ffff - 65_535, stream: 1) }
      $0.send { $0.writeSettings([Setting(.initialWindowSize, 65_536)]) }
    },
    Requirement(
      "6.9.3", "a smaller window than usual holds once the client has acknowledged it", .shown, greets: false,
      options: ServerOptions().with(\.streamWindow, 100)
    ) {
      $0.send {
        $0.writePreface()
        $0.writeSettings([])
      }
      $0.open(1)
      $0.data(1, [UInt8](repeating: 0, count: 1_000), ends: false)
      $0.data(1, [UInt8](repeating: 0, count: 16_384))
      #expect($0.seen.statuses[1] == [200])
      $0.send { $0.writeSettingsAcknowledgement() }
      $0.open(3)
      $0.data(3, [UInt8](repeating: 0, count: 101))
      #expect($0.seen.resets == [3: .flowControlError])
    },
  ]
}

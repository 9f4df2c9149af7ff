import Bytes
import HTTP2
import Testing

@Suite("Contents of frames") struct FrameContentTests {
  private func parse(_ type: FrameType, _ flags: FrameFlags, stream: UInt32, _ payload: [UInt8]) throws -> FrameContent
  {
    let header = FrameHeader(type, flags: flags, stream: stream, payloadLength: payload.count)
    return try FrameContent(parsing: payload.rawBytes, of: header)
  }

  /// The frame that is written, and what its payload is read as.
  private func read(_ write: (inout ByteWriter) -> Void) throws -> (header: FrameHeader, content: FrameContent) {
    let bytes = frames(write)
    let parsed = FrameHeader(parsing: bytes.rawBytes)
    let header = try #require(parsed)
    #expect(header.frameLength == bytes.count)
    return (header, try FrameContent(parsing: bytes.rawBytes.extracting(9..<bytes.count), of: header))
  }

  @Test("What is written is read, whatever the type") func roundTrip() throws {
    #expect(try read { $0.writePing(7) }.content == .ping(7, isAcknowledgement: false))
    #expect(try read { $0.writePing(7, isAcknowledgement: true) }.content == .ping(7, isAcknowledgement: true))
    #expect(try read { $0.writeReset(.cancel, stream: 3) }.content == .reset(.cancel))
    #expect(try read { $0.writeReset(.cancel, stream: 3) }.header.stream == 3)
    #expect(try read { $0.writeWindowUpdate(9, stream: 5) }.content == .windowUpdate(9))
    #expect(
      try read { $0.writeGoAway(lastStream: 7, .internalError, debugData: [1, 2]) }.content
        == .goAway(lastStream: 7, .internalError, debugData: 8..<10))
    #expect(try read { $0.writeSettings([]) }.content == .settings(isAcknowledgement: false))
    #expect(try read { $0.writeSettingsAcknowledgement() }.content == .settings(isAcknowledgement: true))
    let settings = [Setting(.initialWindowSize, 70_000), Setting(SettingName(rawValue: 0x4242), 7)]
    let bytes = frames { $0.writeSettings(settings) }
    #expect(Setting.list(bytes.rawBytes.extracting(9..<bytes.count)) == settings)
  }

  @Test("Padding and priority are around the block, and have their own rules") func padding() throws {
    #expect(try parse(.data, .padded, stream: 1, [2, 9, 9, 0, 0]) == .data(1..<3))
    #expect(try parse(.data, .padded, stream: 1, [0]) == .data(1..<1))
    #expect(try parse(.data, [], stream: 1, []) == .data(0..<0))
    let priority = StreamPriority(dependency: 3, isExclusive: true, weight: 16)
    #expect(
      try parse(.headers, [.padded, .priority], stream: 1, [1, 0x80, 0, 0, 3, 15, 0x82, 0])
        == .headers(block: 6..<7, priority: priority))
    #expect(try parse(.priority, [], stream: 1, [0x80, 0, 0, 3, 15]) == .priority(priority))
    #expect(
      try parse(.pushPromise, .padded, stream: 1, [1, 0x80, 0, 0, 2, 0x82, 0]) == .pushPromise(stream: 2, block: 5..<6))
    #expect(try parse(.pushPromise, [], stream: 1, [0, 0, 0, 2]) == .pushPromise(stream: 2, block: 4..<4))
    #expect(try parse(.continuation, .endHeaders, stream: 1, [0x82]) == .continuation(block: 0..<1))
    #expect(try parse(FrameType(rawValue: 77), [], stream: 0, [1]) == .undefined)
  }

  @Test(
    "Each size and stream that a type cannot have is the rule of its section",
    arguments: [
      (.data, [], 0, [], .dataOnConnection), (.data, .padded, 1, [1], .dataPadding),
      (.data, .padded, 1, [], .frameTooShort),
      (.headers, [], 0, [], .headersOnConnection), (.headers, .priority, 1, [0, 0, 0, 0], .frameTooShort),
      (.headers, .padded, 1, [2, 0], .headersPadding), (.priority, [], 0, [0, 0, 0, 0, 0], .priorityOnConnection),
      (.priority, [], 1, [0, 0, 0, 0], .prioritySize), (.reset, [], 0, [0, 0, 0, 0], .resetOnConnection),
      (.reset, [], 1, [0, 0, 0, 0, 0], .resetSize), (.settings, [], 1, [], .settingsOnStream),
      (.settings, [], 0, [0], .settingsSize),
      (.settings, .acknowledgement, 0, [0, 1, 0, 0, 0, 0], .settingsAcknowledgementSize),
      (.pushPromise, [], 0, [0, 0, 0, 2], .pushPromiseOnConnection), (.pushPromise, [], 1, [0, 0, 0], .frameTooShort),
      (.pushPromise, .padded, 1, [1, 0, 0, 0, 2], .pushPromisePadding),
      (.ping, [], 1, [0, 0, 0, 0, 0, 0, 0, 0], .pingOnStream),
      (.ping, [], 0, [0], .pingSize), (.goAway, [], 1, [0, 0, 0, 0, 0, 0, 0, 0], .goAwayOnStream),
      (.goAway, [], 0, [0, 0, 0, 0, 0, 0, 0], .goAwaySize), (.windowUpdate, [], 1, [0, 0, 0], .windowUpdateSize),
      (.windowUpdate, [], 1, [0x80, 0, 0, 0], .windowIncrementZero),
      (.continuation, [], 0, [], .continuationOnConnection),
      (.settings, [], 0, [0, 2, 0, 0, 0, 2], .enablePush),
      (.settings, [], 0, [0, 4, 0x80, 0, 0, 0], .initialWindowSize),
      (.settings, [], 0, [0, 5, 0, 0, 0x3f, 0xff], .maximumFrameSize),
      (.settings, [], 0, [0, 5, 1, 0, 0, 0], .maximumFrameSize),
    ] as [(FrameType, FrameFlags, UInt32, [UInt8], Rule)])
  func faults(type: FrameType, flags: FrameFlags, stream: UInt32, payload: [UInt8], rule: Rule) {
    #expect(throws: Violation(rule, stream: type == .settings && payload.count == 6 && stream == 0 ? 0 : stream)) {
      try parse(type, flags, stream: stream, payload)
    }
  }

  @Test("The limits of settings are allowed") func limits() throws {
    for (name, value) in [(2, 1), (4, 0x7fff_ffff), (5, 16_384), (5, 16_777_215)] as [(UInt16, UInt32)] {
      let setting = Setting(SettingName(rawValue: name), value)
      #expect(throws: Never.self) { try read { $0.writeSettings([setting]) } }
    }
    var settings = Settings()
    for setting in [
      Setting(.headerTableSize, 1), Setting(.enablePush, 0), Setting(.maximumConcurrentStreams, 2),
      Setting(.initialWindowSize, 3), Setting(.maximumFrameSize, 20_000), Setting(.maximumHeaderListSize, 4),
      Setting(.maximumFrameSize, 5),
    ] { settings.apply(setting) }
    #expect(settings.headerTableSize == 1 && !settings.isPushEnabled && settings.maximumConcurrentStreams == 2)
    #expect(
      settings.initialWindowSize == 3 && settings.maximumFrameSize == 20_000 && settings.maximumHeaderListSize == 4)
  }
}

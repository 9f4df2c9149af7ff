import BinaryProtocol
import Bytes
import Testing

/// What is refused, from which length on, and what the error says.
@Suite("Limits and malformed records")
struct LimitTests {
  static let small = ProtocolLimits(maximumFrameLength: 60, maximumTokenLength: 40, maximumPayloadLength: 50)

  /// The extent of `kind`'s record as its header tells it, the rest being zeros in abundance.
  private func extent(_ kind: RecordKind, _ header: String, _ limits: ProtocolLimits) -> RecordExtent {
    kind.extent(of: Array(hex: header) + Array(repeating: 0, count: 200), at: 0, limits: limits)
  }

  /// The error with its place; equality of errors leaves the place out.
  private func problem(_ extent: RecordExtent) -> (problem: ParseError.Problem, offset: Int)? {
    if case .malformed(let error) = extent { (error.problem, error.offset) } else { nil }
  }

  @Test("The frame length")
  func frameLength() throws {
    #expect(extent(.notification, "02 0000003c", Self.small) == .complete(65))
    let error = try #require(problem(extent(.notification, "02 0000003d", Self.small)))
    #expect(error == (.frameTooLong(61), 1))
  }

  @Test("The token length of commands 0 and 1 and of feedback tuples")
  func tokenLength() throws {
    // Command 0: 1 + 2 + 40 + 2 bytes and a payload of 0; command 1 has 8 bytes more; a tuple is 4 + 2 + 40 bytes.
    #expect(extent(.notification, "00 0028", Self.small) == .complete(45))
    #expect(extent(.notification, "01 0000000100000002 0028", Self.small) == .complete(53))
    #expect(extent(.feedback, "5620f340 0028", Self.small) == .complete(46))

    let simple = try #require(problem(extent(.notification, "00 0029", Self.small)))
    #expect(simple == (.tokenTooLong(41), 1))
    let enhanced = try #require(problem(extent(.notification, "01 0000000100000002 0029", Self.small)))
    #expect(enhanced == (.tokenTooLong(41), 9))
    let tuple = try #require(problem(extent(.feedback, "5620f340 0029", Self.small)))
    #expect(tuple == (.tokenTooLong(41), 4))
  }

  @Test("The payload length of commands 0 and 1")
  func payloadLength() throws {
    #expect(extent(.notification, "00 0002 aaaa 0032", Self.small) == .complete(57))
    #expect(extent(.notification, "01 0000000100000002 0002 aaaa 0032", Self.small) == .complete(65))

    let simple = try #require(problem(extent(.notification, "00 0002 aaaa 0033", Self.small)))
    #expect(simple == (.payloadTooLong(51), 5))
    let enhanced = try #require(problem(extent(.notification, "01 0000000100000002 0002 aaaa 0033", Self.small)))
    #expect(enhanced == (.payloadTooLong(51), 13))
  }

  /// The frame length bounds what a frame holds, and its end is known whatever its items say.
  @Test("Items of a frame are bounded by the frame alone")
  func itemsWithinFrame() throws {
    let limits = ProtocolLimits(maximumFrameLength: 60, maximumTokenLength: 3, maximumPayloadLength: 3)
    let bytes = Array(hex: "02 0000000e 01 0004 aaaaaaaa 02 0004 bbbbbbbb")
    let read = try #require(try RecordKind.notification.parse(whole: bytes, limits: limits).notification)
    #expect(read.token == [0xaa, 0xaa, 0xaa, 0xaa])
    #expect(read.payload == [0xbb, 0xbb, 0xbb, 0xbb])
  }

  @Test("By default everything documented or seen in the field is inside the limits")
  func defaults() throws {
    for length in [0, 5, 7, 8, 32, 54, 68, 80, 100] {
      for payload in [256, 2_048, 4_096, 65_535] {
        let (token, payload) = ([UInt8](repeating: 1, count: length), [UInt8](repeating: 0x20, count: payload))
        let simple = written {
          BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &$0)
        }
        let framed = written {
          BinaryFrame.encodeFramed(
            token: token.rawBytes, payload: payload.rawBytes, identifier: 1, expiration: 2, priority: 10, into: &$0)
        }
        for bytes in [simple, framed] {
          #expect(RecordKind.notification.extent(of: bytes, at: 0) == .complete(bytes.count))
        }
      }
    }
  }

  @Test("A frame length of 4 GiB is refused by default and asks for 4 GiB where that is allowed")
  func fourGigabytes() throws {
    let error = try #require(problem(extent(.notification, "02 ffffffff", ProtocolLimits())))
    #expect(error == (.frameTooLong(4_294_967_295), 1))
    let unlimited = ProtocolLimits(maximumFrameLength: .max)
    #expect(extent(.notification, "02 ffffffff", unlimited) == .incomplete(needed: 4_294_967_300))
  }

  @Test("Every first byte but 0, 1 and 2 is an unknown command", arguments: 3...255 as ClosedRange<UInt8>)
  func unknownCommand(command: UInt8) throws {
    let error = try #require(problem(RecordKind.notification.extent(of: [command], at: 0)))
    #expect(error == (.unknownCommand(command), 0))
  }

  @Test("Five zero bytes are padding; one more makes them a notification")
  func emptyNotification() throws {
    let padding = try #require(problem(RecordKind.notification.extent(of: Array(hex: "00 0000 0000"), at: 0)))
    #expect(padding == (.emptyNotification, 0))
    #expect(RecordKind.notification.extent(of: Array(hex: "00 0000 0001 7b"), at: 0) == .complete(6))
    #expect(RecordKind.notification.extent(of: Array(hex: "00 0001 aa 0000"), at: 0) == .complete(6))
    // Command 1 starts with a 1, so its zeros are no padding.
    let enhanced = Array(hex: "01 00000000 00000000 0000 0000")
    #expect(RecordKind.notification.extent(of: enhanced, at: 0) == .complete(13))
  }

  @Test("An item that overruns its frame is named; the frame's end is known all the same")
  func itemOverrun() throws {
    // The second item stands at 5 + 3 + 2 = 10 and claims one byte more than the frame has left.
    let bytes = Array(hex: "02 0000000b 03 0002 aaaa 02 0004 7b7d7d")
    #expect(RecordKind.notification.extent(of: bytes, at: 0) == .complete(16))
    var offset = 0
    let error = #expect(throws: ParseError.self) {
      try RecordKind.notification.parse(bytes + [0xff, 0xff], at: &offset)
    }
    #expect(error?.problem == .itemOverrun(item: 2, length: 4))
    #expect(error?.offset == 10)
    #expect(offset == 0)
  }

  @Test("One or two bytes at the end of a frame are a cut item header", arguments: [1, 2])
  func itemHeaderCut(left: Int) throws {
    let bytes =
      Array(hex: "02 000000") + [UInt8(5 + left)] + Array(hex: "03 0002 aaaa") + Array(repeating: 1, count: left)
    let error = #expect(throws: ParseError.self) { try RecordKind.notification.parse(whole: bytes) }
    #expect(error?.problem == .itemHeaderCut)
    #expect(error?.offset == 10)
  }

  /// rapns 2011 wrote three bytes of payload length: 00 00 61. The first two are the length, and the boundary is lost.
  @Test("A three-byte payload length reads as an empty payload and an unknown command")
  func threeBytePayloadLength() {
    let bytes = Array(hex: "01 00000001 00015180 0002 aaaa 000061") + Array(repeating: 0x7b, count: 0x61)
    let (records, consumed, error) = RecordKind.notification.parseAll(bytes)
    #expect(records.count == 1)
    #expect(records.first?.notification?.payload == [])
    #expect(consumed == 15)
    #expect(error?.problem == .unknownCommand(0x61))
  }

  @Test("Equality of errors is by problem only")
  func equality() {
    #expect(ParseError(.itemHeaderCut, at: 5) == ParseError(.itemHeaderCut, at: 9))
    #expect(ParseError(.tokenTooLong(41), at: 1) != ParseError(.tokenTooLong(42), at: 1))
    #expect(ParseError(.tokenTooLong(41), at: 1) != ParseError(.payloadTooLong(41), at: 1))
    #expect(RecordExtent.malformed(ParseError(.itemHeaderCut, at: 5)) == .malformed(ParseError(.itemHeaderCut, at: 9)))
  }

  @Test("The error says what is wrong and where")
  func description() {
    #expect("\(ParseError(.unknownCommand(255), at: 0))" == "unknown command 255 at offset 0")
    let overrun = "\(ParseError(.itemOverrun(item: 2, length: 43_690), at: 40))"
    #expect(overrun.contains("item 2") && overrun.contains("43690") && overrun.hasSuffix("at offset 40"))
    for problem in [.frameTooLong(77), .tokenTooLong(77), .payloadTooLong(77)] as [ParseError.Problem] {
      #expect("\(problem)".contains("77"))
    }
  }
}

@Suite("Error responses")
struct ErrorResponseTests {
  static let documented: [UInt8: String] = [
    0: "no error", 1: "processing error", 2: "missing device token", 3: "missing topic", 4: "missing payload",
    5: "invalid token size", 6: "invalid topic size", 7: "invalid payload size", 8: "invalid token", 10: "shutdown",
    128: "protocol error", 255: "none (unknown)",
  ]

  @Test("Every status is a value; the documented ones have the guide's names", arguments: 0...255 as ClosedRange<UInt8>)
  func status(code: UInt8) throws {
    let status = ErrorResponse.Status(rawValue: code)
    #expect(status.description == Self.documented[code] ?? "unknown")
    #expect(status.isDocumented == (Self.documented[code] != nil))
    let response = ErrorResponse(status: status, identifier: 0x0102_0304)
    let bytes: [UInt8] = [8, code, 1, 2, 3, 4]
    #expect(try RecordKind.response.parse(whole: bytes) == .response(response))
  }

  @Test(
    "Another command byte than 8 makes a response only of six bytes that are all", arguments: [0, 1, 7, 9, 60, 255])
  func otherCommands(command: UInt8) throws {
    func whole(_ bytes: [UInt8]) -> ErrorResponse? { ErrorResponse(wholeAnswer: bytes.rawBytes) }
    func mayBecomeOne(_ bytes: [UInt8]) -> Bool { ErrorResponse.mayBecomeWholeAnswer(bytes.rawBytes) }
    for code in 0...255 as ClosedRange<UInt8> {
      let bytes: [UInt8] = [command, code, 0, 0, 0, 9]
      let error = #expect(throws: ParseError.self) { try RecordKind.response.parse(whole: bytes) }
      #expect(error?.problem == .unknownResponse(command: command, status: code))
      #expect(error?.offset == 0)
      let isDocumented = Self.documented[code] != nil
      let response = ErrorResponse(command: command, status: .init(rawValue: code), identifier: 9)
      #expect(whole(bytes) == (isDocumented ? response : nil))
      // More or less than that is none, whatever it begins with.
      #expect(whole(bytes + [0]) == nil)
      for length in 0..<6 {
        let part = Array(bytes.prefix(length))
        #expect(whole(part) == nil)
        #expect(mayBecomeOne(part) == (isDocumented || length < 2))
      }
      #expect(!mayBecomeOne(bytes + [8]))
    }
  }
}

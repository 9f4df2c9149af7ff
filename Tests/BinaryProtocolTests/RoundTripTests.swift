import BinaryProtocol
import Bytes
import PushModel
import TestSupport
import Testing

@Suite("Round trips")
struct RoundTripTests {
  @Test("A written notification is read as it was meant", arguments: 1...40 as ClosedRange<UInt64>)
  func notifications(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<25 {
      let made = random.notification()
      let read = try #require(try RecordKind.notification.parse(whole: made.bytes).notification)
      #expect(read.command == made.command)
      #expect(read.identifier == made.identifier)
      #expect(read.expiration == made.expiration)
      #expect(read.priority == made.priority)
      #expect(read.token == made.token)
      #expect(read.payload == made.payload)
      #expect(read.frame == made.bytes)
      #expect(read.isKnownBad == made.token?.isEmpty)
      #expect(!read.hasUnknownItems && !read.hasUnusualItemOrder)
      #expect(try RecordKind.notification.reencode(made.bytes) == made.bytes)
    }
  }

  @Test("Items of any kind in any order survive", arguments: 1...60 as ClosedRange<UInt64>)
  func items(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<20 {
      let items = random.items()
      let bytes = written { BinaryFrame.encodeFramed(items: items, into: &$0) }
      let read = try #require(try RecordKind.notification.parse(whole: bytes).notification)
      let expected = Meaning(of: items)
      #expect(read.items == items)
      #expect(read.token == expected.token)
      #expect(read.payload == expected.payload)
      #expect(read.identifier == expected.identifier)
      #expect(read.expiration == expected.expiration)
      #expect(read.priority == expected.priority)
      #expect(read.unknownItems == expected.unknown)
      #expect(read.hasUnknownItems == !expected.unknown.isEmpty)
      #expect(read.hasUnusualItemOrder == !expected.isRising)
      #expect(read.isKnownBad == (expected.token ?? []).isEmpty)
      #expect(try RecordKind.notification.reencode(bytes) == bytes)
    }
  }

  /// What a list of items means: the first one that fits its id counts, everything else is kept as unknown.
  struct Meaning {
    var token: [UInt8]?
    var payload: [UInt8]?
    var identifier: UInt32?
    var expiration: UInt32?
    var priority: UInt8?
    var unknown: [FrameItem] = []
    var isRising: Bool

    init(of items: [FrameItem]) {
      let ids = items.map(\.id.rawValue)
      isRising = zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 }
      for item in items {
        let number = item.data.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        switch (item.id.rawValue, item.data.count) {
        case (1, _) where token == nil: token = item.data
        case (2, _) where payload == nil: payload = item.data
        case (3, 4) where identifier == nil: identifier = number
        case (4, 4) where expiration == nil: expiration = number
        case (5, 1) where priority == nil: priority = item.data[0]
        default: unknown.append(item)
        }
      }
    }
  }

  @Test("The order of the items is shown as it was on the wire")
  func itemOrder() throws {
    func flag(_ ids: [UInt8]) throws -> Bool {
      let items = ids.map { FrameItem(id: .init(rawValue: $0), data: Array(repeating: 0, count: $0 == 5 ? 1 : 4)) }
      let bytes = written { BinaryFrame.encodeFramed(items: items, into: &$0) }
      return try #require(try RecordKind.notification.parse(whole: bytes).notification).hasUnusualItemOrder
    }
    #expect(try !flag([1, 2, 3, 4, 5]))
    #expect(try !flag([1, 2, 5]))
    #expect(try !flag([]))
    #expect(try !flag([0, 1, 2]))
    #expect(try flag([3, 1, 2, 4, 5]))
    #expect(try flag([1, 2, 4, 3]))
    #expect(try flag([1, 1, 2]))
    #expect(try flag([0, 0]))
  }

  @Test("A frame that is nearly usual is read as its items say", arguments: 0..<9)
  func nearlyUsual(header: Int) throws {
    // Items 3, 4 and 5; their headers are at 0, 7 and 14.
    let rest: [UInt8] = [3, 0, 4, 1, 2, 3, 4, 4, 0, 4, 5, 6, 7, 8, 5, 0, 1, 9]
    let place = header / 3 * 7 + header % 3
    // The payload ends in what should come after it, so that reading at a wrong place finds what it looks for.
    for first in rest.indices {
      for end in first...rest.count {
        for change in [1, 0xff, 0] as [UInt8] {
          var changed = rest
          changed[place] &+= change
          let payload = Array(rest[first..<end])
          let items = Frame.item(1, [7, 7]) + Frame.item(2, payload) + changed
          let frame = Frame.around(items)
          let fitting = PushFields(fitting: frame.rawBytes)
          guard let fields = try? PushFields(parsing: frame.rawBytes) else { continue }
          #expect(fields == fitting, "payload \(payload), then \(changed)")
          if change == 0 { #expect(fields.expiration == 0x0506_0708 && fields.priority == 9) }
        }
      }
    }
  }

  @Test("A frame that ends a little before or behind the usual items is read as its items say, or not at all")
  func nearlyUsualLength() {
    let rest: [UInt8] = [3, 0, 4, 1, 2, 3, 4, 4, 0, 4, 5, 6, 7, 8, 5, 0, 1, 9]
    let more: [[UInt8]] = [[0], [0, 0], [6, 0, 0], [6, 0, 1], [6, 0, 1, 0], [5, 0, 1, 8], [6, 0, 2, 0, 0]]
    for tail in rest.indices.map({ Array(rest.prefix($0)) }) + more.map({ rest + $0 }) {
      for payload in [[], [0x7b, 0x7d], rest] as [[UInt8]] {
        expectAsItsItems(Frame.item(1, [7, 7]) + Frame.item(2, payload) + tail)
      }
    }
    for payload in [[], [0x7b, 0x7d], rest] as [[UInt8]] {
      for change in -9...9 where change + payload.count >= 0 {
        expectAsItsItems(Frame.item(1, [7, 7]) + Frame.item(2, length: payload.count + change, payload) + rest)
        expectAsItsItems(Frame.item(1, length: 9 + change, rest.dropLast(9)) + Frame.item(2, payload) + rest)
      }
      // Tokens that end in the header of a payload which goes on to the usual items.
      for length in 0...9 {
        let header = Frame.item(2, length: length + 3 + payload.count, [UInt8](repeating: 7, count: length))
        expectAsItsItems(Frame.item(1, [7] + header) + Frame.item(2, payload) + rest)
      }
    }
  }

  /// One item after the other, the frame is whole or not, and has the fields of the items that fit.
  private func expectAsItsItems(_ items: [UInt8]) {
    var place = 0
    while place + 2 < items.count { place += 3 + Int(items[place + 1]) << 8 + Int(items[place + 2]) }
    let frame = Frame.around(items)
    let fields = try? PushFields(parsing: frame.rawBytes)
    #expect((fields != nil) == (place == items.count), "\(items)")
    let fitting = PushFields(fitting: frame.rawBytes)
    #expect(fields == nil || fields == fitting, "\(items)")
  }

  @Test("Absent is not zero, and absent is not empty")
  func absence() throws {
    let nothing = try #require(try RecordKind.notification.parse(whole: Array(hex: "02 00000000")).notification)
    #expect(nothing.token == nil && nothing.payload == nil)
    #expect(nothing.identifier == nil && nothing.expiration == nil && nothing.priority == nil)
    #expect(nothing.items.isEmpty)

    // pushy's last frame of a connection: 24 bytes, every item there, token and payload empty.
    let zeros = Array(hex: "02 00000018 03 0004 00000000 01 0000 02 0000 04 0004 00000000 05 0001 00")
    let known = try #require(try RecordKind.notification.parse(whole: zeros).notification)
    #expect(known.token == [] && known.payload == [])
    #expect(known.identifier == 0 && known.expiration == 0 && known.priority == 0)
    #expect(known.isKnownBad)

    let simple = try #require(try RecordKind.notification.parse(whole: Array(hex: "00 0001 aa 0000")).notification)
    #expect(simple.identifier == nil && simple.expiration == nil && simple.priority == nil)
    #expect(simple.payload == [])
    #expect(!simple.isKnownBad)
  }

  @Test("An error response is read as it was written", arguments: 1...20 as ClosedRange<UInt64>)
  func responses(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<50 {
      let response = random.response()
      let bytes = written { response.encode(into: &$0) }
      #expect(bytes.count == ErrorResponse.length)
      #expect(bytes[0] == 8 && bytes[1] == response.status.rawValue)
      #expect(try RecordKind.response.parse(whole: bytes) == .response(response))
      #expect(try RecordKind.response.reencode(bytes) == bytes)
    }
  }

  @Test("A feedback tuple is read as it was written", arguments: 1...20 as ClosedRange<UInt64>)
  func feedback(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<20 {
      let (timestamp, token) = (random.uint32(), random.token())
      let bytes = written { FeedbackTuple(timestamp: timestamp, token: token.rawBytes).encode(into: &$0) }
      #expect(bytes.count == 6 + token.count)
      #expect(try RecordKind.feedback.parse(whole: bytes) == .feedback(timestamp: timestamp, token: token))
      #expect(try RecordKind.feedback.reencode(bytes) == bytes)
    }
  }

  @Test("The longest fields are written and read", arguments: [0, 1] as [UInt8])
  func longestFields(command: UInt8) throws {
    let (token, payload) = ([UInt8](repeating: 0x11, count: 65_535), [UInt8](repeating: 0x22, count: 65_535))
    let bytes = written { output in
      if command == 0 {
        BinaryFrame.encodeSimple(token: token.rawBytes, payload: payload.rawBytes, into: &output)
      } else {
        BinaryFrame.encodeEnhanced(
          identifier: 1, expiration: 2, token: token.rawBytes, payload: payload.rawBytes, into: &output)
      }
    }
    let limits = ProtocolLimits(maximumTokenLength: 65_535)
    let read = try #require(try RecordKind.notification.parse(whole: bytes, limits: limits).notification)
    #expect(read.token == token)
    #expect(read.payload == payload)
  }
}

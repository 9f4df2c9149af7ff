import Bytes
import DeviceProtocol
import TestSupport
import Testing

/// Messages behind their lengths, in any pieces and either order of bytes.
@Suite("Framing of messages")
struct MessageFramingTests {
  typealias Order = MessageFraming.ByteOrder

  private static func framed(_ bodies: [String], _ order: Order) -> [UInt8] {
    bodies.flatMap { body -> [UInt8] in
      let length = UInt32(body.utf8.count)
      let header = (0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * UInt32($0))) }
      return (order == .bigEndian ? header.reversed() : header) + Array(body.utf8)
    }
  }

  /// Reads a stream that arrives in pieces.
  private static func read(_ stream: [UInt8], _ framing: MessageFraming, pieces: [Int] = []) throws -> (
    bodies: [String], order: Order?, rest: Int
  ) {
    var framing = framing
    var (bodies, held, offset): ([String], [UInt8], Int) = ([], [], 0)
    for piece in pieces + [stream.count] {
      let end = min(stream.count, offset + piece)
      held += stream[offset..<end]
      offset = end
      while true {
        let range = try framing.next(held.rawBytes)
        guard let range else { break }
        bodies.append(String(decoding: held[range], as: UTF8.self))
        held.removeFirst(range.upperBound)
      }
    }
    return (bodies, framing.order, held.count)
  }

  private static let bodies = [#"{"a":1}"#, "{}", #"{"b":"}{"}"#, "{\"c\":\"\(String(repeating: "x", count: 300))\"}"]

  @Test("Every piece of a stream gives the same messages", arguments: Order.allCases, [true, false])
  func pieces(order: Order, isKnown: Bool) throws {
    let stream = Self.framed(Self.bodies, order)
    for seed in 0..<200 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let pieces = (0..<20).map { _ in Int.random(in: 0...40, using: &random) }
      let read = try Self.read(stream, MessageFraming(order: isKnown ? order : nil), pieces: pieces)
      #expect(read.bodies == Self.bodies && read.order == order && read.rest == 0, "seed \(seed)")
    }
  }

  @Test("A length that both orders read tells nothing, and one where both are possible is told by its object")
  func ambiguous() throws {
    // 0x0000_0100 and 0x0001_0000; 0x0101_0101 is the same in both, and too long.
    let short = "{\"a\":\"\(String(repeating: "x", count: 256 - 8))\"}"
    let long = "{\"a\":\"\(String(repeating: "x", count: 65_536 - 8))\"}"
    for order in Order.allCases {
      for first in [short, long] {
        let read = try Self.read(Self.framed([first, "{}"], order), MessageFraming(longestBody: 1 << 20))
        #expect(read.bodies == [first, "{}"] && read.order == order)
      }
    }
    let same = "{\"a\":\"\(String(repeating: "x", count: 0x10100 - 8))\"}"
    #expect(Self.framed([same], .bigEndian) == Self.framed([same], .littleEndian))
    let read = try Self.read(Self.framed([same], .bigEndian), MessageFraming(longestBody: 1 << 20))
    #expect(read.bodies == [same] && read.order == nil)
  }

  @Test("A stream that ends within a message leaves it, and no other one")
  func cut() throws {
    for order in Order.allCases {
      let stream = Self.framed(Self.bodies, order)
      var end = 0
      let ends = Self.bodies.map { body -> Int in
        end += 4 + body.utf8.count
        return end
      }
      for length in 0..<stream.count {
        let read = try Self.read(Array(stream[..<length]), MessageFraming())
        let whole = ends.prefix { $0 <= length }.count
        #expect(read.bodies == Array(Self.bodies[..<whole]) && read.rest == length - (whole == 0 ? 0 : ends[whole - 1]))
      }
    }
  }

  @Test(
    "Bytes that are no message are a fault",
    arguments: [
      ([0, 0, 0, 0], .length(0)), ([0xff, 0xff, 0xff, 0xff], .length(0xffff_ffff)), ([0, 0, 0, 1], .length(1)),
      (Array("GET / HTTP/1.1\r\n".utf8), .length(0x4745_5420)), ([0, 0, 0, 2, 0x5b, 0x5d], .noObject),
      ([0, 0, 0, 3, 0x7b, 0x7d, 0x7d], .noOrder),
    ] as [([UInt8], MessageFraming.Fault)])
  func faults(bytes: [UInt8], fault: MessageFraming.Fault) {
    var framing = MessageFraming()
    #expect(throws: fault) { try framing.next(bytes.rawBytes) }
  }

  @Test("A body may have the longest length, and no byte more")
  func longest() throws {
    for length in [2, 3, 100] {
      for order in [Order.bigEndian, .littleEndian] {
        let body = "{" + String(repeating: " ", count: length - 2) + "}"
        let stream = Self.framed([body], order)
        for limit in [length, length - 1] where limit >= 2 {
          var framing = MessageFraming(order: order, longestBody: limit)
          if limit == length {
            let range = try framing.next(stream.rawBytes)
            #expect(range == 4..<4 + length)
          } else {
            #expect(throws: MessageFraming.Fault.length(UInt32(length))) { try framing.next(stream.rawBytes) }
          }
        }
      }
    }
  }
}

import BinaryProtocol
import PushModel
import Testing

@Suite("Faults that can be seen in a notification")
struct FaultsTests {
  private func faults(_ frame: [UInt8]) throws -> BinaryFaults {
    var offset = 0
    return try Push(parsing: frame.rawBytes, at: &offset).faults
  }

  private static func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x20, count: count) }

  @Test("Sizes of tokens and payloads")
  func sizes() throws {
    let cases: [(token: Int, payload: Int, faults: BinaryFaults)] = [
      (32, 1, []), (32, 256, []), (32, 257, .payloadSize), (31, 9, .tokenSize), (33, 9, .tokenSize),
      (0, 9, [.missingToken, .tokenSize]), (32, 0, .missingPayload), (1, 0, [.tokenSize, .missingPayload]),
      (100, 4_096, [.tokenSize, .payloadSize]),
    ]
    for (token, payload, expected) in cases {
      let (token, payload) = (Self.bytes(token), Self.bytes(payload))
      for frame in [
        Frame.framed(1, token: token, payload: payload), Frame.enhanced(1, token: token, payload: payload),
      ] {
        #expect(try faults(frame) == expected, "\(token.count) and \(payload.count) bytes")
      }
    }
    #expect(try faults(Frame.of(items: [])) == [.missingToken, .tokenSize, .missingPayload])
  }

  @Test("A payload with nothing to show may not have priority 10, which is that of frames without one")
  func silent() throws {
    let cases: [(frame: [UInt8], faults: BinaryFaults)] = [
      (Frame.framed(1, payload: Frame.silent, priority: 10), .silentAtOnce),
      (Frame.framed(1, payload: Frame.silent, priority: nil), .silentAtOnce),
      (Frame.framed(1, payload: Frame.silent, priority: 5), []),
      (Frame.framed(1, payload: Frame.silent, priority: 1), []),
      (Frame.enhanced(1, payload: Frame.silent), .silentAtOnce),
      (Frame.simple(payload: Frame.silent), .silentAtOnce), (Frame.framed(1, priority: 10), []),
    ]
    for (frame, expected) in cases {
      #expect(try faults(frame) == expected)
    }
  }

  @Test("A fault explains the status that names it, and no other", arguments: 0...255 as ClosedRange<UInt8>)
  func explained(status: UInt8) {
    let all: [(fault: BinaryFaults, status: UInt8)] = [
      (.silentAtOnce, 1), (.missingToken, 2), (.missingPayload, 4), (.tokenSize, 5), (.payloadSize, 7),
    ]
    for (fault, named) in all {
      #expect(fault.explains(.init(rawValue: status)) == (status == named))
    }
    let every = all.reduce(into: BinaryFaults()) { $0.formUnion($1.fault) }
    #expect(every.explains(.init(rawValue: status)) == all.contains { $0.status == status })
    #expect(BinaryFaults(rawValue: 0xff).explains(.init(rawValue: status)) == (1...7).contains(status))
  }
}

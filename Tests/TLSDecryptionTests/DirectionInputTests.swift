import Testing

@testable import TLSDecryption

/// Whether a direction's input is read or held: pieces in, the same pieces out.
@Suite struct DirectionInputTests {
  static let point = CapturePoint(time: 5, packet: 6)

  static func text(_ piece: DirectionInput.Piece) -> String {
    switch piece {
    case .bytes(let bytes, let point): "\(bytes.count) bytes in \(point.packet)"
    case .gap(let length, let reason, let point): "\(length) \(reason) in \(point.packet)"
    case .end(let point): "end in \(point.packet)"
    }
  }

  static func bytes(_ count: Int) -> DirectionInput.Piece { .bytes([UInt8](repeating: 1, count: count), point) }

  @Test("Input flows until there is a reason to wait") func inputFlows() {
    var input = DirectionInput()
    var total = 0
    #expect(!input.isWaiting)
    #expect(input.reason == nil)
    #expect(input.mayWait)
    #expect(input.release(total: &total).isEmpty)
    input.wait(for: .hello)
    #expect(input.isWaiting)
    #expect(input.reason == .hello)
    #expect(input.heldPieces == 0)
    #expect(input.release(total: &total).isEmpty)
    #expect(!input.isWaiting)
  }

  @Test("What is held comes out in its order") func heldInOrder() {
    var input = DirectionInput()
    let limits = TLSLimits()
    var total = 1_000
    input.wait(for: .keyExchange)
    input.hold(Self.bytes(3), limits, total: &total)
    input.hold(.gap(length: 7, .truncated, CapturePoint(time: 5, packet: 7)), limits, total: &total)
    input.hold(Self.bytes(200), limits, total: &total)
    input.hold(.end(CapturePoint(time: 5, packet: 8)), limits, total: &total)
    // A small piece counts for the memory that it takes.
    #expect(input.heldBytes == 128 + 128 + 200 + 128)
    #expect(total == 1_000 + input.heldBytes)
    #expect(
      input.release(total: &total).map(Self.text)
        == ["3 bytes in 6", "7 truncated in 7", "200 bytes in 6", "end in 8"])
    #expect(!input.isWaiting)
    #expect(input.heldBytes == 0)
    #expect(total == 1_000)
    #expect(input.mayWait)
  }

  @Test("A direction may go on waiting for something else") func reasonChanges() {
    var input = DirectionInput()
    var total = 0
    input.wait(for: .secrets(generation: 1))
    input.hold(Self.bytes(3), TLSLimits(), total: &total)
    input.wait(for: .secrets(generation: 2))
    #expect(input.reason == .secrets(generation: 2))
    #expect(input.heldPieces == 1)
    #expect(input.release(total: &total).map(Self.text) == ["3 bytes in 6"])
  }

  @Test("What was released may wait again with the rest") func waitsAgain() {
    var input = DirectionInput()
    let limits = TLSLimits()
    var total = 0
    input.wait(for: .hello)
    for count in [10, 20, 30] { input.hold(Self.bytes(count), limits, total: &total) }
    let released = input.release(total: &total)
    input.wait(for: .answer)
    for piece in released.dropFirst() { input.hold(piece, limits, total: &total) }
    #expect(input.reason == .answer)
    #expect(total == 256)
    #expect(input.release(total: &total).map(Self.text) == ["20 bytes in 6", "30 bytes in 6"])
    #expect(total == 0)
  }

  @Test("At the limit of a direction waiting is over for good") func limitOfADirection() {
    var input = DirectionInput()
    let limits = TLSLimits(maximumHeldBytes: 300)
    var total = 0
    input.wait(for: .hello)
    input.hold(Self.bytes(100), limits, total: &total)
    input.hold(Self.bytes(172), limits, total: &total)
    #expect(input.heldBytes == 300)
    #expect(input.mayWait)
    input.hold(.end(Self.point), limits, total: &total)
    #expect(!input.mayWait)
    // Nothing is lost: it is for its owner to release it.
    #expect(input.isWaiting)
    #expect(input.release(total: &total).count == 3)
    #expect(!input.mayWait)
  }

  @Test("The limit of all directions counts what others hold") func limitOfAllDirections() {
    var input = DirectionInput()
    let limits = TLSLimits(maximumTotalHeldBytes: 1_000)
    var total = 800
    input.wait(for: .hello)
    input.hold(Self.bytes(200), limits, total: &total)
    #expect(input.mayWait)
    input.hold(Self.bytes(1), limits, total: &total)
    #expect(!input.mayWait)
  }

  @Test("Waiting that is forbidden keeps what is held") func forbidden() {
    var input = DirectionInput()
    var total = 0
    input.wait(for: .hello)
    input.hold(Self.bytes(5), TLSLimits(), total: &total)
    input.forbidWaiting()
    #expect(!input.mayWait)
    #expect(input.isWaiting)
    #expect(input.heldPieces == 1)
  }
}

import Bytes

/// Writes payloads: of drawn sizes, or from a template.
struct PayloadMaker: Sendable {
  /// Letters that payloads are filled with; a place in them is drawn, and they begin again.
  private static let letters = Array("abcdefghijklmnopqrstuvwxyz".utf8)
  private static let opening: StaticString = "{\"aps\":{\"alert\":\""
  private static let closing: StaticString = "\"}}"
  /// Shortest payload of a drawn size: the JSON around nothing.
  static let shortest = 20
  static let longest = 65_535 - 4_096

  private enum Piece: Sendable {
    case text([UInt8])
    case index
    case random(Int)
  }

  private enum Source: Sendable {
    case sizes(Lottery<ClosedRange<Int>>)
    /// `length` is that of everything but the index, of which there are `indexes`.
    case template([Piece], length: Int, indexes: Int)
  }

  private let source: Source
  private let filler: [UInt8]

  init(_ payload: WorkloadPlan.Payload, start: Int) throws(Workload.PlanError) {
    switch payload {
    case .sizes(let mix):
      for part in mix.parts {
        guard part.value.lowerBound >= Self.shortest, part.value.upperBound <= Self.longest else {
          throw Workload.PlanError(
            "payloads of \(part.value.lowerBound) to \(part.value.upperBound) bytes: sizes are \(Self.shortest) to \(Self.longest)"
          )
        }
      }
      source = .sizes(try Lottery(mix, "payload sizes"))
      let longest = mix.parts.map(\.value.upperBound).max() ?? 0
      filler = (0..<longest + Self.letters.count + 4_096).map { Self.letters[$0 % Self.letters.count] }
    case .template(let text):
      let pieces = try Self.pieces(of: text, start: start)
      var (length, indexes) = (0, 0)
      for piece in pieces {
        switch piece {
        case .text(let bytes): length += bytes.count
        case .index: indexes += 1
        case .random(let count): length += count
        }
      }
      guard length + 20 * indexes <= Self.longest else {
        throw Workload.PlanError("the template makes payloads of more than \(Self.longest) bytes")
      }
      source = .template(pieces, length: length, indexes: indexes)
      filler = (0..<4_096 + Self.letters.count).map { Self.letters[$0 % Self.letters.count] }
    }
  }

  /// Bytes of the payload that `word` draws. The index in a template has always ten digits, so that it counts the same.
  @inline(__always)
  func size(_ word: UInt64) -> Int {
    switch source {
    case .sizes(let sizes):
      let range = sizes.isSingle ? sizes.first : sizes.draw(word)
      let width = UInt64(range.upperBound - range.lowerBound + 1)
      return range.lowerBound + Int((word &* 0x9e37_79b9_7f4a_7c15).multipliedFullWidth(by: width).high)
    case .template(_, let length, let indexes): return length + 10 * indexes
    }
  }

  /// Writes a payload of `size + extra` bytes.
  @inline(__always)
  func write(_ number: UInt64, size: Int, extra: Int, _ draw: UInt64, into output: inout ByteWriter) {
    switch source {
    case .sizes:
      output.write(Self.opening)
      let start = Int(truncatingIfNeeded: draw >> 40) % Self.letters.count
      output.write(filler.rawBytes.extracting(start..<start + size + extra - Self.shortest))
      output.write(Self.closing)
    case .template(let pieces, _, _): write(pieces, number, extra, draw, into: &output)
    }
  }

  private func write(_ pieces: [Piece], _ number: UInt64, _ extra: Int, _ draw: UInt64, into output: inout ByteWriter) {
    var state = draw
    for piece in pieces {
      switch piece {
      case .text(let bytes): output.write(bytes.rawBytes)
      case .index:
        var rest = number % 10_000_000_000
        var digits = InlineArray<10, UInt8>(repeating: 0x30)
        for place in (0..<10).reversed() {
          digits[place] = 0x30 + UInt8(rest % 10)
          rest /= 10
        }
        for place in 0..<10 { output.write(digits[place]) }
      case .random(let count):
        for _ in 0..<count {
          state = state &* 0xd134_2543_de82_ef95 &+ 1
          output.write(Self.letters[Int(state >> 59) % Self.letters.count])
        }
      }
    }
    // Behind the JSON text, where white space may stand.
    for _ in 0..<extra { output.write(UInt8(ascii: " ")) }
  }

  private static func pieces(of template: String, start: Int) throws(Workload.PlanError) -> [Piece] {
    var pieces: [Piece] = []
    var text: [UInt8] = []
    var rest = Array(template.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") else {
        text.append(byte)
        continue
      }
      guard byte == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}")),
        let piece = placeholder(String(decoding: rest[..<end], as: UTF8.self), start: start)
      else {
        // JSON is full of braces: one that opens no placeholder is itself.
        text.append(byte)
        continue
      }
      if !text.isEmpty { pieces.append(.text(text)) }
      text = []
      pieces.append(piece)
      rest = rest[(end + 1)...]
    }
    if !text.isEmpty { pieces.append(.text(text)) }
    guard !pieces.isEmpty else { throw Workload.PlanError("the template is empty") }
    return pieces
  }

  private static func placeholder(_ name: String, start: Int) -> Piece? {
    if name == "index" { return .index }
    if name == "time" { return .text(Array(String(start).utf8)) }
    guard name.hasPrefix("random:"), let count = Int(name.dropFirst(7)), (0...4_096).contains(count) else { return nil }
    return .random(count)
  }
}

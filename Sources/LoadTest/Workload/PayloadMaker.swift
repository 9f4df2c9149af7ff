import Bytes
import Measurement
import Payload

/// Writes payloads: of drawn sizes, from a template, of drawn kinds, or drawn from a list.
struct PayloadMaker: Sendable {
  static let opening: StaticString = "{\"aps\":{\"alert\":\""
  static let closing: StaticString = "\"}}"
  /// Shortest payload of a drawn size: the JSON around nothing.
  static let shortest = 20
  /// Longest payload; an oversize one still fits the length field.
  static let longest = 65_535 - WorkloadPush.oversize

  private enum Piece: Sendable {
    case text([UInt8])
    case index
    case random(Int)
    /// Digits that are replaced when the notification is written.
    case time(StampTime)
  }

  private enum Source: Sendable {
    /// `filler` is long enough for any payload that begins at any of the places that may be drawn.
    case letters(filler: [UInt8])
    /// `length` is that of everything but the index, of which there are `indexes`.
    case template([Piece], length: Int, indexes: Int)
    /// Numbers of pools are drawn.
    case kinds(WeightedChoice<Int>, [PayloadPool])
    /// Numbers of payloads are drawn.
    case listed(WeightedChoice<Int>, ListedPayloads)
  }

  private let source: Source
  /// Payloads of letters have one of these sizes; other payloads have none. Beside `source`, because asking an enum for
  /// arrays counts references for each notification.
  private let sizes: WeightedChoice<ClosedRange<Int>>
  /// Payloads are letters of a drawn size.
  let isOfLetters: Bool
  /// Payloads may need a priority.
  private let hasPriorities: Bool
  /// Payloads have times in them that are known only when they are written.
  let hasTimes: Bool
  /// Most bytes of a payload.
  let longestSize: Int
  /// Places in the filler at which a payload may begin, and after which it begins again.
  static let places = 26

  static func letter(_ number: Int) -> UInt8 { UInt8(ascii: "a") + UInt8(number % places) }

  init(_ payload: WorkloadPlan.Payload, seed: UInt64, start: Int) throws(Workload.PlanError) {
    var sizes = WorkloadPlan.Mix(Self.shortest...Self.shortest)
    switch payload {
    case .sizes(let mix):
      for range in mix.parts.map(\.value) {
        guard range.lowerBound >= Self.shortest, range.upperBound <= Self.longest else {
          throw Workload.PlanError(
            "payloads of \(range.lowerBound) to \(range.upperBound) bytes; sizes must be \(Self.shortest) to \(Self.longest)"
          )
        }
      }
      let longest = mix.parts.map(\.value.upperBound).max() ?? 0
      longestSize = longest
      sizes = mix
      source = .letters(
        filler: (0..<Self.places + longest + WorkloadPush.oversize).map(Self.letter))
    case .template(let text):
      let pieces = try Self.pieces(of: text, start: start)
      var (length, indexes) = (0, 0)
      for piece in pieces {
        switch piece {
        case .text(let bytes): length += bytes.count
        case .index: indexes += 1
        case .random(let count): length += count
        case .time: length += PushStamp.digits
        }
      }
      guard length + indexes > 0 else { throw Workload.PlanError("the template makes empty payloads") }
      longestSize = length + Self.digits(of: .max) * indexes
      guard longestSize <= Self.longest else {
        throw Workload.PlanError("the template makes payloads of more than \(Self.longest) bytes")
      }
      source = .template(pieces, length: length, indexes: indexes)
    case .kinds(let mix):
      let pools = mix.parts.map { PayloadPool($0.value, seed: seed) }
      longestSize = pools.map(\.longest).max() ?? 0
      let numbers = WorkloadPlan.Mix(mix.parts.enumerated().map { ($0.offset, $0.element.weight) })
      source = .kinds(try WeightedChoice(numbers, "kinds of payloads"), pools)
    case .listed(let list):
      let payloads = ListedPayloads(list)
      longestSize = payloads.longest
      guard longestSize <= Self.longest else {
        throw Workload.PlanError("the list has payloads of more than \(Self.longest) bytes")
      }
      let numbers = WorkloadPlan.Mix(list.entries.enumerated().map { ($0.offset, $0.element.weight) })
      source = .listed(try WeightedChoice(numbers, "listed payloads"), payloads)
    }
    self.sizes = try WeightedChoice(sizes, "payload sizes")
    isOfLetters = if case .letters = source { true } else { false }
    hasTimes =
      if case .template(let pieces, _, _) = source {
        pieces.contains { if case .time = $0 { true } else { false } }
      } else { false }
    hasPriorities =
      switch source {
      case .letters, .template: false
      case .kinds(_, let pools): pools.contains { $0.priority != nil }
      case .listed(_, let payloads): payloads.hasPriorities
      }
  }

  /// Bytes of notification `number`'s payload.
  @inline(__always)
  func size(of number: UInt64, _ random: NotificationRandom) -> Int {
    guard isOfLetters else { return otherSize(of: number, random) }
    let range = sizes.draw(random[.sizes])
    let width = UInt64(range.upperBound - range.lowerBound + 1)
    return range.lowerBound + Int(random[.size].multipliedFullWidth(by: width).high)
  }

  private func otherSize(of number: UInt64, _ random: NotificationRandom) -> Int {
    switch source {
    case .letters: Self.shortest
    case .template(_, let length, let indexes): length + Self.digits(of: number) * indexes
    case .kinds(let kinds, let pools): pools[kinds.draw(random[.sizes])].length(of: random[.text])
    case .listed(let choice, let payloads): payloads.length(of: choice.draw(random[.sizes]))
    }
  }

  /// The place in the alphabet at which a payload's letters begin.
  @inline(__always)
  static func place(_ random: NotificationRandom) -> Int { Int(truncatingIfNeeded: random[.text] % UInt64(places)) }

  /// The priority that a payload needs; `nil`: any will do.
  @inline(__always)
  func priority(_ random: NotificationRandom) -> UInt8? {
    guard hasPriorities else { return nil }
    switch source {
    case .letters, .template: return nil
    case .kinds(let kinds, let pools): return pools[kinds.draw(random[.sizes])].priority
    case .listed(let choice, let payloads): return payloads.priority(of: choice.draw(random[.sizes]))
    }
  }

  /// Writes a payload of `size + extra` bytes.
  @inline(__always)
  func write(_ number: UInt64, _ size: Int, extra: Int, _ random: NotificationRandom, into output: inout ByteWriter) {
    switch source {
    case .letters(let filler):
      output.write(Self.opening)
      let start = Self.place(random)
      output.write(filler.rawBytes.extracting(start..<start + size + extra - Self.shortest))
      output.write(Self.closing)
    case .template(let pieces, _, _):
      Self.write(pieces, number, random, into: &output)
      // Behind the JSON text, where white space may stand.
      for _ in 0..<extra { output.write(UInt8(ascii: " ")) }
    case .kinds(let kinds, let pools):
      pools[kinds.draw(random[.sizes])].write(random[.text], into: &output)
      for _ in 0..<extra { output.write(UInt8(ascii: " ")) }
    case .listed(let choice, let payloads):
      payloads.write(choice.draw(random[.sizes]), into: &output)
      for _ in 0..<extra { output.write(UInt8(ascii: " ")) }
    }
  }

  private static func write(
    _ pieces: [Piece], _ number: UInt64, _ random: NotificationRandom, into output: inout ByteWriter
  ) {
    var state = random[.text]
    for piece in pieces {
      switch piece {
      case .text(let bytes): output.write(bytes.rawBytes)
      case .index: output.write(decimal: number)
      case .time(let time): output.write(time.digits.rawBytes)
      case .random(let count):
        var left = count
        while left > 0 {
          state &+= SplitMix64.step
          // Eight letters a to p, each from four bits.
          let letters = SplitMix64.mixed(state) & 0x0f0f_0f0f_0f0f_0f0f &+ 0x6161_6161_6161_6161
          if left >= 8 { output.write(bigEndian: letters) } else { output.write(last: left, of: letters) }
          left -= 8
        }
      }
    }
  }

  /// Decimal digits of a number.
  private static func digits(of number: UInt64) -> Int {
    var (digits, limit) = (1, UInt64(10))
    while number >= limit {
      digits += 1
      if digits == 20 { break }
      limit &*= 10
    }
    return digits
  }
}

// MARK: templates

extension PayloadMaker {
  private static func pieces(of template: String, start: Int) throws(Workload.PlanError) -> [Piece] {
    var pieces: [Piece] = []
    var text: [UInt8] = []
    for time in StampTime.allCases where template.contains(time.placeholder) {
      throw Workload.PlanError("the template has the number \(time.placeholder), which stands for {\(time.rawValue)}")
    }
    var rest = Array(template.utf8)[...]
    while let byte = rest.popFirst() {
      // JSON is full of braces: one that opens no placeholder is itself. Placeholders are short.
      guard byte == UInt8(ascii: "{"), let end = rest.prefix(32).firstIndex(of: UInt8(ascii: "}")),
        let piece = try placeholder(String(decoding: rest[..<end], as: UTF8.self), start: start)
      else {
        text.append(byte)
        continue
      }
      rest = rest[(end + 1)...]
      if case .text(let bytes) = piece {
        text += bytes
      } else {
        if !text.isEmpty { pieces.append(.text(text)) }
        text = []
        pieces.append(piece)
      }
    }
    if !text.isEmpty { pieces.append(.text(text)) }
    return pieces
  }

  private static func placeholder(_ name: String, start: Int) throws(Workload.PlanError) -> Piece? {
    if name == "index" { return .index }
    if name == "time" { return .text(Array(String(start).utf8)) }
    if let time = StampTime(rawValue: name) { return .time(time) }
    let digits = name.dropFirst("random:".count)
    guard name.hasPrefix("random:"), !digits.isEmpty, digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    guard let count = Int(digits), (0...4_096).contains(count) else {
      throw Workload.PlanError("{\(name)} in the template: the number of letters must be 0 to 4096")
    }
    return .random(count)
  }
}

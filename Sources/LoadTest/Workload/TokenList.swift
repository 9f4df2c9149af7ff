import BinaryProtocol
import Bytes
import PushModel

/// Device tokens that a workload sends to instead of made ones: in their order, and from the first again.
///
/// Tokens may have different lengths. A token that is listed again gets more notifications and has one number, which is
/// its place among the different tokens. A token of 32 bytes takes about 50 bytes of memory.
public struct TokenList: Sendable, Equatable {
  /// The maximum number of tokens, with those that are listed again.
  public static let maximumCount = 10_000_000
  /// The maximum length of all different tokens together, in bytes.
  public static let maximumBytes = 1 << 30

  // The different tokens one behind the other, so that all loops read the same memory and count no references.
  private var bytes: [UInt8] = []
  private var ends: [UInt32] = []
  /// The numbers of the tokens in their order; empty as long as all tokens are different, when place and number agree.
  private var order: [UInt32] = []
  /// An open hash table of tokens by their bytes. 0: free; otherwise a token's number and 1.
  private var slots: [UInt32] = []
  /// Bytes of the shortest and the longest token.
  private(set) var lengths = 0...0

  /// An empty list, to which lines of a file are added.
  package init() {}

  /// Makes a list of tokens, each of 1 to 65,535 bytes.
  ///
  /// - Throws: when there is none, or when a token or the list is too long.
  public init(_ tokens: some Sequence<[UInt8]>) throws(Workload.PlanError) {
    for token in tokens { try append(token.rawBytes) }
    guard count > 0 else { throw Workload.PlanError("the list of tokens is empty") }
  }

  /// The number of tokens, with those that are listed again.
  public var count: Int { order.isEmpty ? ends.count : order.count }
  /// The number of different tokens.
  public var differentCount: Int { ends.count }
  /// Bytes of every token; `nil` when tokens have different lengths.
  package var length: Int? { lengths.lowerBound == lengths.upperBound ? lengths.lowerBound : nil }

  /// Adds the token of a line, which is hexadecimal in either case; what follows a `#` is a comment.
  ///
  /// A line of the list of devices that `apnscope simulate --devices-file` reads is a token, too: a word for the state of the
  /// device is passed over.
  package mutating func add(line: RawSpan) throws(Workload.PlanError) {
    var words: [Range<Int>] = []
    var start: Int?
    for offset in 0...line.byteCount {
      let byte = offset < line.byteCount ? line.byte(at: offset) : UInt8(ascii: "#")
      if byte == UInt8(ascii: "#") || RecordMembers.isSpace(byte) {
        if let begun = start { words.append(begun..<offset) }
        start = nil
        if byte == UInt8(ascii: "#") { break }
      } else if start == nil {
        start = offset
      }
    }
    guard let digits = words.first else { return }
    guard digits.count.isMultiple(of: 2) else {
      throw Workload.PlanError("the token has an odd number of hexadecimal digits")
    }
    var token = ByteWriter(capacity: digits.count / 2)
    guard token.write(bytesOfHexadecimal: line.extracting(digits)) else {
      throw Workload.PlanError("\(Self.quoted(line.extracting(digits))) is not a token in hexadecimal digits")
    }
    for word in words.dropFirst() where !Self.isState(line.extracting(word)) || words.count > 2 {
      throw Workload.PlanError("unexpected \(Self.quoted(line.extracting(word))) after the token")
    }
    try append(token.bytes)
  }

  private mutating func append(_ token: RawSpan) throws(Workload.PlanError) {
    guard (1...65_535).contains(token.byteCount) else {
      throw Workload.PlanError("a token has \(token.byteCount) bytes; expected 1 to 65535")
    }
    guard count < Self.maximumCount else { throw Workload.PlanError("more than \(Self.maximumCount) tokens") }
    if 2 * (ends.count + 1) > slots.count { grow() }
    let slot = slot(of: token)
    if slots[slot] > 0 {
      // The first token that is listed again: from now on places and numbers differ.
      if order.isEmpty { order = Array(0..<UInt32(ends.count)) }
      order.append(slots[slot] - 1)
      return
    }
    guard bytes.count + token.byteCount <= Self.maximumBytes else {
      throw Workload.PlanError("the tokens exceed \(Self.maximumBytes) bytes")
    }
    let length = token.byteCount
    lengths = ends.isEmpty ? length...length : min(lengths.lowerBound, length)...max(lengths.upperBound, length)
    bytes.append(copying: token)
    if !order.isEmpty { order.append(UInt32(ends.count)) }
    ends.append(UInt32(bytes.count))
    slots[slot] = UInt32(ends.count)
  }

  /// The slot that has the token, or the free one where it belongs.
  private func slot(of token: RawSpan) -> Int {
    var slot = Int(truncatingIfNeeded: ContentDigest(token).value) & (slots.count - 1)
    while slots[slot] > 0, !self.token(slots[slot] - 1).elementsEqual(token) { slot = (slot + 1) & (slots.count - 1) }
    return slot
  }

  private mutating func grow() {
    slots = [UInt32](repeating: 0, count: max(64, 2 * slots.count))
    for number in 0..<UInt32(ends.count) { slots[slot(of: token(number))] = number + 1 }
  }

  private func range(of number: UInt32) -> Range<Int> {
    let place = Int(number)
    return (place == 0 ? 0 : Int(ends[place - 1]))..<Int(ends[place])
  }

  @_lifetime(borrow self)
  private func token(_ number: UInt32) -> RawSpan { bytes.rawBytes.extracting(range(of: number)) }

  private static func isState(_ word: RawSpan) -> Bool {
    ["active", "offline", "uninstalled", "unknown"].contains { (state: StaticString) in
      word.byteCount == state.utf8CodeUnitCount && word.holds(state, at: 0)
    }
  }

  /// A word for a message: not all of it, and without what would disturb a terminal.
  private static func quoted(_ word: RawSpan) -> String {
    let shown = (0..<min(24, word.byteCount)).map {
      (0x20...0x7e).contains(word.byte(at: $0)) ? word.byte(at: $0) : 0x3f
    }
    return "'\(String(decoding: shown, as: UTF8.self))\(word.byteCount > 24 ? "…" : "")'"
  }
}

/// The values that a workload asks for at each notification: nothing here allocates.
extension TokenList {
  /// The number of the token that notification `number` of the stream goes to.
  @inline(__always)
  func token(ofNotification number: UInt64) -> UInt64 {
    if order.isEmpty { return number % UInt64(ends.count) }
    return UInt64(order[Int(truncatingIfNeeded: number % UInt64(order.count))])
  }

  @inline(__always)
  func length(ofToken number: UInt64) -> Int { range(of: UInt32(truncatingIfNeeded: number)).count }

  /// Writes `length` bytes: the token, or its beginning, or the token and zeros behind it.
  func write(_ number: UInt64, length: Int, isInvalid: Bool, into output: inout ByteWriter) {
    let token = range(of: UInt32(truncatingIfNeeded: number))
    var offset = 0
    if isInvalid {
      output.write(bigEndian: DeviceToken.invalidPrefix)
      offset = 8
    }
    let end = min(length, token.count)
    output.write(bytes.rawBytes.extracting(token.lowerBound + offset..<token.lowerBound + end))
    for _ in end..<length { output.write(UInt8(0)) }
  }

  /// The number of a token; `nil` for one that is not listed.
  func number(of token: RawSpan) -> UInt64? {
    guard !slots.isEmpty else { return nil }
    let found = slots[slot(of: token)]
    return found > 0 ? UInt64(found - 1) : nil
  }
}

/// As texts of hexadecimal digits, in their order.
extension TokenList: Codable {
  public init(from decoder: any Decoder) throws {
    var list = try decoder.unkeyedContainer()
    while !list.isAtEnd {
      let digits = Array(try list.decode(String.self).utf8)
      do {
        try add(line: digits.rawBytes)
      } catch {
        throw DecodingError.dataCorruptedError(in: list, debugDescription: "\(error)")
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var list = encoder.unkeyedContainer()
    for place in 0..<UInt64(count) {
      var digits = ByteWriter()
      let token = range(of: UInt32(truncatingIfNeeded: token(ofNotification: place)))
      digits.write(hex: bytes.rawBytes.extracting(token))
      try list.encode(String(decoding: Array(copying: digits.bytes), as: UTF8.self))
    }
  }
}

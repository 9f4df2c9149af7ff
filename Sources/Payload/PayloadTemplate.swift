import Bytes

/// The common form of payloads that a provider fills in from one template: the judgement of one is that of all.
///
/// Fixed bytes alternate with holes: places where any content of their class leads to the same judgement in the same
/// environment, provided that there are no localized strings to look keys up in.
package struct PayloadTemplate: Sendable {
  /// The contents that may be at a place.
  private enum Hole: UInt8, Sendable {
    /// A text that is shown: not empty, without escapes, `&` and the byte EE, and not beginning like an object.
    case text
    /// The contents of a string that nothing is judged of, without escapes.
    case data
    /// A whole number without a sign.
    case digits
  }

  private struct Piece: Sendable {
    /// The number of fixed bytes before the hole.
    let length: Int
    let hole: Hole
  }

  /// The fixed bytes, one after the other.
  private let fixed: [UInt8]
  private let pieces: [Piece]
  private let size: SizeClass

  /// Lengths between which no limit of any year lies.
  private enum SizeClass: Sendable {
    case upTo256, upTo2048, upTo4096, longer

    init(_ count: Int) {
      self =
        switch count {
        case ...256: .upTo256
        case ...2_048: .upTo2048
        case ...4_096: .upTo4096
        default: .longer
        }
    }
  }

  /// The template of a payload that is JSON in UTF-8 from its first byte to its last.
  ///
  /// - Parameter tape: the tape that was read from `payload`, without a fault.
  /// - Returns: `nil` if nothing of the payload can vary, or an object has a key twice.
  /// - Complexity: O(*n*) in the length of the payload, with three allocations.
  init?(of payload: RawSpan, _ tape: JSONTape) {
    guard tape.kind(0) == .object, tape.repeatedKey == nil else { return nil }
    var places = Places(tape: tape)
    tape.forEachKey(ofObject: 0) { key in
      if tape.isKey(key, "aps", payload) {
        places.addAPS(key + 1, payload)
      } else if !tape.isKey(key, "mdm", payload) {
        places.addData(key + 1, payload)
      }
    }
    guard !places.found.isEmpty else { return nil }
    var fixed: [UInt8] = []
    var pieces: [Piece] = []
    var place = 0
    for (range, hole) in places.found {
      fixed.append(copying: payload.extracting(place..<range.lowerBound))
      pieces.append(Piece(length: range.lowerBound - place, hole: hole))
      place = range.upperBound
    }
    fixed.append(copying: payload.extracting(place..<payload.byteCount))
    (self.fixed, self.pieces, size) = (fixed, pieces, SizeClass(payload.byteCount))
  }

  /// Whether a payload was made of this template: then it is judged as the one that the template was found in.
  ///
  /// - Complexity: O(*n*) in the length of the payload; nothing is allocated.
  package func matches(_ payload: RawSpan) -> Bool {
    guard SizeClass(payload.byteCount) == size else { return false }
    let (fixed, pieces) = (fixed.rawBytes, pieces.span)
    var (place, known) = (0, 0)
    for number in pieces.indices {
      let piece = pieces[number]
      guard payload.byteCount - place >= piece.length,
        payload.extracting(place..<place + piece.length).elementsEqual(fixed.extracting(known..<known + piece.length)),
        let end = Self.end(of: piece.hole, payload, from: place + piece.length)
      else { return false }
      (place, known) = (end, known + piece.length)
    }
    return payload.extracting(place..<payload.byteCount)
      .elementsEqual(fixed.extracting(known..<fixed.byteCount))
  }

  /// The offset after the contents of a hole that begins at `start`; `nil` if it has other contents.
  @inline(__always)
  private static func end(of hole: Hole, _ payload: RawSpan, from start: Int) -> Int? {
    if hole == .digits { return endOfDigits(payload, from: start) }
    guard let end = payload.endOfPlainJSONString(from: start) else { return nil }
    return hole == .data || isShown(payload.extracting(start..<end)) ? end : nil
  }

  private static func endOfDigits(_ payload: RawSpan, from start: Int) -> Int? {
    var end = start
    while end < payload.byteCount, (0x30...0x39).contains(payload.byte(at: end)) { end += 1 }
    // Further digits after a zero are not JSON.
    return end > start && (payload.byte(at: start) != 0x30 || end == start + 1) ? end : nil
  }

  /// Whether a text is shown as it is: no rule is about its characters, and it holds no object.
  private static func isShown(_ text: RawSpan) -> Bool {
    guard text.byteCount > 0, !text.contains(UInt8(ascii: "&"), or: EscapedText.privateUse) else { return false }
    let first = text.byte(at: 0)
    // White space may come before an object, and some of it is not ASCII.
    return first > 0x20 && first < 0x7f && first != UInt8(ascii: "{") || text.firstOffset(of: UInt8(ascii: "{")) == nil
  }

  /// The holes of a payload, in their order.
  private struct Places {
    let tape: JSONTape
    private(set) var found: [(range: Range<Int>, hole: Hole)] = []

    init(tape: JSONTape) { self.tape = tape }

    /// Adds the values in `aps` that may vary.
    mutating func addAPS(_ aps: Int, _ payload: RawSpan) {
      guard tape.kind(aps) == .object else { return }
      tape.forEachKey(ofObject: aps) { key in
        let value = key + 1
        switch tape.knownKey(key, payload) {
        case .alert where tape.kind(value) == .object: addAlert(value, payload)
        case .alert: add(value, .text, payload)
        case .badge: add(value, .digits, payload)
        case .threadID: add(value, .data, payload)
        case .urlArgs: addElements(value, .data, payload)
        default: break
        }
      }
    }

    private mutating func addAlert(_ alert: Int, _ payload: RawSpan) {
      tape.forEachKey(ofObject: alert) { key in
        switch tape.knownKey(key, payload) {
        case .title, .subtitle, .body: add(key + 1, .text, payload)
        case .locArgs, .titleLocArgs, .subtitleLocArgs: addElements(key + 1, .text, payload)
        default: break
        }
      }
    }

    private mutating func addElements(_ array: Int, _ hole: Hole, _ payload: RawSpan) {
      guard tape.kind(array) == .array else { return }
      tape.forEachElement(ofArray: array) { add($0, hole, payload) }
    }

    /// Adds the values in the app's own data that may vary: contents of strings and digits of numbers, no keys.
    mutating func addData(_ value: Int, _ payload: RawSpan) {
      var keys: Set<Int> = []
      for index in value..<Int(tape.nodes[value].next) {
        switch tape.kind(index) {
        case .object: tape.forEachKey(ofObject: index) { keys.insert($0) }
        case .string where !keys.contains(index): add(index, .data, payload)
        case .number: add(index, .digits, payload)
        default: break
        }
      }
    }

    private mutating func add(_ value: Int, _ hole: Hole, _ payload: RawSpan) {
      let range: Range<Int>
      switch (tape.kind(value), hole) {
      case (.string, .text), (.string, .data): range = tape.contents(value)
      case (.number, .digits): range = Int(tape.nodes[value].start)..<Int(tape.nodes[value].end)
      default: return
      }
      guard PayloadTemplate.end(of: hole, payload, from: range.lowerBound) == range.upperBound else { return }
      found.append((range, hole))
    }
  }
}

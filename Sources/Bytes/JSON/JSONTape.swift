/// JSON text read in one pass into a flat list of its values, in the order of the text (RFC 8259, strict).
///
/// The memory is reused for the next text, so reading many small texts allocates nothing. Values are looked up by their
/// index; the root's is 0, which is no member's. Exactly the texts that are valid for `JSONText` are read without a
/// fault.
@usableFromInline package struct JSONTape: Sendable {
  @usableFromInline package enum Kind: UInt8, Sendable {
    case object, array, string, number, literalTrue, literalFalse, null
  }

  /// One value, or the key of a member, which directly precedes its value.
  @frozen @usableFromInline package struct Node: Sendable {
    /// The offset at which it begins: for a string, that of its opening quote.
    @usableFromInline package let start: UInt32
    /// The offset after its last byte.
    @usableFromInline package internal(set) var end: UInt32
    /// The index of what follows it and all that is in it.
    @usableFromInline package internal(set) var next: UInt32
    @usableFromInline package let kind: Kind
    /// It is a string with a backslash.
    package internal(set) var hasEscapes = false
    /// It is a key that is repeated later in the same object.
    @usableFromInline package internal(set) var isRepeated = false
  }

  @usableFromInline package internal(set) var nodes: [Node] = []
  /// Bytes of white space outside strings.
  package private(set) var whiteSpace = 0
  /// The offset of the first white space outside of strings.
  package private(set) var firstWhiteSpace: Int?
  /// The offset of the first escape that is half of a surrogate pair.
  package private(set) var loneSurrogate: Int?
  /// The offset of the first key that its object already has.
  package internal(set) var repeatedKey: Int?

  /// The indices of all values and keys.
  package var indices: Range<Int> { nodes.indices }

  /// Longest text that is read, in bytes: 1 GiB. Longer text is a fault at its first byte too many.
  package static var longestText: Int { 1 << 30 }

  package init() {}

  /// Reads all of `text`, and replaces the previous content; the first fault ends reading.
  ///
  /// Linear in the length, except for objects of several keys: up to 16 keys are compared with each other, more are put
  /// into a set.
  package mutating func read(_ text: RawSpan) -> JSONFault? {
    reset()
    let count = text.byteCount
    guard count <= Self.longestText else { return JSONFault(.other, at: Self.longestText) }
    var offset = 0
    var expected = JSONText.Expectation.value
    // The index of the innermost open object or array; until it is closed, its `next` is the index of the enclosing
    // one.
    var open = -1
    var depth = 0
    var inObject = false

    while offset < count {
      let byte = text.byte(at: offset)
      switch byte {
      case 0x20, 0x0a, 0x0d, 0x09:
        if whiteSpace == 0 { firstWhiteSpace = offset }
        whiteSpace += 1
        offset += 1
      case UInt8(ascii: "\""):
        guard expected != .commaOrEnd, expected != .colon, expected != .nothing else {
          return .found(in: text, at: offset, expected, inObject)
        }
        guard let end = appendString(text, from: offset) else {
          return .found(in: text, at: offset, expected, inObject)
        }
        offset = end
        expected =
          expected == .key || expected == .keyOrEnd ? .colon : depth == 0 ? .nothing : .commaOrEnd
      case UInt8(ascii: ":"):
        guard expected == .colon else { return .found(in: text, at: offset, expected, inObject) }
        expected = .value
        offset += 1
      case UInt8(ascii: ","):
        guard expected == .commaOrEnd else { return .found(in: text, at: offset, expected, inObject) }
        expected = inObject ? .key : .value
        offset += 1
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard expected == .value || expected == .valueOrEnd, depth < JSONText.deepestNesting else {
          return .found(in: text, at: offset, expected, inObject)
        }
        inObject = byte == UInt8(ascii: "{")
        open = appendOpen(inObject ? .object : .array, at: offset, within: open)
        depth += 1
        offset += 1
        expected = inObject ? .keyOrEnd : .valueOrEnd
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        let closesObject = byte == UInt8(ascii: "}")
        guard depth > 0, closesObject == inObject,
          expected == .commaOrEnd || expected == (closesObject ? .keyOrEnd : .valueOrEnd)
        else { return .found(in: text, at: offset, expected, inObject) }
        offset += 1
        open = close(open, at: offset, text)
        depth -= 1
        inObject = open >= 0 && nodes[open].kind == .object
        expected = depth == 0 ? .nothing : .commaOrEnd
      default:
        guard expected == .value || expected == .valueOrEnd, let end = JSONLexer.endOfScalar(text, from: offset) else {
          return .found(in: text, at: offset, expected, inObject)
        }
        append(Self.kind(ofScalar: byte), from: offset, to: end)
        offset = end
        expected = depth == 0 ? .nothing : .commaOrEnd
      }
    }
    return expected == .nothing ? nil : JSONFault(.truncated, at: count)
  }

  @inline(__always)
  private mutating func append(_ kind: Kind, from start: Int, to end: Int) {
    nodes.append(
      Node(
        start: UInt32(truncatingIfNeeded: start), end: UInt32(truncatingIfNeeded: end),
        next: UInt32(truncatingIfNeeded: nodes.count + 1), kind: kind))
  }

  /// The offset after the string that begins at `start`; `nil` if it is not valid.
  @inline(__always)
  private mutating func appendString(_ text: RawSpan, from start: Int) -> Int? {
    var hasEscapes = false
    guard let end = JSONLexer.endOfString(text, from: start + 1, &hasEscapes) else { return nil }
    if hasEscapes, loneSurrogate == nil { loneSurrogate = JSONLexer.loneSurrogate(text, start + 1, end - 1) }
    append(.string, from: start, to: end)
    if hasEscapes { nodes[nodes.count - 1].hasEscapes = true }
    return end
  }

  /// Begins an object or array in another one, or in none with -1. Returns its index.
  @inline(__always)
  private mutating func appendOpen(_ kind: Kind, at start: Int, within open: Int) -> Int {
    nodes.append(
      Node(
        start: UInt32(truncatingIfNeeded: start), end: 0, next: UInt32(truncatingIfNeeded: open + 1), kind: kind))
    return nodes.count - 1
  }

  /// Ends an object or array. Returns the index of the one that it is in, or -1.
  @inline(__always)
  private mutating func close(_ closed: Int, at end: Int, _ text: RawSpan) -> Int {
    let enclosing = Int(nodes[closed].next) - 1
    nodes[closed].end = UInt32(truncatingIfNeeded: end)
    nodes[closed].next = UInt32(truncatingIfNeeded: nodes.count)
    // One member has two nodes or more.
    if nodes[closed].kind == .object, nodes.count - closed > 3 { markRepeatedKeys(ofObject: closed, text) }
    return enclosing
  }

  @inline(__always)
  private static func kind(ofScalar first: UInt8) -> Kind {
    switch first {
    case UInt8(ascii: "t"): .literalTrue
    case UInt8(ascii: "f"): .literalFalse
    case UInt8(ascii: "n"): .null
    default: .number
    }
  }

  private mutating func reset() {
    nodes.removeAll(keepingCapacity: true)
    whiteSpace = 0
    firstWhiteSpace = nil
    loneSurrogate = nil
    repeatedKey = nil
  }

  // MARK: walking

  /// Calls `body` with the index of each key of an object that comes not again later; its value is the next index.
  @inlinable @inline(__always)
  package func forEachKey(ofObject object: Int, _ body: (_ key: Int) -> Void) {
    var key = object + 1
    let end = Int(nodes[object].next)
    while key < end {
      if !nodes[key].isRepeated { body(key) }
      key = Int(nodes[key + 1].next)
    }
  }

  /// Calls `body` with the index of each element of an array.
  @inlinable @inline(__always)
  package func forEachElement(ofArray array: Int, _ body: (_ element: Int) -> Void) {
    var element = array + 1
    let end = Int(nodes[array].next)
    while element < end {
      body(element)
      element = Int(nodes[element].next)
    }
  }

  @inlinable @inline(__always)
  package func kind(_ index: Int) -> Kind { nodes[index].kind }
}

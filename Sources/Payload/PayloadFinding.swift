import Bytes

/// One rule that a payload breaks, with its position.
public struct PayloadFinding: Sendable, Equatable {
  /// The particulars of a finding, for its message.
  public enum Detail: Sendable, Equatable {
    /// A number of bytes.
    case bytes(Int)
    /// The key, argument or value at the position.
    case key(String)
    /// A key, and the known key that it resembles.
    case suggestion(String, instead: String)
    /// A description of the payload's fault, in words.
    case note(String)
  }

  /// The rule that is broken.
  public let rule: PayloadRule
  /// The offset of the first byte of the payload that breaks the rule; `nil` if it is the payload as a whole, or its
  /// frame.
  public let offset: Int?
  /// The particulars; `nil` if the rule says everything.
  public let detail: Detail?

  /// A sentence for people: the fault, its effect and the particulars.
  public var message: String {
    let sentence = rule.explanation
    return switch detail {
    case nil: sentence
    case .bytes(let count): "\(sentence.dropLast()) (\(count) \(count == 1 ? "byte" : "bytes"))."
    case .key(let text), .note(let text): "\(sentence.dropLast()) (\(text))."
    case .suggestion(let key, let instead): "\(sentence.dropLast()) (\(key): is \(instead) meant?)."
    }
  }
}

/// A place in a text, for people: both numbers begin at 1.
public struct PayloadPosition: Sendable, Equatable {
  /// Lines end with a line feed, a carriage return, or both.
  public let line: Int
  /// The column in Unicode scalars, as editors count it.
  public let column: Int

  /// The position of the byte at `offset`, clamped to the end of the text.
  ///
  /// - Complexity: O(*n*) in `offset`.
  public init(offset: Int, in text: RawSpan) {
    var (line, column) = (1, 1)
    let end = min(max(offset, 0), text.byteCount)
    for index in 0..<end {
      let byte = text.byte(at: index)
      let isReturn = byte == 0x0d && !(index + 1 < text.byteCount && text.byte(at: index + 1) == 0x0a)
      if byte == 0x0a || isReturn {
        line += 1
        column = 1
      } else if byte & 0xc0 != 0x80 {
        column += 1
      }
    }
    (self.line, self.column) = (line, column)
  }
}

/// The verdict on one payload.
public struct PayloadJudgement: Sendable, Equatable {
  /// The rules that the payload breaks.
  public var rules: PayloadRuleSet
  /// The purpose of the push; `invalid` if the payload is no object that devices read.
  public var kind: PayloadKind
  /// The effects that the payload asks for.
  public var effects: PayloadEffects
  /// Positions and details, sorted by position, findings about the whole payload first; empty unless requested. Rules
  /// about keys and texts have a finding for each key and text, other rules one.
  public var findings: [PayloadFinding]

  /// Whether the payload breaks no rule.
  public var isClean: Bool { rules.isEmpty }
}

/// A set of rules in two machine words; its order is the order of the codes.
public struct PayloadRuleSet: Sendable, Hashable, Sequence, ExpressibleByArrayLiteral {
  @usableFromInline var low: UInt64 = 0
  @usableFromInline var high: UInt64 = 0

  /// Makes the empty set.
  public init() {}

  /// Makes a set of the listed rules.
  public init(arrayLiteral rules: PayloadRule...) {
    for rule in rules { insert(rule) }
  }

  /// Makes a set of the rules in a sequence.
  public init(_ rules: some Sequence<PayloadRule>) {
    for rule in rules { insert(rule) }
  }

  /// Whether there is no rule in the set.
  @inlinable public var isEmpty: Bool { low | high == 0 }
  /// The number of rules.
  public var count: Int { low.nonzeroBitCount + high.nonzeroBitCount }

  /// Adds a rule, unless it is in the set.
  public mutating func insert(_ rule: PayloadRule) {
    let ordinal = rule.ordinal
    if ordinal < 64 { low |= 1 << UInt64(ordinal) } else { high |= 1 << UInt64(ordinal - 64) }
  }

  /// Whether the rule is in the set.
  public func contains(_ rule: PayloadRule) -> Bool {
    let ordinal = rule.ordinal
    return (ordinal < 64 ? low >> UInt64(ordinal) : high >> UInt64(ordinal - 64)) & 1 == 1
  }

  /// Whether the set has all rules of another one.
  @inlinable
  public func isSuperset(of other: Self) -> Bool { other.low & ~low | other.high & ~high == 0 }

  /// Adds the rules of another set.
  @inlinable
  public mutating func formUnion(_ other: Self) {
    low |= other.low
    high |= other.high
  }

  /// The rules that are in either set.
  public func union(_ other: Self) -> Self {
    var union = self
    union.formUnion(other)
    return union
  }

  /// Whether the set contains an error.
  public var hasErrors: Bool { !isEmpty && contains { $0.severity == .error } }

  /// The codes, sorted.
  public var codes: [String] { map(\.code) }

  /// Iterates over the rules in the order of their codes.
  public struct Iterator: IteratorProtocol {
    var low: UInt64
    var high: UInt64

    /// The next rule; `nil` after the last.
    public mutating func next() -> PayloadRule? {
      let ordinal: Int
      if low != 0 {
        ordinal = low.trailingZeroBitCount
        low &= low - 1
      } else if high != 0 {
        ordinal = 64 + high.trailingZeroBitCount
        high &= high - 1
      } else {
        return nil
      }
      return PayloadRule.table[ordinal].rule
    }
  }

  /// An iterator over the rules in the order of their codes.
  public func makeIterator() -> Iterator { Iterator(low: low, high: high) }
}

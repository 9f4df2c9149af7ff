import Bytes

/// A cache of judgements, found by a digest of the payload and its environment, with the number of uses of each.
///
/// The user of a table makes the digest of all that a judgement depends on. At `limit` judgements, all are handed out
/// and forgotten together, so memory is bounded and no count is lost.
public struct JudgementTable: Sendable {
  /// A judgement and its uses.
  public struct Entry: Sendable {
    /// 0 where there is none.
    @usableFromInline var digest: UInt64 = 0
    /// The rules that the payload breaks.
    public var rules = PayloadRuleSet()
    /// The number of calls of `count(_:)` for it.
    public var count = 0
    /// The caller's mark from the first judgement, such as the number of a packet.
    public var mark = 0
    /// The purpose of the push.
    public var kind = PayloadKind.invalid
    /// The effects that the payload asks for.
    public var effects: PayloadEffects = []
  }

  /// A hash table with open addressing: its size is a power of two, and at least twice the number of entries.
  @usableFromInline var entries = [Entry](repeating: Entry(), count: 512)
  private var kept = 0
  private let limit: Int
  private var judge = PayloadJudge()
  /// The number of payloads that were judged, including repeated ones that had been forgotten.
  public private(set) var judged = 0

  /// Makes an empty table.
  ///
  /// - Parameter limit: the most judgements that are kept, at least 1.
  public init(limit: Int) { self.limit = max(1, limit) }

  /// A digest seed for an environment's year, topic, and the protocol's longest payload.
  package static func seed(era: Int?, topic: PayloadTopic, longestPayload: Int? = nil) -> UInt64 {
    UInt64(truncatingIfNeeded: era ?? 0) << 40 ^ topic.number << 56 ^ 0x2545_f491_4f6c_dd1d
      ^ UInt64(truncatingIfNeeded: longestPayload ?? 0) &* 0x9e37_79b9_7f4a_7c15
  }

  /// The key of a judgement: the payload, its frame's command and priority, and the rest of the environment.
  @inlinable @inline(__always)
  package static func digest(of payload: RawSpan, command: UInt8, priority: UInt8?, seed: UInt64) -> UInt64 {
    digest(of: payload, environment: environment(command: command, priority: priority, seed: seed))
  }

  /// A number for all that a judgement depends on beside the payload; other environments have other numbers.
  @inlinable @inline(__always)
  package static func environment(command: UInt8, priority: UInt8?, seed: UInt64) -> UInt64 {
    let form = command < 2 ? 0 : priority.map { UInt64($0) + 2 } ?? 1
    return seed ^ (form &* 0x9e37_79b9_7f4a_7c15)
  }

  @inlinable @inline(__always)
  package static func digest(of payload: RawSpan, environment: UInt64) -> UInt64 {
    ContentDigest(payload, seed: environment).value | 1
  }

  /// The index of the judgement with a digest, valid until the next one is added; `nil` if there is none.
  ///
  /// - Complexity: O(1) on average.
  @inlinable @inline(__always)
  public func index(of digest: UInt64) -> Int? {
    var index = Int(truncatingIfNeeded: digest >> 20) & (entries.count - 1)
    while entries[index].digest != digest {
      if entries[index].digest == 0 { return nil }
      index = (index + 1) & (entries.count - 1)
    }
    return index
  }

  /// Counts another use of the judgement at an index.
  @inlinable @inline(__always)
  public mutating func count(_ index: Int) { entries[index].count += 1 }

  /// The judgement at an index.
  @inlinable
  public subscript(index: Int) -> Entry {
    @inline(__always) get { entries[index] }
  }

  /// Judges a payload that has no judgement yet, and keeps the judgement.
  ///
  /// - Parameters:
  ///   - digest: the digest of the payload and its environment.
  ///   - payload: the bytes as they were sent.
  ///   - environment: facts about the sending.
  ///   - mark: the caller's mark, kept with the judgement.
  ///   - forgotten: receives each judgement that is dropped to make room.
  /// - Returns: the index of the judgement.
  public mutating func add(
    _ digest: UInt64, _ payload: RawSpan, in environment: PayloadEnvironment, mark: Int = 0,
    forgotten: (Entry) -> Void
  ) -> Int {
    if kept >= limit { removeAll(forgotten) }
    if (kept + 1) * 2 > entries.count { grow() }
    let judgement = judge.judge(payload, in: environment)
    judged += 1
    kept += 1
    let index = freePlace(digest)
    entries[index] = Entry(
      digest: digest, rules: judgement.rules, mark: mark, kind: judgement.kind, effects: judgement.effects)
    return index
  }

  /// The template of the payload that was added last; `nil` if payloads like it have to be judged one by one.
  package func template(ofLast payload: RawSpan) -> PayloadTemplate? { judge.template(ofLast: payload) }

  /// The findings with positions, for an example; nothing is kept.
  public mutating func findings(of payload: RawSpan, in environment: PayloadEnvironment) -> [PayloadFinding] {
    judge.judge(payload, in: environment, findsPlaces: true).findings
  }

  private func freePlace(_ digest: UInt64) -> Int {
    var index = Int(truncatingIfNeeded: digest >> 20) & (entries.count - 1)
    while entries[index].digest != 0 { index = (index + 1) & (entries.count - 1) }
    return index
  }

  private mutating func grow() {
    let old = entries
    entries = [Entry](repeating: Entry(), count: old.count * 2)
    for entry in old where entry.digest != 0 { entries[freePlace(entry.digest)] = entry }
  }

  private mutating func removeAll(_ forgotten: (Entry) -> Void) {
    for index in entries.indices where entries[index].digest != 0 {
      forgotten(entries[index])
      entries[index] = Entry()
    }
    kept = 0
  }

  /// Calls `body` with each kept judgement, in no particular order.
  public func eachKept(_ body: (Entry) -> Void) {
    for entry in entries where entry.digest != 0 { body(entry) }
  }
}

extension PayloadTopic {
  fileprivate var number: UInt64 {
    switch self {
    case .unknown: 0
    case .app: 1
    case .newsstand: 2
    case .voip: 3
    case .wallet: 4
    case .web: 5
    case .management: 6
    case .complication: 7
    }
  }
}

extension PushFrame {
  /// Whether a frame may break one of the rules about expirations and tokens. Few do; this quick check excludes the
  /// others.
  ///
  /// - Parameter sentAt: seconds since 1970, if known.
  @inlinable @inline(__always)
  package static func mayBeFaulty(
    command: UInt8, expiration: UInt32?, sentAt: Int64?, token: RawSpan
  ) -> Bool {
    if let expiration, command > 0 {
      guard expiration >= 1_000_000_000, expiration < 0x7fff_ffff else { return true }
      if let sentAt {
        let seconds = Int64(expiration) - sentAt
        guard seconds > 0, seconds <= 366 * 86_400 else { return true }
      }
    }
    guard token.byteCount == 32 else { return true }
    // No digit, letter or space has a byte above 7f, so one such byte shows that the token is not text.
    let (first, second) = (token.uint64(at: 0), token.uint64(at: 8))
    return first == second || (first | second) & 0x8080_8080_8080_8080 == 0
  }
}

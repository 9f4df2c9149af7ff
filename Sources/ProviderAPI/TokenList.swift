import Bytes
import HTTP2

/// The different provider tokens of a connection. A repeated value is recognised by how it was coded, or else by a digest;
/// no value is kept.
struct TokenList: Sendable {
  private struct Digest: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private let limit: Int
  private(set) var list: [Result<ProviderToken, ProviderToken.Problem>] = []
  private var numbers: [Digest: Int] = [:]
  private var latest = (origin: FieldList.Origin.literal, use: Use.none)
  /// The bytes of the texts in `list`.
  private var textBytes = 0
  /// Whether the list has every token that the connection has used.
  private(set) var isComplete: Bool
  /// The tokens at the beginning of the list that no unknown one precedes.
  private var numbered = 0
  /// The uses that were coded in full and added to no header table, and their bytes.
  private(set) var literals = (count: 0, bytes: 0)

  /// The latest entries of the client's header table in which no token is, each at its number modulo the count.
  private var free = [Int](repeating: -1, count: 32)

  /// How a request uses one.
  enum Use: Sendable {
    /// The value is no provider token.
    case none
    /// Its place in the list from 1; whether that is its number among those of the connection.
    case token(Int, isNumbered: Bool)
    /// A token that the list has no room for.
    case beyondLimit
  }

  init(limit: Int, isFromStart: Bool) { (self.limit, isComplete) = (limit, isFromStart) }

  /// An entry of a dictionary takes up to twice its size.
  var heldBytes: Int {
    list.count
      * (MemoryLayout<Result<ProviderToken, ProviderToken.Problem>>.stride + 2 * MemoryLayout<(Digest, Int)>.stride)
      + textBytes
  }

  /// Forgets all tokens: later ones, which may be the same, have no number.
  mutating func giveUp() {
    guard !list.isEmpty else { return }
    (list, numbers, textBytes, numbered, latest) = ([], [:], 0, 0, (.literal, .none))
    isComplete = false
  }

  /// Begins anew: the first token that is used from now on is number 1.
  mutating func restart() {
    (list, numbers, textBytes, numbered, latest) = ([], [:], 0, 0, (.literal, .none))
    (isComplete, literals) = (true, (0, 0))
  }

  /// Notes that a request may have had another one.
  mutating func miss() { isComplete = false }

  /// Whether a field with this origin was found to have no token in its name or value.
  func isFreeOfThem(_ origin: FieldList.Origin) -> Bool {
    switch origin {
    case .staticTable: true
    case .entry(let number): free[number & 31] == number
    case .literal, .repeated: false
    }
  }

  /// Notes that a field with this origin has no token in its name or value.
  mutating func noteFree(_ origin: FieldList.Origin) {
    if case .entry(let number) = origin { free[number & 31] = number }
  }

  /// Whether a value is a provider token, or has the form of one, and which.
  mutating func use(_ value: RawSpan, _ field: FieldList.Field) -> Use {
    let use: Use
    if field.origin == latest.origin, field.origin != .literal {
      use = latest.use
    } else {
      use = find(value)
      latest = (field.origin, use)
    }
    if field.codedLength > 0, case .token = use {
      literals.count += 1
      literals.bytes += Int(field.codedLength)
    }
    return use
  }

  private mutating func find(_ value: RawSpan) -> Use {
    guard ProviderToken.hasForm(value) else { return .none }
    let digest = Digest(
      first: ContentDigest(value).value, second: ContentDigest(value, seed: 0x2545_f491_4f6c_dd1d).value)
    if let number = numbers[digest] { return .token(number, isNumbered: number <= numbered) }
    guard list.count < limit else {
      isComplete = false
      return .beyondLimit
    }
    append(value)
    numbers[digest] = list.count
    if isComplete { numbered = list.count }
    return .token(list.count, isNumbered: isComplete)
  }

  private mutating func append(_ value: RawSpan) {
    do throws(ProviderToken.Problem) {
      let token = try ProviderToken(parsing: value)
      textBytes += [token.algorithm, token.keyID, token.teamID].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
      list.append(.success(token))
    } catch {
      list.append(.failure(error))
    }
  }
}

import BinaryProtocol
import Bytes

/// The tuples that polls have brought: `tuples = listed + registeredSince + unknown + notRemembered`.
struct FeedbackCounts: Sendable, Equatable {
  var tuples = 0
  /// Tuples that list a token of the load at a time after its registration.
  var listed = 0
  /// Tuples whose token was registered at their time or after it: such a token stays.
  var registeredSince = 0
  /// Tuples with a token that the load does not have.
  var unknown = 0
  /// Tuples with a token for which there was no room.
  var notRemembered = 0

  static func += (sum: inout FeedbackCounts, other: FeedbackCounts) {
    sum.tuples += other.tuples
    sum.listed += other.listed
    sum.registeredSince += other.registeredSince
    sum.unknown += other.unknown
    sum.notRemembered += other.notRemembered
  }
}

/// Reads the list of one poll, in pieces of any length. A value without socket or clock.
///
/// Tuples are counted and not kept: beside the table of tokens, memory has one tuple at most.
struct FeedbackListReader: Sendable {
  /// Why a list is not read any further.
  enum Problem: Error, Equatable {
    /// A token longer than any is.
    case malformed
    /// The list has more tuples than a poll may bring.
    case tooLong(Int)
  }

  /// The whole tuples so far.
  private(set) var counts = FeedbackCounts()
  /// The tokens of earlier polls, and those of this one.
  private(set) var tokens: ListedTokens
  /// The bytes so far.
  private(set) var received = 0
  private let workload: Workload
  /// UNIX seconds.
  private let registered: UInt32
  private let maximumTuples: Int
  /// The beginning of a tuple.
  private var beginning: [UInt8] = []

  /// - Parameters:
  ///   - tokens: the tokens that were listed before.
  ///   - registered: the time at which all tokens were registered, in UNIX seconds. A tuple has whole seconds; one of
  ///     the same second may be of an earlier moment.
  init(_ workload: Workload, _ tokens: ListedTokens, registered: UInt32, maximumTuples: Int) {
    (self.workload, self.tokens, self.registered) = (workload, tokens, registered)
    self.maximumTuples = maximumTuples
  }

  /// Whether the bytes so far end with a tuple.
  var isBetweenTuples: Bool { beginning.isEmpty }

  mutating func receive(_ bytes: [UInt8]) throws(Problem) {
    received += bytes.count
    // Longer than a tuple only by what came now.
    let all = beginning.isEmpty ? bytes : beginning + bytes
    beginning = []
    var offset = 0
    while offset < all.count {
      switch FeedbackTuple.extent(of: all.rawBytes, at: offset, limits: ProtocolLimits()) {
      case .complete(let length):
        guard counts.tuples < maximumTuples else { throw .tooLong(maximumTuples) }
        note(FeedbackTuple(record: all.rawBytes.extracting(offset..<offset + length)))
        offset += length
      case .incomplete:
        beginning = Array(all[offset...])
        return
      case .malformed: throw .malformed
      }
    }
  }

  private mutating func note(_ tuple: borrowing FeedbackTuple) {
    counts.tuples += 1
    guard let number = workload.number(ofToken: tuple.token) else {
      counts.unknown += 1
      return
    }
    switch tokens.note(number, isAfterRegistration: tuple.timestamp > registered) {
    case .listed: counts.listed += 1
    case .registeredSince: counts.registeredSince += 1
    case .notRemembered: counts.notRemembered += 1
    }
  }
}

extension FeedbackListReader.Problem: CustomStringConvertible {
  var description: String {
    switch self {
    case .malformed: "the bytes are not a list of tokens"
    case .tooLong(let most): "the list has more than \(most) tuples"
    }
  }
}

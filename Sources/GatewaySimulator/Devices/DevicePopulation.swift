import Bytes
import Measurement

/// The state of a device token.
public enum Device: String, Sendable, CaseIterable, Codable {
  /// Receives its notifications.
  case active
  /// Its notifications wait in the `OfflineStore`.
  case offline
  /// The app is uninstalled: its notifications are accepted, and the token is put on the topic's feedback list.
  case uninstalled
  /// Not a token of this topic: its notifications are rejected.
  case unknown
}

/// The simulated devices: generated from a hash of each token, or listed in a file.
///
/// The hash is a pure function of token, topic and seed: a token means the same device on every connection and in every
/// run, and a different one under another topic. No state is kept for it.
public struct DevicePopulation: Sendable {
  /// Parts of all tokens, each from 0 to 1 and together at most 1; all other devices are active.
  public struct Shares: Sendable, Equatable {
    public var offline: Double
    public var uninstalled: Double
    public var unknown: Double

    public init(offline: Double = 0, uninstalled: Double = 0, unknown: Double = 0) {
      self.offline = offline
      self.uninstalled = uninstalled
      self.unknown = unknown
    }
  }

  private enum Source: Sendable {
    case allActive
    case shares(Thresholds)
    case tokens([TokenKey: Device])
  }

  private let source: Source
  /// Devices that were changed, as they are for every topic.
  private var changed: [TokenKey: Change] = [:]

  private struct Change: Sendable {
    var device: Device
    /// UNIX ms.
    var time: Int64
  }

  /// Everybody is active.
  public init() { source = .allActive }

  /// Devices by hash. Throws `.badShares` when the shares are invalid.
  public init(shares: Shares) throws(DevicePopulationError) {
    let named = [("offline", shares.offline), ("uninstalled", shares.uninstalled), ("unknown", shares.unknown)]
    for (name, share) in named where !(share >= 0 && share <= 1) {
      throw DevicePopulationError(.badShares, "the share of \(name) devices is \(share); expected 0 to 1")
    }
    let sum = shares.offline + shares.uninstalled + shares.unknown
    // Decimal shares that make 1 on paper may be off by the last bit.
    guard sum <= 1 + 1e-9 else {
      throw DevicePopulationError(.badShares, "the shares of devices add up to \(sum); expected at most 1")
    }
    source = sum == 0 ? .allActive : .shares(Thresholds(shares))
  }

  /// The listed devices; all other tokens are unknown.
  init(tokens: [TokenKey: Device]) { source = .tokens(tokens) }

  /// The number of listed tokens; `nil` if devices are generated pseudo-randomly.
  public var count: Int? {
    if case .tokens(let tokens) = source { tokens.count } else { nil }
  }

  /// The listed tokens; empty if devices are generated pseudo-randomly.
  var listedTokens: Set<TokenKey> {
    if case .tokens(let tokens) = source { Set(tokens.keys) } else { [] }
  }

  /// Every token is active, so no lookup is needed.
  var isAllActive: Bool {
    if case .allActive = source { changed.isEmpty } else { false }
  }

  /// The number of tokens that were changed.
  var changedCount: Int { changed.count }

  /// Changes the device of a token for all topics at a UNIX time in ms; `nil` undoes earlier changes. A device that was
  /// changed to the same before keeps that time.
  mutating func change(_ token: RawSpan, to device: Device?, at time: Int64) {
    let key = TokenKey(token)
    if let device, changed[key]?.device == device { return }
    changed[key] = device.map { Change(device: $0, time: time) }
  }

  /// UNIX ms at which the device of a token was changed; `nil`: it was not.
  func timeOfChange(of token: RawSpan) -> Int64? { changed.isEmpty ? nil : changed[TokenKey(token)]?.time }

  /// Undoes all changes.
  mutating func undoChanges() { changed = [:] }

  /// The tokens that were changed or listed, with their states, in ascending order of the tokens' bytes.
  ///
  /// Complexity: O(n log n) in all of them.
  var known: [(token: [UInt8], device: Device)] {
    var devices: [TokenKey: Device] = [:]
    if case .tokens(let tokens) = source { devices = tokens }
    devices.merge(changed.mapValues(\.device)) { _, changed in changed }
    return devices.map { ($0.key.token, $0.value) }.sorted { $0.token.lexicographicallyPrecedes($1.token) }
  }

  /// The device of the token. A listed device is the same for every topic.
  ///
  /// Allocates nothing, except to look up a token in a list that does not have 32 bytes.
  ///
  /// - Parameter topicSeed: the result of `topicSeed(_:seed:)` for the topic.
  @inline(__always)
  package func device(of token: RawSpan, topicSeed: UInt64) -> Device {
    if !changed.isEmpty, let change = changed[TokenKey(token)] { return change.device }
    return switch source {
    case .allActive: .active
    // Mixed, so that tokens that are counted up are drawn evenly too.
    case .shares(let thresholds):
      thresholds.device(lot: SplitMix64.first(from: ContentDigest(token, seed: topicSeed).value))
    case .tokens(let tokens): tokens[TokenKey(token)] ?? .unknown
    }
  }

  /// The seed that makes the hashes of a topic independent of other topics and seeds.
  package static func topicSeed(_ topic: String, seed: UInt64) -> UInt64 {
    SplitMix64.first(from: ContentDigest(Array(topic.utf8).rawBytes, seed: SplitMix64.first(from: seed)).value)
  }

  /// Upper bounds of the kinds of devices in the range of hashes: unknown, uninstalled, offline, active.
  private struct Thresholds: Sendable {
    private let unknown: UInt64
    private let uninstalled: UInt64
    private let offline: UInt64

    init(_ shares: Shares) {
      // A lot has 63 bits, so that the end of the row is a number too.
      func threshold(_ share: Double) -> UInt64 { UInt64(min(1, share) * 0x1p63) }
      unknown = threshold(shares.unknown)
      uninstalled = threshold(shares.unknown + shares.uninstalled)
      offline = threshold(shares.unknown + shares.uninstalled + shares.offline)
    }

    @inline(__always)
    func device(lot: UInt64) -> Device {
      let lot = lot >> 1
      if lot >= offline { return .active }
      return lot < unknown ? .unknown : lot < uninstalled ? .uninstalled : .offline
    }
  }
}

/// Why a population cannot be created.
public struct DevicePopulationError: Error, Sendable, CustomStringConvertible {
  /// The ways in which shares or a file can be invalid.
  public enum Kind: Sendable, Equatable {
    /// A share is outside 0…1, or all together are more than 1.
    case badShares
    /// The file is missing, may not be read, or the system failed while reading.
    case cannotRead
    /// The line with this number, from 1, is neither a token nor a comment.
    case badLine(Int)
    /// The file lists more tokens than the limit; `line` is the first line above it.
    case tooManyTokens(line: Int)
  }

  public let kind: Kind
  /// One sentence, with file and line if they are known.
  public let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

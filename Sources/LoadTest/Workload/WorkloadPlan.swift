import Measurement
import Payload

/// The plan of the workload, which determines every notification.
public struct WorkloadPlan: Sendable, Equatable, Codable {
  /// A random choice among values, each with a probability in proportion to its weight.
  public struct Mix<Value: Sendable & Equatable & Codable>: Sendable, Equatable, Codable {
    /// A value and its weight, which is relative to the other weights and not negative.
    public struct Part: Sendable, Equatable, Codable {
      public var value: Value
      public var weight: Double
    }
    /// The values with their weights; at least one weight is positive.
    public var parts: [Part]

    /// Always the same value.
    public init(_ value: Value) { parts = [Part(value: value, weight: 1)] }
    /// Values with their weights.
    public init(_ parts: [(Value, Double)]) { self.parts = parts.map { Part(value: $0.0, weight: $0.1) } }
  }

  /// The content of payloads.
  public enum Payload: Sendable, Equatable, Codable {
    /// JSON with an alert of random letters, in total of these lengths in bytes.
    case sizes(Mix<ClosedRange<Int>>)
    /// Text in which `{index}` stands for the notification's number, `{random:N}` for N (0 to 4,096) letters, and `{time}`
    /// for the start of the run in UNIX seconds. Other braces are left as they are.
    case template(String)
    /// Realistic payloads of these kinds: alerts plain and localized, categories, in several languages.
    case kinds(Mix<PayloadKind>)
    /// These payloads, each as often as its weight says.
    case listed(PayloadList)
  }

  /// The faults of notifications.
  public enum Fault: String, Sendable, CaseIterable, Codable, CodingKeyRepresentable {
    /// A token that no device has, which begins with the bytes of `DeviceToken.invalidPrefix`.
    case invalidToken = "invalid-token"
    /// A token of a wrong length.
    case tokenSize = "token-size"
    case missingToken = "missing-token"
    case missingPayload = "missing-payload"
    /// A payload longer than any gateway accepts.
    case oversize
    /// A frame whose items do not fit it.
    case malformed
    /// A payload, or a frame, that breaks a rule, as listed in `payloadFaults`.
    case payload

    /// The faults that are defined by a share alone: all but `payload`.
    public static let allCases: [Fault] = [
      .invalidToken, .tokenSize, .missingToken, .missingPayload, .oversize, .malformed,
    ]
  }

  /// The time at which a gateway may drop a notification.
  public enum Expiration: Sendable, Equatable, Codable, ExpressibleByIntegerLiteral {
    /// UNIX seconds.
    case at(UInt32)
    /// Seconds after the start of the run.
    case after(seconds: UInt32)

    public init(integerLiteral value: UInt32) { self = .at(value) }

    /// UNIX seconds, at most the largest number of the protocol.
    func seconds(start: Int) -> UInt32 {
      switch self {
      case .at(let time): time
      case .after(let seconds): UInt32(clamping: min(max(0, start), 1 << 40) + Int(seconds))
      }
    }
  }

  /// The number that determines all random choices.
  public var seed: UInt64 = 1
  /// The commands of frames: 0, 1 and 2.
  public var commands = Mix<UInt8>(2)
  /// The number of different tokens, at least 1.
  public var tokens = 1_000_000
  /// The length of tokens in bytes: 1 to 65,535.
  public var tokenLength = 32
  /// Tokens to send to, in their order and from the first again, instead of `tokens` made ones of `tokenLength` bytes;
  /// `nil`: made ones.
  public var tokenList: TokenList?
  /// The content of payloads.
  public var payload = Payload.sizes(Mix(100...200))
  /// The priorities, as numbers of the protocol; `nil`: the item is left out.
  public var priorities = Mix<UInt8?>(10)
  /// The expirations; `nil`: the item is left out, or 0 with command 1, which always has an expiration. The default is
  /// after the end of any run, and near enough to break no rule of payloads.
  public var expirations = Mix<Expiration?>(.after(seconds: 30 * 86_400))
  /// The share of notifications that have each fault, from 0 to 1.
  public var faults: [Fault: Double] = [:]
  /// The share of notifications whose payload breaks each rule, by the rule's code; such a notification has the fault
  /// `payload`.
  public var payloadFaults: [String: Double] = [:]
  /// The number of the first notification of the stream that this run sends, from 0 and below `segments`.
  public var segment = 0
  /// The number of runs that share the stream: this run sends every `segments`-th notification.
  public var segments = 1

  public init() {}

  /// The notifications of this run among those of the whole stream.
  package var segmentNumbers: SegmentNumbers { SegmentNumbers(segment: segment, segments: segments) }
}

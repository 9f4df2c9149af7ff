import Payload

/// The description of the workload, which determines every notification.
public struct WorkloadPlan: Sendable, Equatable, Codable {
  /// A choice among values, each as often as its weight says.
  public struct Mix<Value: Sendable & Equatable & Codable>: Sendable, Equatable, Codable {
    /// A value and its weight, relative to the others'.
    public struct Part: Sendable, Equatable, Codable {
      public var value: Value
      public var weight: Double
    }
    public var parts: [Part]

    public init(_ value: Value) { parts = [Part(value: value, weight: 1)] }
    public init(_ parts: [(Value, Double)]) { self.parts = parts.map { Part(value: $0.0, weight: $0.1) } }
  }

  /// The content of payloads.
  public enum Payload: Sendable, Equatable, Codable {
    /// JSON with an alert of random letters, of these whole lengths in bytes.
    case sizes(Mix<ClosedRange<Int>>)
    /// Text in which `{index}` stands for the notification's number, `{random:N}` for N (0 to 4,096) letters, and `{time}`
    /// for the start of the run in UNIX seconds. Other braces are themselves.
    case template(String)
    /// Realistic payloads of these kinds: alerts plain and localized, categories, in several languages.
    case kinds(Mix<PayloadKind>)
  }

  /// The faults of notifications.
  public enum Fault: String, Sendable, CaseIterable, Codable, CodingKeyRepresentable {
    /// A token that no device has: it begins with the bytes of `SyntheticToken.invalidPrefix`.
    case invalidToken = "invalid-token"
    /// A token of a length that is not the right one.
    case tokenSize = "token-size"
    case missingToken = "missing-token"
    case missingPayload = "missing-payload"
    /// A payload longer than any gateway takes.
    case oversize
    /// A frame whose items do not fit it.
    case malformed
    /// A payload, or a frame, that breaks a rule: `payloadFaults` says which.
    case payload

    /// Those that need nothing but a share: all but `payload`.
    public static let allCases: [Fault] = [
      .invalidToken, .tokenSize, .missingToken, .missingPayload, .oversize, .malformed,
    ]
  }

  /// When a gateway may drop a notification. `nil` where there is one: the item is left out.
  public enum Expiration: Sendable, Equatable, Codable, ExpressibleByIntegerLiteral {
    /// UNIX seconds.
    case at(UInt32)
    /// Seconds after the start of the run.
    case after(seconds: UInt32)

    public init(integerLiteral value: UInt32) { self = .at(value) }

    /// UNIX seconds, at most those that the protocol can say.
    func seconds(start: Int) -> UInt32 {
      switch self {
      case .at(let time): time
      case .after(let seconds): UInt32(clamping: min(max(0, start), 1 << 40) + Int(seconds))
      }
    }
  }

  public var seed: UInt64 = 1
  /// 0, 1 and 2.
  public var commands = Mix<UInt8>(2)
  /// How many different tokens there are, and their length in bytes: 1 to 65,535.
  public var tokens = 1_000_000
  public var tokenLength = 32
  public var payload = Payload.sizes(Mix(100...200))
  /// `nil`: the item is left out.
  public var priorities = Mix<UInt8?>(10)
  /// `nil`: the item is left out; with command 1, which always has one, it is 0. The default outlasts a run, and is near
  /// enough to break no rule of payloads.
  public var expirations = Mix<Expiration?>(.after(seconds: 30 * 86_400))
  /// The share of notifications that have each fault.
  public var faults: [Fault: Double] = [:]
  /// The share of notifications whose payload breaks each rule, by its code; one of those is of the fault `payload`.
  public var payloadFaults: [String: Double] = [:]
  /// This run sends every `segments`-th notification of the stream, beginning with number `segment` (from 0).
  public var segment = 0
  public var segments = 1

  public init() {}
}

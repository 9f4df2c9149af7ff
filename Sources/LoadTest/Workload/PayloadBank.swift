import Bytes
import Measurement
import Payload

/// Usual payloads of a kind, generated before a run: generating a payload takes longer than sending it.
struct PayloadPool: Sendable {
  /// The number of different payloads of a kind.
  static let size = 1_024

  // One after the other, so that all loops read the same memory and count no references.
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  /// The priority that the kind needs: silent pushes are refused with another than 5. `nil`: any will do.
  let priority: UInt8?
  private(set) var longest = 0

  init(_ kind: PayloadKind, seed: UInt64) {
    priority = kind.neededPriority
    let samples = PayloadSamples(seed: seed)
    for number in 0..<UInt64(Self.size) {
      let payload = samples.payload(kind, number: number)
      bytes += payload
      ends.append(bytes.count)
      longest = max(longest, payload.count)
    }
  }

  @inline(__always)
  private func range(of word: UInt64) -> Range<Int> {
    let place = Int(truncatingIfNeeded: word.multipliedFullWidth(by: UInt64(ends.count)).high)
    return (place == 0 ? 0 : ends[place - 1])..<ends[place]
  }

  @inline(__always)
  func length(of word: UInt64) -> Int { range(of: word).count }

  @inline(__always)
  func write(_ word: UInt64, into output: inout ByteWriter) { output.write(bytes.rawBytes.extracting(range(of: word))) }
}

/// The payloads of a list, one behind the other, with the priorities that they need.
struct ListedPayloads: Sendable {
  // One after the other, so that all loops read the same memory and count no references.
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  /// 0: any priority will do.
  private var priorities: [UInt8] = []
  private(set) var longest = 0
  private(set) var hasPriorities = false

  init(_ list: PayloadList) {
    var judge = PayloadJudge()
    for entry in list.entries {
      bytes += entry.payload
      ends.append(bytes.count)
      longest = max(longest, entry.payload.count)
      let priority = judge.judge(entry.payload.rawBytes).kind.neededPriority
      priorities.append(priority ?? 0)
      hasPriorities = hasPriorities || priority != nil
    }
  }

  @inline(__always)
  private func range(of place: Int) -> Range<Int> { (place == 0 ? 0 : ends[place - 1])..<ends[place] }

  @inline(__always)
  func length(of place: Int) -> Int { range(of: place).count }

  @inline(__always)
  func priority(of place: Int) -> UInt8? { priorities[place] == 0 ? nil : priorities[place] }

  @inline(__always)
  func write(_ place: Int, into output: inout ByteWriter) { output.write(bytes.rawBytes.extracting(range(of: place))) }
}

extension PayloadKind {
  /// The priority that a push of the kind needs: silent pushes are refused with another than 5. `nil`: any will do.
  fileprivate var neededPriority: UInt8? { self == .background || self == .newsstand ? 5 : nil }
}

/// Payloads that break a rule, made before a run.
struct PayloadBank: Sendable {
  /// A payload and the frame that it belongs into.
  struct FaultySample: Sendable {
    var payload: [UInt8]
    /// Fields of the frame that replace the drawn ones; `nil`: as drawn.
    var command: UInt8?
    var priority: UInt8?
    /// Command 2 has the item.
    var hasPriority = true
    var expiration: UInt32?
    var token: [UInt8]?
  }

  private let pushes: [FaultySample]

  /// Makes a bank of payloads that break a rule.
  init(breaking rule: PayloadRule, seed: UInt64) {
    pushes = (0..<PayloadPool.size).map { number in
      let faulty = FaultyPush(breaking: rule, seed: seed, number: UInt64(number))
      guard let frame = faulty.environment.frame else { return FaultySample(payload: faulty.payload) }
      var push = FaultySample(payload: faulty.payload, priority: frame.priority, hasPriority: frame.priority != nil)
      // A fault of the payload is one in every frame.
      if !faulty.isOfPayload { push.command = frame.command }
      (push.expiration, push.token) = (frame.expiration, frame.token)
      return push
    }
  }

  /// Most bytes of a payload.
  var longest: Int { pushes.map(\.payload.count).max() ?? 0 }

  @inline(__always)
  subscript(word: UInt64) -> FaultySample {
    pushes[Int(truncatingIfNeeded: word.multipliedFullWidth(by: UInt64(pushes.count)).high)]
  }

  /// Rules that a notification of a load can be made to break. Some need a topic, a table of strings, a year or several
  /// sendings, which no single notification has.
  static func rule(ofCode code: String) -> PayloadRule? {
    guard let rule = PayloadRule(rawValue: code), isOfOneNotification(rule) else { return nil }
    return rule
  }

  static var codes: [String] { PayloadRule.allCases.filter(isOfOneNotification).map(\.code) }

  private static func isOfOneNotification(_ rule: PayloadRule) -> Bool {
    let push = FaultyPush(breaking: rule)
    return push.sendings.isEmpty && push.environment.strings == nil && push.environment.topic == .unknown
      && push.environment.era == nil
  }
}

import BinaryProtocol
import Bytes

/// Payloads that a workload sends as they are, each as often as its weight says.
public struct PayloadList: Sendable, Equatable, Codable {
  /// The maximum number of payloads.
  public static let maximumCount = 100_000
  /// The maximum length of all payloads together, in bytes.
  public static let maximumBytes = 64 << 20

  /// A payload of the list.
  public struct Entry: Sendable, Equatable, Codable {
    /// The bytes as they are sent.
    public var payload: [UInt8]
    /// How often the payload is sent, relative to the other weights; not negative.
    public var weight = 1.0
    /// The topic that the payload is for; `nil`: any.
    public var topic: String?
    /// The line of the file that has the entry, from 1; `nil`: it is of no file.
    package var line: Int?

    /// Makes an entry.
    public init(_ payload: [UInt8], weight: Double = 1, topic: String? = nil) {
      (self.payload, self.weight, self.topic) = (payload, weight, topic)
    }
  }

  /// The payloads; the weight of at least one is positive.
  public var entries: [Entry]

  /// A list of payloads.
  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// The topics that entries are for.
  package var topics: Set<String> { Set(entries.compactMap(\.topic)) }

  /// Drops the entries that are for other topics, and returns how many they were.
  package mutating func select(topics: [String]) -> Int {
    let count = entries.count
    entries.removeAll { entry in entry.topic.map { !topics.contains($0) } ?? false }
    return count - entries.count
  }

  /// Whether a payload for this topic is sent.
  package func hasWeight(ofTopic topic: String) -> Bool { weight(of: topic) > 0 }

  /// The most bytes that a payload may have in these commands: more is refused by every gateway that follows the
  /// documentation.
  static func longest(in commands: WorkloadPlan.Mix<UInt8>, topic: String?) -> Int {
    if commands.parts.contains(where: { $0.value < 2 && $0.weight > 0 }) { return 256 }
    return topic?.hasSuffix(".voip") == true ? 4_096 : 2_048
  }

  /// The first payload that is too long for the commands, with its line; `nil` when none is.
  package func firstTooLong(for commands: WorkloadPlan.Mix<UInt8>) -> (line: Int?, problem: String)? {
    for entry in entries where entry.weight > 0 {
      let most = Self.longest(in: commands, topic: entry.topic)
      guard entry.payload.count > most else { continue }
      let least = commands.parts.filter { $0.weight > 0 }.map(\.value).min() ?? 2
      return (
        entry.line, "the payload has \(entry.payload.count) bytes; with command \(least) a payload has at most \(most)"
      )
    }
    return nil
  }
}

/// Makes a list of the lines of a file.
package struct PayloadListReader: Sendable {
  package private(set) var list = PayloadList()
  /// Of all payloads so far.
  private var bytes = 0

  package init() {}

  /// Adds what a line of a file has: a payload, which is a JSON object with `aps`, or an object with a payload as
  /// `payload`, a number as `weight` and a text as `topic`. Empty lines are passed over.
  package mutating func add(line text: RawSpan, number: Int) throws(Workload.PlanError) {
    guard var entry = try Self.entry(of: text) else { return }
    guard list.entries.count < PayloadList.maximumCount else {
      throw Workload.PlanError("more than \(PayloadList.maximumCount) payloads")
    }
    bytes += entry.payload.count
    guard bytes <= PayloadList.maximumBytes else {
      throw Workload.PlanError("the payloads exceed \(PayloadList.maximumBytes) bytes together")
    }
    entry.line = number
    list.entries.append(entry)
  }

  private static func entry(of text: RawSpan) throws(Workload.PlanError) -> PayloadList.Entry? {
    var start = 0
    var end = text.byteCount
    while start < end, RecordMembers.isSpace(text.byte(at: start)) { start += 1 }
    while end > start, RecordMembers.isSpace(text.byte(at: end - 1)) { end -= 1 }
    let line = text.extracting(start..<end)
    do throws(RecordError) {
      guard var members = try RecordMembers(line) else { return nil }
      if Self.isPayload(members) { return PayloadList.Entry(Array(copying: line)) }
      var entry = PayloadList.Entry([])
      var names: Set<String> = []
      while let member = members.next() {
        let name = RecordText.unescaped(line.extracting(member.name))
        if name == "type", member.kind == .string {
          throw RecordError("looks like a record of 'apnscope decode': --replay sends records as they are")
        }
        guard ["payload", "weight", "topic"].contains(name) else { throw notAnEntry(name) }
        guard names.insert(name).inserted else { throw RecordError("'\(name)' is given twice") }
        switch name {
        case "payload":
          guard member.kind == .structure, line.byte(at: member.value.lowerBound) == UInt8(ascii: "{") else {
            throw RecordError("'payload' is not a JSON object")
          }
          entry.payload = Array(copying: line.extracting(member.value))
        case "weight":
          let number = String(decoding: Array(copying: line.extracting(member.value)), as: UTF8.self)
          guard member.kind == .number, let weight = Double(number), weight >= 0, weight.isFinite else {
            throw RecordError("'weight' is not a number from 0 on")
          }
          entry.weight = weight
        default: entry.topic = RecordText.unescaped(line.extracting(try members.string(member, "topic")))
        }
      }
      guard names.contains("payload") else { throw notAnEntry(nil) }
      return entry
    } catch {
      throw Workload.PlanError(error.description)
    }
  }

  private static func isPayload(_ members: consuming RecordMembers) -> Bool {
    var members = members
    while let member = members.next() { if members.isName("aps", of: member) { return true } }
    return false
  }

  private static func notAnEntry(_ name: String?) -> RecordError {
    let found = name.map {
      "'\(ControlCharacters.escaped(String($0.prefix(40))))' is neither of a payload nor of an entry"
    }
    return RecordError(
      "\(found ?? "neither a payload nor an entry"): a payload has 'aps', an entry has 'payload', and may have 'weight' and 'topic'"
    )
  }
}

import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// Decides which sendings are selected; a story or token is selected if one of its records is.
struct StorySelection {
  private let selection: RecordSelection
  /// The selected times; `nil`: they are relative to a time that is not known yet.
  private var times: Range<Timestamp>?

  init(_ selection: RecordSelection) {
    self.selection = selection
    noteStart(.none)
  }

  /// Notes that a connection was opened: relative times are resolved with the first such time.
  mutating func noteStart(_ time: Timestamp) {
    guard times == nil else { return }
    let (first, last) = (Timestamp(nanoseconds: .min), Timestamp(nanoseconds: .max))
    let from = selection.from.map { $0.time(after: time) } ?? first
    let to = selection.to.map { $0.time(after: time) } ?? last
    if let from, let to { times = from..<max(from, to) }
  }

  private func isInTime(_ time: Timestamp) -> Bool {
    if selection.from == nil && selection.to == nil { return true }
    return time.isKnown && times?.contains(time) == true
  }

  private func isOfType(_ type: RecordType) -> Bool { selection.types.isEmpty || selection.types.contains(type) }

  private func takes(_ place: RecordPlace, _ token: RawSpan) -> Bool {
    guard isInTime(place.time),
      selection.connections.isEmpty || selection.connections.contains(where: { $0.contains(place.connection) })
    else { return false }
    if selection.tokens.isEmpty { return true }
    for prefix in selection.tokens where prefix.begins(token) { return true }
    return false
  }

  /// Whether a notification matches by its own fields.
  func takes(_ place: RecordPlace, token: RawSpan, identifier: UInt32?) -> Bool {
    guard isOfType(.notification), takes(place, token) else { return false }
    return selection.identifiers.isEmpty || identifier.map(selection.identifiers.contains) == true
  }

  /// Whether a feedback tuple matches; it has neither identifier nor fate nor status.
  func takes(feedbackAt place: RecordPlace, token: RawSpan) -> Bool {
    isOfType(.feedback) && selection.identifiers.isEmpty && selection.fates.isEmpty && selection.statuses.isEmpty
      && takes(place, token)
  }

  func takes(_ status: UInt16) -> Bool { selection.statuses.contains(Int(status)) }

  /// Whether a request with a topic of its own matches; it has no identifier.
  func takes(requestAt place: RecordPlace, token: RawSpan, topic: String?) -> Bool {
    guard isOfType(.notification), takes(place, token), selection.identifiers.isEmpty else { return false }
    return selection.topics.isEmpty || topic.map(selection.topics.contains) ?? true
  }

  /// Whether a notification matches by what later records state about it.
  ///
  /// - Parameter isNamed: a response with one of the selected statuses names it.
  func takes(_ fate: Fate, isNamed: Bool) -> Bool {
    (selection.fates.isEmpty || selection.fates.contains(fate)) && (selection.statuses.isEmpty || isNamed)
  }

  /// Whether a connection is selected whose certificate names this topic.
  func takes(topics: [String]) -> Bool { selection.topics.isEmpty || !selection.topics.isDisjoint(with: topics) }
}

import BinaryProtocol
import Measurement
import Records

extension PacketComments {
  func text(of note: Note, on connection: Int) -> String {
    switch note {
    case .rejected(let index):
      guard let response = response(naming: index, on: connection) else { return "#\(index) refused" }
      return Self.status(response) + ": #\(index) refused" + loss(response, on: connection)
    case .response(let number):
      let response = responses[number]
      guard let named = response.named else {
        let identifier = response.response.identifier
        return "error response \(Self.status(response)) names no notification seen (identifier \(identifier))"
      }
      let verb = response.response.status.acceptsNamed ? "accepted" : "refused"
      return "error response \(Self.status(response)): #\(named) \(verb)" + loss(response, on: connection)
    case .discarded(let range): return text(ofDiscarded: discarded[range], on: connection)
    case .again(let range, let first):
      let verb = range.count == 1 ? "repeats" : "repeat discarded ones, first"
      return "\(Self.text(range)) \(verb) #\(first.index) of connection \(first.connection) (packet \(first.packet))"
        + (range.count == 1 ? ", which was discarded" : "")
    case .malformed(let text): return text
    case .refused(let index, let answer): return Self.answer(answer?.status, answer?.reason) + "#\(index) rejected"
    case .provider(let record): return Self.text(of: record)
    }
  }

  private static func text(of record: ProviderRecord) -> String {
    switch record {
    case .response(let record):
      let request = record.notification.map { "#\($0)" } ?? "request on stream \(record.stream)"
      return "answer " + answer(record.status, record.reason) + "\(request) rejected"
    case .goAway(let record):
      let counts = [record.discarded.map { "\($0) discarded" }, record.unknown.map { "\($0) without an answer" }]
      return "GOAWAY \(record.reason ?? record.error) from the \(record.direction.rawValue), last stream "
        + ([String(record.lastStream)] + counts.compactMap { $0 }).joined(separator: ", ")
    case .reset(let record):
      let request = record.notification.map { "#\($0)" } ?? "stream \(record.stream)"
      return "RST_STREAM \(record.error ?? "") from the \(record.direction.rawValue): \(request)"
    case .settings, .channelRequest: return ""
    }
  }

  /// The status and the reason of an answer: `410 Unregistered: `.
  private static func answer(_ status: Int?, _ reason: String?) -> String {
    let words = [status.map(String.init), reason].compactMap { $0 }
    return words.isEmpty ? "" : words.joined(separator: " ") + ": "
  }

  /// The status as text: `8 invalid token`.
  private static func status(_ response: Response) -> String {
    "\(response.response.status.rawValue) \(response.response.status)"
  }

  private static func text(_ range: ClosedRange<Int>) -> String {
    range.count == 1 ? "#\(range.lowerBound)" : "#\(range.lowerBound) to #\(range.upperBound)"
  }

  private func loss(_ response: Response, on connection: Int) -> String {
    guard response.discarded > 0 else { return "" }
    let discarded = ", \(response.discarded) after it discarded"
    guard let loss = sendings.loss(on: connection) else { return discarded }
    let never = loss.neverAgain
    let again =
      never > 0
      ? ", \(never) of them \(ResendWords.notSeenAgain)"
      : loss.sentAgain == response.discarded ? ", all \(ResendWords.sentAgain)" : ""
    let outcomes = loss.outcomes.map { "\($0.count) \($0.outcome.words)" }
    return discarded + again + ": " + outcomes.joined(separator: ", ")
  }

  private func text(ofDiscarded part: ArraySlice<DiscardedNotifications.Sending>, on connection: Int) -> String {
    guard let first = part.first, let last = part.last else { return "" }
    var text = Self.text(first.place.index...last.place.index) + " discarded"
    if let response = lastResponse(on: connection), let named = response.named {
      text += " after #\(named) (\(Self.status(response)))"
    }
    let packets = part.compactMap(\.again)
    let never = part.count { $0.isRecognisable && $0.again == nil }
    guard let earliest = packets.min() else { return never > 0 ? text + ", \(ResendWords.notSeenAgain)" : text }
    let place = Set(packets).count == 1 ? "in packet \(earliest)" : "from packet \(earliest) on"
    if packets.count == part.count { return text + ", \(ResendWords.sentAgain) \(place)" }
    return text + ", \(packets.count) \(ResendWords.sentAgain) \(place)"
      + (never > 0 ? ", \(never) \(ResendWords.notSeenAgain)" : "")
  }
}

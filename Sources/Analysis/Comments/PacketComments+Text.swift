import BinaryProtocol
import Measurement

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
    }
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

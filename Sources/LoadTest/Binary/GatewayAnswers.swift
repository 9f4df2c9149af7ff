import BinaryProtocol
import Bytes

/// Parses the bytes that a gateway sends on one connection into error responses.
///
/// Input may be split anywhere. The first bytes that are not a response end parsing: boundaries are lost, and the peer
/// is not a gateway, so later bytes are only counted.
struct GatewayAnswers {
  enum Answer: Equatable {
    case response(ErrorResponse)
    /// The first bytes that are not a response.
    case foreign([UInt8])
    /// So many bytes that mean nothing: after foreign ones, or the part of a response that the end cut off.
    case stray(Int)
  }

  private enum State {
    /// Nothing was parsed so far.
    case beginning
    case answered
    case foreign
  }

  private var state = State.beginning
  private var bytes: [UInt8] = []

  var isForeign: Bool { state == .foreign }

  mutating func receive(_ more: some Sequence<UInt8>) -> [Answer] {
    bytes += more
    var (answers, offset): ([Answer], Int) = ([], 0)
    parsing: while state != .foreign, offset < bytes.count {
      switch ErrorResponse.extent(of: bytes.rawBytes, at: offset) {
      case .incomplete: break parsing
      case .complete:
        guard let response = try? ErrorResponse(parsing: bytes.rawBytes, at: &offset) else { break parsing }
        state = .answered
        answers.append(.response(response))
      case .malformed:
        // Six bytes with another command byte are a response if the stream ends after them.
        if state == .beginning, ErrorResponse.mayBecomeWholeAnswer(bytes.rawBytes) { break parsing }
        bytes.removeFirst(offset)
        answers.append(takeForeign())
        return answers
      }
    }
    bytes.removeFirst(offset)
    if state == .foreign, !bytes.isEmpty { answers.append(takeStray()) }
    return answers
  }

  /// The connection has ended.
  mutating func finish() -> Answer? {
    guard !bytes.isEmpty else { return nil }
    if state == .beginning, let response = ErrorResponse(wholeAnswer: bytes.rawBytes) {
      bytes = []
      return .response(response)
    }
    if state != .beginning || bytes.first == ErrorResponse.documentedCommand { return takeStray() }
    return takeForeign()
  }

  private mutating func takeForeign() -> Answer {
    state = .foreign
    defer { bytes = [] }
    return .foreign(bytes)
  }

  private mutating func takeStray() -> Answer {
    defer { bytes = [] }
    return .stray(bytes.count)
  }
}

import Bytes
import Dissection
import GatewaySimulator
import PacketCapture
import ProviderAPI
import Records

/// A notification over HTTP/2 that was received, with the gateway's decision on it.
struct ReceivedRequest: Sendable {
  let request: ProviderRequest
  /// Its bytes, among those of the history's entry.
  let bytes: Range<Int>
  let decision: ObservedEvent.Served
}

/// Joins the notifications of a connection over HTTP/2 with the gateway's decisions on them.
///
/// Most are decided in the read in which they end. A notification that is refused is decided before, and one whose answer
/// is delayed after it.
struct RequestJoin: Sendable {
  /// The most decisions that wait for the end of their requests: an end that is not observed never comes.
  private static let maximumUnread = 10_000

  private(set) var reading: ObservedSession
  /// Notifications that have ended, by stream.
  private var undecided: [UInt32: (request: ProviderRequest, bytes: [UInt8])] = [:]
  /// Decisions on others.
  private var unread: [UInt32: ObservedEvent.Served] = [:]
  private var joined: [ReceivedRequest] = []
  private var bytes: [UInt8] = []

  init(_ limits: ProviderSession.Limits) { reading = ObservedSession(limits: limits) }

  /// Requests and ends of streams of one event.
  private struct Found {
    var requests: [(request: ProviderRequest, bytes: [UInt8])] = []
    /// Streams whose notifications have a fate: nothing follows.
    var closed: [UInt32] = []

    mutating func note(_ event: ProviderEvent, _ bytes: RawSpan) {
      switch event {
      case .request(let request):
        if request.notification != nil { requests.append((request, Array(copying: bytes))) }
      case .fate(let decision): closed.append(decision.stream)
      default: break
      }
    }
  }

  /// Reads bytes of one end.
  mutating func receive(
    _ piece: RawSpan, _ sender: Direction, _ decisions: [ObservedEvent.Served] = [], at time: Timestamp
  ) {
    var found = Found()
    reading.receive(piece, sender, at: time) { found.note($0, $1) }
    join(found, decisions)
  }

  mutating func miss(_ missed: EventQueue.Missed) {
    let time = Timestamp(nanoseconds: missed.time)
    reading.miss(missed.received, .client, at: time)
    reading.miss(missed.sent, .server, at: time)
    (undecided, unread) = ([:], [:])
  }

  /// The connection ends.
  mutating func finish(_ decisions: [ObservedEvent.Served], at time: Timestamp) {
    var found = Found()
    reading.finish(at: time) { found.note($0, $1) }
    join(found, decisions)
  }

  private mutating func join(_ found: Found, _ decisions: [ObservedEvent.Served]) {
    for ended in found.requests {
      guard let decision = unread.removeValue(forKey: ended.request.stream) else {
        undecided[ended.request.stream] = ended
        continue
      }
      join(ended, decision)
    }
    for decision in decisions {
      if let ended = undecided.removeValue(forKey: decision.stream) {
        join(ended, decision)
      } else if unread.count < Self.maximumUnread {
        unread[decision.stream] = decision
      }
    }
    for stream in found.closed where !undecided.isEmpty { undecided[stream] = nil }
  }

  private mutating func join(
    _ ended: (request: ProviderRequest, bytes: [UInt8]), _ decision: ObservedEvent.Served
  ) {
    let start = bytes.count
    bytes += ended.bytes
    joined.append(ReceivedRequest(request: ended.request, bytes: start..<bytes.count, decision: decision))
  }

  /// The notifications that were joined since the last call, and their bytes.
  mutating func take() -> (requests: [ReceivedRequest], bytes: [UInt8]) {
    guard !joined.isEmpty else { return ([], []) }
    defer { (joined, bytes) = ([], []) }
    return (joined, bytes)
  }
}

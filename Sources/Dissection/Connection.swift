import APNSProtocol
import Bytes
import PacketCapture

/// One connection while it is dissected: who is who, how each direction is read, what the notifications' fates are.
final class Connection {
  /// How one direction's bytes are read.
  enum Reading {
    /// Too few bytes were seen to tell.
    case undecided
    case gateway
    case responses
    case feedback
    /// TLS without keys, or another protocol: bytes are only counted.
    case opaque
  }

  /// Bytes that came before their direction's reading was decided.
  struct Held {
    var bytes: [UInt8]
    var offset: Int
    var mark: Mark
  }

  /// Both are kept per end of the flow: index 0 is what the flow's low end sent.
  struct Way {
    var reading = Reading.undecided
    var held: [Held] = []
    var heldCount = 0
    var bytes = 0
  }

  let number: Int
  let flow: Flow?
  let opened: Timestamp
  var clientIsHigh: Bool?
  /// The start of both directions was captured, so that their first bytes begin records.
  var startWasCaptured = false
  var service = Service.unknown
  var isEncrypted = false
  var ways = (low: Way(), high: Way())

  var gateway: RecordFramer<GatewayGrammar>
  var responses: RecordFramer<ResponseGrammar>
  var feedback: RecordFramer<FeedbackGrammar>

  var session: ProviderSession
  var writeTimes: WriteTimes
  var seenResponses: [ErrorResponseRecord] = []
  var feedbackTuples = 0
  var errorResponses = 0
  var missingBytes = 0
  var conflictingBytes = 0
  var limits: [LimitKind] = []
  var end = ConnectionRecord.End.captureEnd
  var firstClosing: (isHigh: Bool, isReset: Bool)?
  var closed = Timestamp.none

  init(number: Int, flow: Flow?, opened: Timestamp, options: DissectionOptions) {
    self.number = number
    self.flow = flow
    self.opened = opened
    gateway = RecordFramer(grammar: GatewayGrammar(limits: options.limits), isAligned: true)
    responses = RecordFramer(grammar: ResponseGrammar(), isAligned: true)
    feedback = RecordFramer(grammar: FeedbackGrammar(limits: options.limits), isAligned: true)
    session = ProviderSession(maximumIdentifierRuns: options.maximumIdentifierRuns)
    writeTimes = WriteTimes(maximum: options.maximumWriteTimes)
  }

  /// Sets how both ways are read, once the client and the service are known.
  func setReadings() {
    guard let clientIsHigh else { return }
    let (client, server): (Reading, Reading) =
      switch service {
      case .gateway where !isEncrypted: (.gateway, .responses)
      case .feedback where !isEncrypted: (.opaque, .feedback)
      default: (.opaque, .opaque)
      }
    ways.low.reading = clientIsHigh ? server : client
    ways.high.reading = clientIsHigh ? client : server
    if !startWasCaptured {
      gateway = RecordFramer(grammar: gateway.grammar, isAligned: false)
      responses = RecordFramer(grammar: responses.grammar, isAligned: false)
      feedback = RecordFramer(grammar: feedback.grammar, isAligned: false)
    }
  }

  func direction(fromHigh: Bool) -> Direction { fromHigh == (clientIsHigh ?? false) ? .client : .server }

  /// The port that says what a connection is for: the server's, or the known one of the two.
  func decideByPorts(_ ports: [UInt16: Service]) {
    guard let flow else { return }
    let (low, high) = (ports[flow.low.port], ports[flow.high.port])
    if clientIsHigh == nil && (low == nil) != (high == nil) { clientIsHigh = low != nil }
    guard let clientIsHigh else { return }
    service = (clientIsHigh ? low : high) ?? .unknown
  }
}

/// When notifications were written: one entry per packet that ended at least one, not one per notification.
///
/// It answers how long an error response took. The oldest entries are forgotten at the limit.
struct WriteTimes {
  private struct Entry {
    var firstIndex: Int
    var time: Timestamp
  }

  private let maximum: Int
  private var entries: [Entry] = []
  /// Entries before this one are forgotten.
  private var head = 0

  init(maximum: Int) { self.maximum = max(1, maximum) }

  mutating func note(_ index: Int, _ time: Timestamp) {
    if let last = entries.last, last.time == time { return }
    if entries.count - head >= maximum {
      head += 1
      if head >= maximum {
        entries.removeFirst(head)
        head = 0
      }
    }
    entries.append(Entry(firstIndex: index, time: time))
  }

  /// When notification `index` was written; `nil` when that is forgotten or has no time.
  func time(of index: Int) -> Timestamp? {
    var (low, high) = (head, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].firstIndex <= index { low = middle + 1 } else { high = middle }
    }
    return low > head ? entries[low - 1].time : nil
  }
}

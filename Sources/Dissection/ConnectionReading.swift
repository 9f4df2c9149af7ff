import BinaryProtocol
import Bytes
import PacketCapture
import Records

/// The readers of a connection's service, once that is decided.
///
/// The client's frames are read by `ClientStream`, which every packet accesses; this is what few packets need. A reader
/// is an object, because what it finds changes its connection while it reads.
enum ConnectionReading {
  /// Too few bytes were seen to decide.
  case undecided
  /// The binary protocol's gateway.
  case binary(ResponseReader)
  case feedback(FeedbackReader)
  /// HTTP/2, of a provider or of others.
  case http2(HTTP2Reader)
  /// The device channel or local push.
  case messages(MessageReader)
  /// Another protocol: bytes are only counted.
  case opaque

  init(_ service: Service, isAligned: Bool, _ limits: ProtocolLimits) {
    switch service {
    case .gateway: self = .binary(ResponseReader(isAligned: isAligned))
    case .feedback: self = .feedback(FeedbackReader(limits: limits, isAligned: isAligned))
    case .channels, .other, .unknown: self = .opaque
    }
  }

  /// How the client's and the server's bytes are read.
  var modes: (client: ClientStream.ReadingMode, server: ClientStream.ReadingMode) {
    switch self {
    case .undecided: (.undecided, .undecided)
    case .binary: (.gateway, .responses)
    case .feedback: (.opaque, .feedback)
    case .http2: (.http2, .http2)
    case .messages: (.messages, .messages)
    case .opaque: (.opaque, .opaque)
    }
  }

  /// Error responses so far.
  var errorResponses: Int { if case .binary(let reader) = self { reader.count } else { 0 } }

  /// Feedback tuples so far.
  var feedbackTuples: Int { if case .feedback(let reader) = self { reader.count } else { 0 } }

  /// Bytes that it holds until more comes.
  var heldBytes: Int {
    switch self {
    case .undecided, .opaque: 0
    case .binary(let reader): reader.heldBytes
    case .feedback(let reader): reader.framer.heldBytes
    case .http2(let reader): reader.heldBytes
    case .messages(let reader): reader.heldBytes
    }
  }

  /// Frees memory that is ready for what comes.
  func freeSpare() {
    switch self {
    case .undecided, .opaque, .messages: break
    case .binary(let reader): reader.framer.freeSpare()
    case .feedback(let reader): reader.framer.freeSpare()
    case .http2(let reader): reader.session.freeSpare()
    }
  }
}

/// The error responses of a connection.
final class ResponseReader {
  /// An error response, and what decides which notification it names if that is not known at once.
  struct Seen {
    var record: ErrorResponseRecord
    let mark: CapturePosition
    /// The number of notifications that precede it in the capture.
    let before: Int
    /// Whether the response acknowledges bytes that were not captured yet: the notification that it names is decided
    /// after these bytes.
    var isWaiting: Bool
  }

  var framer: RecordFramer<ResponseGrammar, CapturePosition>
  /// Responses whose records wait for their final counts.
  var seen: [Seen] = []
  /// The number of responses, the last ones of `seen`, that wait for the bytes they acknowledge.
  var waiting = 0
  /// All error responses so far.
  var count = 0

  init(isAligned: Bool) { framer = RecordFramer(grammar: ResponseGrammar(), isAligned: isAligned) }

  var heldBytes: Int { framer.heldBytes + seen.count * MemoryLayout<Seen>.stride }
}

/// The tuples of a connection to a feedback service.
final class FeedbackReader {
  var framer: RecordFramer<FeedbackGrammar, CapturePosition>
  /// Tuples so far.
  var count = 0

  init(limits: ProtocolLimits, isAligned: Bool) {
    framer = RecordFramer(grammar: FeedbackGrammar(limits: limits), isAligned: isAligned)
  }
}

import BinaryProtocol
import Measurement
import PacketCapture
import ProviderAPI
import PushModel
import Records

extension StoryOutcome {
  /// Its name in records and options.
  package var name: String { rawValue }

  var word: StaticString {
    switch self {
    case .acceptedTwice: "accepted_twice"
    case .expired: "expired"
    case .recovered: "recovered"
    case .accepted: "accepted"
    case .open: "open"
    case .rejected: "rejected"
    case .lost: "lost"
    }
  }
}

/// A distinct notification of a recording: one token, payload and topic, however often it was sent.
package struct StoryRecord: Sendable {
  package var outcome: StoryOutcome
  /// The outcome by the captured sendings alone; equal to `outcome` unless that is open.
  package var seen: StoryOutcome
  /// The reason why the outcome is open.
  package var openReason: OpenReason?
  /// `nil`: its frames have none.
  package var token: [UInt8]?
  package var payload: [UInt8]?
  /// `nil`: the recording does not show it.
  package var topic: String?
  /// The items do not fit its frames.
  package var isMalformed: Bool
  /// It can be recognised when it is sent again. Not a field of the record.
  package var isRecognisable = true
  /// One of its sendings is selected.
  package var isSelected = true
  package var sent: Int
  package var firstSent: Timestamp
  package var lastSent: Timestamp
  /// Nanoseconds from the first sending to the accepted one; for recovered notifications only.
  package var recoveredAfter: Int64?
  /// Nanoseconds from the last sending to the end of the recording; only if all sendings were discarded.
  package var observedFor: Int64?
}

/// One sending of a notification.
package struct SendingRecord: Sendable {
  package var connection: Int
  package var index: Int
  package var time: Timestamp
  /// The packet, with its file's number (`PacketNumber`).
  package var packet: Int
  package var fate: Fate
  /// The status of the error response that rejects it; of a request, that of the answer that does.
  package var status: Int?
  /// The reason of the answer that rejects a request.
  package var reason: String?
  /// Why a request was discarded.
  package var cause: DiscardCause?
  /// It is a request of the HTTP/2 provider API. Not a field of the record.
  package var isRequest: Bool
  package var identifier: UInt32?
  package var expiration: UInt32?
  /// When the error response came that discards it. Not a field of the record.
  package var discardedAt: Timestamp
  /// The relation to the story's sendings before it. Not a field of the record.
  package var relation: SendingRelation

  /// - Parameter reasons: the reasons of the recording, by number.
  init(_ row: StoryRow, _ relation: SendingRelation, reasons: [String]) {
    self.relation = relation
    (connection, index, packet) = (row.connection, row.index, row.packet)
    time = Timestamp(nanoseconds: row.time)
    discardedAt = Timestamp(nanoseconds: row.discardedAt)
    fate = row.fate.fate
    isRequest = row.flags.contains(.isRequest)
    status = row.flags.contains(.hasStatus) ? Int(row.status) : nil
    reason = row.reason > 0 ? reasons[Int(row.reason) - 1] : nil
    cause = row.discardCause
    identifier = row.flags.contains(.hasIdentifier) ? row.identifier : nil
    expiration = row.flags.contains(.hasExpiration) ? row.expiration : nil
  }
}

/// The history of one token in a recording.
package struct TokenRecord: Sendable {
  package var token: [UInt8]
  package var topic: String?
  package var sent: Int
  package var accepted: Int
  package var rejected: Int
  /// The status of the last error response or answer that rejects a notification to the token.
  package var status: Int?
  /// The reason of that answer.
  package var reason: String?
  /// The time when the feedback service first listed it.
  package var listed: Timestamp
  /// The time when its app was found to be gone, in UNIX seconds, as in the earliest of its feedback tuples.
  package var gone: UInt32?
  /// Sendings after it was listed; `nil`: it was not.
  package var sentAfterListed: Int?
  /// Sendings after its app was gone; `nil`: no tuple has a time.
  package var sentAfterGone: Int?
  package var firstSeen: Timestamp
  package var lastSeen: Timestamp
  /// Whether it was listed, or rejected as an invalid token, after it was last accepted. Not a field of the record.
  package var isDead = false
  /// One of its notifications is a request of the HTTP/2 provider API. Not a field of the record.
  package var isOfRequests = false
}

/// Totals over the emitted stories.
package struct StorySummary: Sendable {
  /// The summary of the whole recording.
  package var recording = SummaryRecord()
  /// Sendings of the stories.
  package var sendings = 0
  private var counts: [StoryOutcome: Int] = [:]
  package var tokens = 0
  /// Times from first to accepted sendings, of recovered notifications with known times.
  package var recovery: Recovery?
  /// Gaps in what providers sent, and their bytes. Not a field of the record.
  package var gaps: (count: Int, bytes: Int) = (0, 0)

  /// Quantiles of exact values, in nanoseconds.
  package struct Recovery: Sendable, Equatable {
    package var p50: Int64
    package var p99: Int64
    package var max: Int64
  }

  package var stories: Int { counts.values.reduce(0, +) }
  package subscript(outcome: StoryOutcome) -> Int {
    get { counts[outcome, default: 0] }
    set { counts[outcome] = newValue }
  }
}

/// Receives the stories of a recording after all of it was read: each story with its sendings, in the order of first
/// sendings; then tokens, and the summary.
package protocol StorySink: AnyObject {
  /// An input was opened, while reading goes on.
  func receive(_ record: CaptureRecord)
  func begin(_ story: StoryRecord)
  func receive(_ sending: SendingRecord)
  func endStory()
  func receive(_ token: TokenRecord)
  func receive(_ summary: StorySummary)
  /// Passes what is buffered to the output.
  func flush()
  /// Whether records are still wanted.
  var isOpen: Bool { get }
}

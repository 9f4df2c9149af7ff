import BinaryProtocol
import PacketCapture
import ProviderAPI
import PushModel

/// The part of a record that stories are made of, as it goes through memory and files: a notification, or what later
/// records say about notifications.
struct StoryRow: BitwiseCopyable {
  /// In the order in which rows at one place are needed.
  enum Kind: UInt8, BitwiseCopyable {
    /// A connection with its topic.
    case connection
    /// A fate: of the notifications from `index` to `last`.
    case fate
    /// An error response that names the notification.
    case response
    case feedback
    case sending
  }

  struct Flags: OptionSet, BitwiseCopyable {
    let rawValue: UInt16
    static let hasIdentifier = Flags(rawValue: 1)
    static let hasExpiration = Flags(rawValue: 2)
    static let hasStatus = Flags(rawValue: 4)
    /// The items do not fit the frame.
    static let isMalformed = Flags(rawValue: 8)
    /// The token is not empty.
    static let hasToken = Flags(rawValue: 32)
    /// It matches the selection, as far as known so far.
    static let isSelected = Flags(rawValue: 16)
    /// `NotificationIdentity.isRecognisable`.
    static let isRecognisable = Flags(rawValue: 64)
    /// The whole frame is there, without a token: no gateway accepts it (status 2).
    static let lacksToken = Flags(rawValue: 128)
    /// It is a request of the HTTP/2 provider API.
    static let isRequest = Flags(rawValue: 256)
    /// Its topic is that of the connection's certificate, if any: it has none of its own.
    static let hasTopicOfConnection = Flags(rawValue: 512)
    /// The token of a request was found to be gone, at `identifier`.
    static let isGone = Flags(rawValue: 1024)
  }

  /// `NotificationIdentity.keys`.
  var content = ContentKey.zero
  var token = ContentKey.zero
  var topic = ContentKey.zero
  var time = Timestamp.none.nanoseconds
  var index: Int
  var packet = 0
  /// The last notification of a range of fates.
  var last = 0
  /// When the error response came that discards the sending, in nanoseconds.
  var discardedAt = Timestamp.none.nanoseconds
  /// Places in the `ContentStore`; -1: the notification has none.
  var tokenPlace = -1
  var payloadPlace = -1
  var topicPlace = -1
  var connection: Int
  /// In a window: the error response that discards the sending (`TrackedNotifications.beginLoss`); -1: none, or unknown.
  var loss: Int32 = -1
  /// Of a request: when its token was found to be gone, as the answer says.
  var identifier: UInt32 = 0
  /// In a feedback tuple, and in an answer with 410: when the app was found to be gone.
  var expiration: UInt32 = 0
  var kind: Kind
  var fate = FateCode.unknown
  /// The status of an error response, or of an answer over HTTP/2.
  var status: UInt16 = 0
  /// The number of a request's reason among those of the recording, from 1; 0: none.
  var reason: UInt16 = 0
  /// Why a request was discarded; 0: it was not.
  var cause: UInt8 = 0
  var flags: Flags = []

  init(_ kind: Kind, connection: Int, index: Int) {
    (self.kind, self.connection, self.index) = (kind, connection, index)
  }

  var place: SendingPlace { SendingPlace(time: time, connection: connection, index: index) }
}

/// `Fate`, whose raw value is a text.
enum FateCode: UInt8, BitwiseCopyable {
  case accepted, rejected, discarded, unknown

  init(_ fate: Fate) {
    self =
      switch fate {
      case .accepted: .accepted
      case .rejected: .rejected
      case .discarded: .discarded
      case .unknown: .unknown
      }
  }

  var fate: Fate {
    switch self {
    case .accepted: .accepted
    case .rejected: .rejected
    case .discarded: .discarded
    case .unknown: .unknown
    }
  }
}

extension StoryRow {
  /// `cause` as a value.
  var discardCause: DiscardCause? {
    get { DiscardCause.allCases.indices.contains(Int(cause) - 1) ? DiscardCause.allCases[Int(cause) - 1] : nil }
    set { cause = newValue.flatMap { DiscardCause.allCases.firstIndex(of: $0) }.map { UInt8($0 + 1) } ?? 0 }
  }
}

/// The place of a sending among all: by time; of equal times, and where there are none, by connection.
struct SendingPlace: BitwiseCopyable, Comparable, Hashable {
  var time: Int64
  var connection: Int
  var index: Int

  @inline(__always)
  static func < (a: SendingPlace, b: SendingPlace) -> Bool {
    if a.time != b.time { return a.time < b.time }
    return a.connection != b.connection ? a.connection < b.connection : a.index < b.index
  }
}

/// In the order of a connection: facts about a notification come before it.
enum ConnectionOrder: RowOrder {
  static func precedes(_ a: StoryRow, _ b: StoryRow) -> Bool {
    if a.connection != b.connection { return a.connection < b.connection }
    return a.index != b.index ? a.index < b.index : a.kind.rawValue < b.kind.rawValue
  }
}

/// Sendings of the same content together, in order of time.
enum ContentOrder: RowOrder {
  static func precedes(_ a: StoryRow, _ b: StoryRow) -> Bool {
    if a.content != b.content { return a.content < b.content }
    return a.topic != b.topic ? a.topic < b.topic : a.place < b.place
  }
}

/// Rows of the same token together: feedback, then sendings, each in order of time.
enum TokenOrder: RowOrder {
  static func precedes(_ a: StoryRow, _ b: StoryRow) -> Bool {
    if a.token != b.token { return a.token < b.token }
    if a.topic != b.topic { return a.topic < b.topic }
    return a.kind != b.kind ? a.kind.rawValue < b.kind.rawValue : a.place < b.place
  }
}

/// A sending of a story.
struct FoldedSending: BitwiseCopyable {
  /// The story's first sending.
  var story: SendingPlace
  var row: StoryRow
}

/// Sendings of the same story together, stories in the order of their first sendings.
enum FoldedOrder: RowOrder {
  static func precedes(_ a: FoldedSending, _ b: FoldedSending) -> Bool {
    a.story != b.story ? a.story < b.story : a.row.place < b.row.place
  }
}

enum StoryOrder: RowOrder {
  static func precedes(_ a: StoryFacts, _ b: StoryFacts) -> Bool { a.first.place < b.first.place }
}

enum TokenFactsOrder: RowOrder {
  static func precedes(_ a: TokenFacts, _ b: TokenFacts) -> Bool { a.first < b.first }
}

enum DurationOrder: RowOrder {
  static func precedes(_ a: Int64, _ b: Int64) -> Bool { a < b }
}

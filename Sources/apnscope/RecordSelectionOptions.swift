import ArgumentParser
import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import Records

/// Options that select records of a recording.
struct RecordSelectionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Only from this time on: a date and time as 2026-11-21T10:05:00Z, '2026-11-21 12:05:00+02:00' or 1795255500.5 (seconds or milliseconds since 1970; UTC without an offset), a time of day as 10:05 on the recording's first day, or a time span after its first connection was opened.",
      valueName: "time"), transform: Moment.parse)
  var from: Moment?

  @Option(help: ArgumentHelp("Only before this time.", valueName: "time"), transform: Moment.parse)
  var to: Moment?

  @Option(
    name: .customLong("token"), parsing: .singleValue,
    help: ArgumentHelp(
      "Only with tokens that begin with these hexadecimal digits. Error responses: the token of the notification they name.",
      valueName: "prefix"), transform: TokenDigits.parse)
  var tokens: [TokenDigits] = []

  @Option(
    name: .customLong("identifier"), parsing: .singleValue,
    help: ArgumentHelp(
      "Only notifications, error responses and messages of local push with this identifier.", valueName: "number"))
  var identifiers: [UInt32] = []

  @Option(
    name: .customLong("connection"), parsing: .singleValue,
    help: ArgumentHelp("Only of the connection with this number, or with one in a range as 2..5.", valueName: "number"),
    transform: NumberRange.parse)
  var connections: [NumberRange] = []

  @Option(
    name: .customLong("status"), parsing: .singleValue,
    help: ArgumentHelp(
      "Only error responses and answers over HTTP/2 with this status, and the notifications they name.",
      valueName: "status"))
  var statuses: [UInt16] = []

  @Option(
    name: .customLong("fate"), parsing: .singleValue,
    help:
      "Only notifications with this fate, and the error responses that name them: \(Fate.allCases.map(\.rawValue).joined(separator: ", "))."
  )
  var fates: [Fate] = []

  @Option(
    name: .customLong("topic"), parsing: .singleValue,
    help: ArgumentHelp(
      "Only of connections whose client certificate names this topic, as UID or at the end of the CN; never of connections without TLS. Over HTTP/2 notifications with this topic.",
      valueName: "topic"))
  var topics: [String] = []

  func validate() throws {
    if let status = statuses.first(where: { $0 > 999 }) {
      throw ValidationError("--status must be 0 to 255, or 100 to 999 over HTTP/2 (got \(status)).")
    }
    let (isEmpty, isTimeOfDay) =
      switch (from?.moment, to?.moment) {
      case (.at(let from), .at(let to)): (from >= to, false)
      case (.offset(let from), .offset(let to)): (from >= to, false)
      case (.timeOfDay(let from), .timeOfDay(let to)): (from >= to, true)
      default: (false, false)
      }
    guard isEmpty else { return }
    throw ValidationError(
      "--to must be later than --from" + (isTimeOfDay ? "; give the date of another day, as 2026-11-22T01:00." : "."))
  }

  var selection: RecordSelection {
    var selection = RecordSelection()
    selection.from = from?.moment
    selection.to = to?.moment
    selection.tokens = tokens.map(\.prefix)
    selection.identifiers = identifiers
    selection.connections = connections.map(\.numbers)
    selection.statuses = Set(statuses.map(Int.init))
    selection.fates = Set(fates)
    selection.topics = Set(topics)
    return selection
  }
}

extension Fate: ExpressibleByArgument {}

/// The option that selects types of records, in addition to the other criteria.
struct RecordTypeOptions: ParsableArguments {
  @Option(
    name: .customLong("type"), parsing: .singleValue,
    help: ArgumentHelp(
      "Only records of this type: \(SelectedType.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "type")
  )
  var types: [SelectedType] = []

  /// The selection with these record types added.
  func adding(to which: RecordSelectionOptions) -> RecordSelection {
    var selection = which.selection
    selection.types = Set(types.map(\.type))
    return selection
  }
}

/// The types that can be selected; records of other types accompany them.
enum SelectedType: String, CaseIterable, ExpressibleByArgument {
  case notification
  case errorResponse = "error_response"
  case response, goaway, reset, settings
  case channelRequest = "channel_request"
  case device
  case localPush = "local_push"
  case feedback, gap, malformed, connection
  case captureLoss = "capture_loss"
  case delivery

  var type: RecordType {
    switch self {
    case .notification: .notification
    case .errorResponse: .errorResponse
    case .response: .response
    case .goaway: .goAway
    case .reset: .reset
    case .settings: .settings
    case .channelRequest: .channelRequest
    case .device: .device
    case .localPush: .localPush
    case .feedback: .feedback
    case .gap: .gap
    case .malformed: .malformed
    case .connection: .connection
    case .captureLoss: .captureLoss
    case .delivery: .delivery
    }
  }
}

/// A moment of a recording: 2026-11-21T00:32:58Z, 00:32:58.5, or 90s.
struct Moment: Quantity {
  static let notation =
    "a time as 2026-11-21T10:05:00Z, 2026-11-21T12:05:00+02:00, 1795255500, 10:05, 10:05:30.5 or, after the first connection, 90s"

  var moment: RecordSelection.Moment

  init?(argument: String) {
    if let moment = RecordSelection.Moment(clock: argument) {
      self.moment = moment
    } else {
      guard let span = TimeSpan(argument: argument.hasPrefix("+") ? String(argument.dropFirst()) : argument) else {
        return nil
      }
      moment = .offset(Int64((span.duration / .nanoseconds(1)).rounded()))
    }
  }

  static func guess(_ text: String) -> String? {
    Moment(argument: text + "s").map { _ in text + "s" }
  }
}

/// The beginning of a device token: 3b1d.
struct TokenDigits: Quantity {
  static let notation = "the first hexadecimal digits of a token as 3b1d"

  var prefix: RecordSelection.TokenPrefix

  init?(argument: String) {
    guard let prefix = RecordSelection.TokenPrefix(argument) else { return nil }
    self.prefix = prefix
  }
}

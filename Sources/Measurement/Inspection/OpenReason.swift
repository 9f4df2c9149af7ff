/// The reason why a notification's outcome is open, most general first.
public enum OpenReason: String, Sendable, Codable, CaseIterable, BitwiseCopyable {
  /// No error response proves the fate of one of its sendings.
  case unknownFate = "unknown_fate"
  /// A request of the provider API got no answer.
  case unanswered
  /// It cannot be recognised in another sending, or exceeds the number of notifications that are tracked.
  case notTracked = "not_tracked"
  /// The capture dropped packets.
  case captureLoss = "capture_loss"
  /// Packets were passed over whose link type is not read.
  case unreadPackets = "unread_packets"
  /// Bytes of a provider are missing from the recording.
  case gap
  /// Fields that tell which notification a request is are uncertain, or were not kept whole.
  case uncertainFields = "uncertain_fields"
  /// A connection could not be decrypted.
  case undecrypted
  /// A connection uses a protocol that is not known.
  case unreadConnection = "unread_connection"
  /// The records are a selection of the recording's.
  case selection
  /// Another part of the recording was not read.
  case otherPart = "other_part"
  /// Another recording of the same time may show further sendings.
  case otherRecording = "other_recording"
  /// It was sent on connections of which only some show their topic.
  case unknownProvider = "unknown_provider"
  /// The recording has no times.
  case noTimes = "no_times"
  /// The beginning of a connection was not captured.
  case connectionStart = "connection_start"
  /// The end of a connection was not captured.
  case connectionEnd = "connection_end"
  /// There is a pause between two files of the recording.
  case betweenFiles = "between_files"
  /// The recording begins too short a time before it.
  case beforeRecording = "before_recording"
  /// The recording ends too short a time after it.
  case afterRecording = "after_recording"
}

extension OpenReason {
  /// The part of the recording that may hide a sending, as "in a gap of 14,875 bytes".
  ///
  /// - Parameters:
  ///   - gaps: the number of gaps in what providers sent.
  ///   - bytes: the bytes missing in them.
  package func place(gaps: Int, bytes: Int) -> String {
    switch self {
    case .unknownFate: "of an unknown fate"
    case .unanswered: "without an answer"
    case .notTracked: "not followed (--max-remembered)"
    case .captureLoss: "in packets that the capture dropped"
    case .unreadPackets: "in packets of a link type or a tunnel that is not read"
    case .gap:
      gaps > 1
        ? "in one of \(gaps) gaps of \(GroupedNumber.text(bytes)) bytes in all"
        : "in a gap of \(GroupedNumber.text(bytes)) bytes"
    case .uncertainFields: "in a request whose fields are uncertain"
    case .undecrypted: "on a connection that was not decrypted"
    case .unreadConnection: "on a connection that uses an unknown protocol"
    case .selection: "in records that are not selected"
    case .otherPart: "in another part of the recording"
    case .otherRecording: "in another recording of the same time"
    case .unknownProvider: "on a connection that does not show its provider"
    case .noTimes: "at another time: the recording has none"
    case .connectionStart: "in the part of a connection before its first captured packet"
    case .connectionEnd: "in the part of a connection after its last captured packet"
    case .betweenFiles: "in the pause between two files"
    case .beforeRecording: "before the recording began"
    case .afterRecording: "after the recording ended"
    }
  }
}

extension InspectionReport.Stories {
  /// The places that may hide sendings of notifications not seen again, as "119 may be in a gap of 14,875 bytes".
  package var whereNotSeen: String { words(notSeenAgain) { "\($0) may be \($1)" } }

  /// The reasons why notifications are open, as "119 may have been sent again in a gap of 14,875 bytes".
  package var whereOpen: String { words(openReasons) { "\($0) may have been sent again \($1)" } }

  /// Like `whereOpen`, without the notifications that were not seen again; empty: none.
  package var whereOthersOpen: String {
    var others = openReasons
    for reason in OpenReason.allCases {
      let count = (others[reason] ?? 0) - (notSeenAgain[reason] ?? 0)
      others[reason] = count > 0 ? count : nil
    }
    return words(others) { "\($0) may have been sent again \($1)" }
  }

  private func words(_ counts: NamedCounts<OpenReason>, _ sentence: (String, String) -> String) -> String {
    OpenReason.allCases.compactMap { reason in
      counts[reason].map { count in
        let number = GroupedNumber.text(count)
        return switch reason {
        case .unknownFate: "\(number) accepted or lost: no error response proves anything about a sending"
        case .unanswered: "\(number) accepted or not: a sending got no answer"
        case .notTracked: "\(number) not followed"
        default: sentence(number, reason.place(gaps: gaps, bytes: gapBytes))
        }
      }
    }.joined(separator: "; ")
  }

  /// The outcomes of a trace's stories.
  package init(_ stories: TraceReport.Stories) {
    self.init()
    for outcome in StoryOutcome.allCases {
      self[outcome] = stories.outcomes.first { $0.name == outcome.rawValue }?.count ?? 0
    }
    (openReasons, notSeenAgain, recovery) = (stories.openReasons, stories.notSeenAgain, stories.recovery)
    (gaps, gapBytes) = (stories.gaps, stories.gapBytes)
  }

  /// Replaces the outcomes by those of exact stories, and keeps what only an inspection has.
  package mutating func takeOutcomes(of other: InspectionReport.Stories) {
    for outcome in StoryOutcome.allCases { self[outcome] = other[outcome] }
    (openReasons, notSeenAgain) = (other.openReasons, other.notSeenAgain)
    recovery = other.recovery
    (window, windowS, notTracked) = (nil, nil, 0)
  }
}

/// Why it is open what became of a notification, most general first.
public enum OpenReason: String, Sendable, Codable, CaseIterable, BitwiseCopyable {
  /// No error response proves anything about one of its sendings.
  case unknownFate = "unknown_fate"
  /// It cannot be recognised when it is sent again, or is one too many to be remembered.
  case notTracked = "not_tracked"
  /// The capture dropped packets.
  case captureLoss = "capture_loss"
  /// Packets were passed over whose link type is not read.
  case unreadPackets = "unread_packets"
  /// Bytes of a provider are missing from the recording.
  case gap
  /// A connection could not be decrypted.
  case undecrypted
  /// A connection uses a protocol that is not known.
  case unreadConnection = "unread_connection"
  /// The records are a selection of the recording's.
  case selection
  /// Another part of the recording was not read.
  case otherPart = "other_part"
  /// Another recording of the same time may show more.
  case otherRecording = "other_recording"
  /// It was sent on connections of which some show their provider and some do not.
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
  /// Where a sending may be that is not in the recording, as "in a gap of 14,875 bytes".
  ///
  /// - Parameters:
  ///   - gaps: in what providers sent.
  ///   - bytes: in those.
  package func place(gaps: Int, bytes: Int) -> String {
    switch self {
    case .unknownFate: "of an unknown fate"
    case .notTracked: "not followed (--max-remembered)"
    case .captureLoss: "in packets that the capture dropped"
    case .unreadPackets: "in packets of a link type or a tunnel that is not read"
    case .gap:
      gaps > 1
        ? "in one of \(gaps) gaps of \(GroupedNumber.text(bytes)) bytes in all"
        : "in a gap of \(GroupedNumber.text(bytes)) bytes"
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
  /// Where those that were not seen again may be, as "119 may be in a gap of 14,875 bytes".
  package var whereNotSeen: String { words(notSeenAgain) { "\($0) may be \($1)" } }

  /// Why those that are open are, as "119 may have been sent again in a gap of 14,875 bytes".
  package var whereOpen: String { words(openReasons) { "\($0) may have been sent again \($1)" } }

  /// The same without those that were not seen again; empty: there are none.
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

  /// Takes the outcomes of exact stories, and keeps what only an inspection has.
  package mutating func takeOutcomes(of other: InspectionReport.Stories) {
    for outcome in StoryOutcome.allCases { self[outcome] = other[outcome] }
    (openReasons, notSeenAgain) = (other.openReasons, other.notSeenAgain)
    recovery = other.recovery
    (window, windowS, notTracked) = (nil, nil, 0)
  }
}

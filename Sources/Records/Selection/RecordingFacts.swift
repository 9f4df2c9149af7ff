import BinaryProtocol
import Bytes
import PacketCapture
import PushModel
import TLSDecryption

/// A sink that keeps facts of a first pass for a second one: facts about notifications that are known only when the
/// connection has ended.
public struct RecordingFacts: ConnectionSink, Sendable {
  /// The fates of the recording's notifications.
  public private(set) var fates: FateIndex
  private let statuses: Set<Int>
  private let topics: Set<String>
  private let maximum: Int
  /// By connection, the notifications named by responses with one of the selected statuses; sorted when the connection
  /// has ended.
  private var named: [Int: [Int]] = [:]
  /// Connections with one of the selected topics.
  private var matching: Set<Int> = []
  private var kept = 0
  /// Whether a limit was reached, so that a selection may lack records.
  public private(set) var isCut = false

  /// - Parameters:
  ///   - selection: decides which facts are collected.
  ///   - maximumRanges: kept ranges of fates, see `FateIndex`; also the number of all other facts.
  public init(
    for selection: RecordSelection = RecordSelection(),
    maximumRanges: Int = FateIndex.usualMaximumRanges
  ) {
    fates = FateIndex(maximumRanges: maximumRanges)
    statuses = selection.statuses
    topics = selection.topics
    maximum = maximumRanges
  }

  public mutating func receive(_ record: ErrorResponseRecord) {
    guard let notification = record.notification, statuses.contains(Int(record.response.status.rawValue)), mayKeep()
    else {
      return
    }
    named[record.place.connection, default: []].append(notification)
  }

  public mutating func receive(_ record: ProviderRecord) {
    fates.receive(record)
    guard case .response(let record) = record, let status = record.status, let notification = record.notification,
      statuses.contains(status), mayKeep()
    else { return }
    named[record.place.connection, default: []].append(notification)
  }

  public mutating func receive(_ record: FateRecord) { fates.receive(record) }

  public mutating func receive(_ record: ConnectionRecord) {
    fates.receive(record)
    named[record.connection]?.sort()
    guard !topics.isEmpty, let tls = record.tls, !topics.isDisjoint(with: tls.topics), mayKeep() else { return }
    matching.insert(record.connection)
  }

  private mutating func mayKeep() -> Bool {
    guard kept < maximum else {
      isCut = true
      return false
    }
    kept += 1
    return true
  }

  /// Whether a response with one of the selected statuses names the notification.
  package func isNamed(_ notification: Int, on connection: Int) -> Bool {
    guard let named = named[connection] else { return false }
    var (low, high) = (0, named.count)
    while low < high {
      let middle = (low + high) / 2
      if named[middle] < notification { low = middle + 1 } else { high = middle }
    }
    return low < named.count && named[low] == notification
  }

  /// Whether the connection has one of the selected topics.
  func isOfTopic(_ connection: Int) -> Bool { matching.contains(connection) }

  // MARK: ignored records

  public var isOpen: Bool { true }
  public mutating func receive(_ record: CaptureRecord) {}
  public mutating func receive(_ record: borrowing FeedbackRecord) {}
  public mutating func receive(_ record: GapRecord) {}
  public mutating func receive(_ record: MalformedRecord) {}
  public mutating func receive(_ record: SummaryRecord) {}
}

extension TLSSummary {
  /// The topics that the client's certificate names.
  package var topics: [String] { clientSubject.map { CertificateSubject($0).topics } ?? [] }
}

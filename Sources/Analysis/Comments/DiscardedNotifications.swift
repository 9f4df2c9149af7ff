import Measurement
import Records

/// The sendings of a recording that were discarded, and those that send these again, for comments at their packets.
///
/// It is the sink of stories, which are exact for recordings of any size. Memory is bounded: the first sendings are kept.
package final class DiscardedNotifications: StorySink {
  /// One sending, shown as `#index of connection` at a packet.
  struct Place: Hashable {
    var connection: Int
    var index: Int
    var packet: Int
  }

  /// A sending that was discarded, or sends a discarded one again, or both.
  struct Sending {
    var place: Place
    /// The notification can be recognised when it is sent again.
    var isRecognisable: Bool
    /// It was discarded, and sent again in this packet.
    var again: Int?
    /// The first of the discarded sendings that it sends again.
    var resends: Place?
  }

  /// The outcomes of the notifications that were discarded on a connection.
  struct Loss {
    fileprivate var counts: NamedCounts<StoryOutcome> = [:]
    /// Discarded sendings that were sent again, and recognisable ones that were not.
    fileprivate(set) var sentAgain = 0
    fileprivate(set) var neverAgain = 0

    /// Outcomes over all of their sendings, with their counts.
    var outcomes: [(outcome: StoryOutcome, count: Int)] {
      StoryOutcome.allCases.compactMap { outcome in counts[outcome].map { (outcome, $0) } }
    }
  }

  private struct Key: Hashable {
    var connection: Int
    var index: Int
  }

  private let limit: Int
  private var kept: [Sending] = []
  private var byKey: [Key: Sending] = [:]
  private var losses: [Int: Loss] = [:]
  /// Discarded notifications on connections that are too many to be counted.
  package private(set) var lossesNotKept = 0
  private var story: StoryRecord?
  /// The latest sendings of the story, which one response discarded.
  private var waiting: [Sending] = []
  private var waitingCount = 0

  /// - Parameter limit: the number of sendings, and of connections, that are kept.
  package init(limit: Int) { self.limit = limit }

  // MARK: stories

  package var isOpen: Bool { true }
  package func flush() {}
  package func receive(_ record: CaptureRecord) {}

  package func begin(_ story: StoryRecord) { self.story = story }

  package func receive(_ sending: SendingRecord) {
    guard let story else { return }
    var one = Sending(
      place: Place(connection: sending.connection, index: sending.index, packet: sending.packet),
      isRecognisable: story.isRecognisable)
    if story.isRecognisable, sending.relation.resent > 0 {
      one.resends = waiting.first?.place
      settle(againIn: sending.packet)
    }
    if sending.fate == .discarded {
      count(story, on: sending.connection)
      // Further ones are behind all that are kept.
      if waiting.count < limit { waiting.append(one) }
      waitingCount += 1
    } else if one.resends != nil {
      keep(one)
    }
  }

  package func endStory() {
    settle(againIn: nil)
    story = nil
  }

  /// Keeps the sendings that wait for one that sends them again.
  ///
  /// - Parameter packet: its packet; `nil`: there is none.
  private func settle(againIn packet: Int?) {
    guard let first = waiting.first else { return }
    if packet != nil {
      losses[first.place.connection]?.sentAgain += waitingCount
    } else if first.isRecognisable {
      losses[first.place.connection]?.neverAgain += waitingCount
    }
    for var one in waiting {
      one.again = packet
      keep(one)
    }
    waiting.removeAll(keepingCapacity: true)
    waitingCount = 0
  }

  private func count(_ story: StoryRecord, on connection: Int) {
    guard losses[connection] != nil || losses.count < limit else {
      lossesNotKept += 1
      return
    }
    losses[connection, default: Loss()].counts[story.outcome, default: 0] += 1
  }

  private func keep(_ one: Sending) {
    kept.append(one)
    if kept.count / 2 >= max(limit, 512) { cut() }
  }

  /// Keeps the first sendings by their packets, which is the order in which comments are made.
  private func cut() {
    guard kept.count > limit else { return }
    kept.sort {
      ($0.place.packet, $0.place.connection, $0.place.index) < ($1.place.packet, $1.place.connection, $1.place.index)
    }
    kept.removeSubrange(limit...)
  }

  package func receive(_ record: TokenRecord) {}

  package func receive(_ summary: StorySummary) {
    cut()
    byKey = Dictionary(
      kept.map { (Key(connection: $0.place.connection, index: $0.place.index), $0) },
      uniquingKeysWith: { one, _ in one })
    kept = []
  }

  // MARK: for comments

  /// A sending that was discarded or sends a discarded one again; `nil`: it is neither, or not among the first ones.
  func sending(_ index: Int, on connection: Int) -> Sending? { byKey[Key(connection: connection, index: index)] }

  /// The outcomes of the notifications that were discarded on a connection; `nil`: none was, or they are not kept.
  func loss(on connection: Int) -> Loss? { losses[connection] }
}

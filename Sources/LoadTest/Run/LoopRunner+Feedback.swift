import BinaryProtocol
import Measurement
import PushModel

/// Notifications to tokens that the feedback service has listed: left out, or counted.
extension LoopRunner {
  /// The number of notifications whose tokens are looked up ahead; a batch has about as many.
  private static let lookahead = 128
  /// The number of notifications that are left out before the loop handles other events.
  private static let longestRun = 16_384

  enum Unlisted: Equatable {
    /// Notifications to tokens that are not listed, the next ones of the run.
    case piece(SentLog.Piece)
    /// All that was due was left out.
    case nothing
    /// More would take the loop too long.
    case tooMany
  }

  var leavesOutListed: Bool { listed.listedCount > 0 && plan.feedback?.prunes == true }

  /// Whether a notification goes to one of these tokens.
  ///
  /// - Parameters:
  ///   - index: its number in the run of this loop.
  ///   - tokens: those that are listed, taken from the loop once for many notifications.
  @inline(__always)
  private func isListed(_ index: Int, _ tokens: ListedTokens) -> Bool {
    workload.goes(workload.number(of: share.numbers.number(index)), to: tokens)
  }

  /// Leaves out the notifications to listed tokens at the beginning of what is due, and returns those after them. The
  /// schedule goes on as if they had been written.
  ///
  /// - Parameter piece: what `machine.next()` has returned.
  func leaveOutListed(_ piece: SentLog.Piece, _ now: Int64) -> Unlisted {
    var room = Self.longestRun
    var next: SentLog.Piece? = piece
    while var piece = next {
      let count = run(of: piece, areListed: true, most: room)
      if count == 0 {
        piece.count = run(of: piece, areListed: false, most: Self.lookahead)
        return .piece(piece)
      }
      let (_, isNew) = machine.take(count, of: piece, now)
      if isNew { tally.generated += count }
      noteLeftOut(count, of: piece)
      room -= count
      guard room > 0 else { return .tooMany }
      next = machine.next()
    }
    return .nothing
  }

  /// Leaves out the notifications to listed tokens of pieces that were written before.
  func leavingOutListed(_ pieces: [SentLog.Piece]) -> [SentLog.Piece] {
    guard leavesOutListed else { return pieces }
    var kept: [SentLog.Piece] = []
    for piece in pieces {
      var rest = piece
      while rest.count > 0 {
        let isListed = isListed(rest.index, listed)
        var part = rest
        part.count = run(of: rest, areListed: isListed, most: rest.count)
        if isListed { noteLeftOut(part.count, of: part) } else { kept.append(part) }
        rest.index += part.count
        rest.count -= part.count
      }
    }
    return kept
  }

  private func noteLeftOut(_ count: Int, of piece: SentLog.Piece) {
    tally.pruned += count
    if piece.isOpen { tally.prunedOpen += count }
  }

  /// How many notifications at the beginning of a piece all go to listed tokens, or none of them does.
  private func run(of piece: SentLog.Piece, areListed: Bool, most: Int) -> Int {
    let (most, tokens) = (min(most, piece.count), listed)
    var count = 0
    while count < most, isListed(piece.index + count, tokens) == areListed { count += 1 }
    return count
  }

  /// Counts the notifications of a piece that is written to listed tokens.
  @inline(__always)
  func noteRecipients(of piece: SentLog.Piece) {
    guard listed.listedCount > 0 else { return }
    let tokens = listed
    var count = 0
    for index in piece.index..<piece.end where isListed(index, tokens) { count += 1 }
    if count > 0 { tally.listed.written += count }
  }

  /// Counts a rejection for its token by whether that is listed.
  func noteRecipient(of rejection: Rejection, _ named: LifeEvent.Named) {
    guard plan.feedback != nil, rejection == .status(.invalidToken), let index = named.index else { return }
    if isListed(index, listed) {
      tally.listed.rejected += 1
      tally.listed.discarded += named.lossWindow ?? 0
    } else {
      tally.listed.otherRejected += 1
    }
  }
}

/// The time as an event loop observed it: when its timer fired, how long the loop was stalled, and since when no
/// connection was of use.
struct LoopWatch {
  /// The longest time between two readings of the clock, in nanoseconds, that does not count as a stall.
  private static let longestLook: Int64 = 100_000_000
  /// Silent closes before a connection is opened quietly.
  private static let silencesBeforeQuiet = 2

  /// The time at which the loop's timer last fired.
  private(set) var lastTick: Int64?
  /// Nanoseconds in which this loop was stalled.
  private var stoodStill: Int64 = 0
  var lastOpen: Int64
  /// Connections opened since one was of use.
  var openedSinceOfUse = 0
  private var hasOpenedQuietly = false

  init(at now: Int64) { lastOpen = now }

  /// The time `now` without the time in which this loop was stalled and read no connection.
  func observed(_ now: Int64) -> Int64 {
    now - stoodStill - max(0, now - (lastTick ?? now) - Self.longestLook)
  }

  mutating func tick(_ now: Int64, late: Int64) {
    // No connects are attempted while the process is stopped.
    if lastTick != nil, late > Self.longestLook {
      lastOpen += late
      stoodStill += late
    }
    lastTick = now
  }

  /// No connection was of use for so long, in the time that this loop saw pass: none could be made, or all were ended
  /// at once.
  func hasBeenCutOff(for time: Int64) -> Bool {
    guard let lastTick else { return false }
    return lastTick - lastOpen > time
  }

  /// Whether nothing is to be written on a connection for a while: once, when the gateway has closed some silently and
  /// has answered nothing. This distinguishes a gateway that closes every connection from one that does so because of a
  /// notification.
  mutating func takesQuietOpening(_ tally: LoadTally) -> Bool {
    guard !hasOpenedQuietly, tally.endedSilently >= Self.silencesBeforeQuiet, tally.endedUnused == 0, !tally.hasProof
    else { return false }
    hasOpenedQuietly = true
    return true
  }
}

import Measurement
import Testing

@Suite("Clocks and durations")
struct ClockTests {
  @Test("The monotonic clock does not go back, and the time of day is this century's")
  func clocks() {
    let first = MonotonicClock.nanoseconds()
    #expect(MonotonicClock.nanoseconds() >= first)
    #expect((1_700_000_000_000_000_000...4_100_000_000_000_000_000).contains(WallClock.system.nanoseconds()))
    #expect(WallClock { 7 }.nanoseconds() == 7)
  }

  @Test(
    "Durations are in whole nanoseconds, the nearest",
    arguments: [
      (.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.seconds(90), 90_000_000_000),
      (.seconds(8.7), 8_700_000_000), (.milliseconds(2) / 3, 666_667), (.milliseconds(1) / 3, 333_333),
      (.milliseconds(-2) / 3, -666_667), (.seconds(300) + .nanoseconds(1), 300_000_000_001),
    ] as [(Duration, Int64)])
  func nanoseconds(duration: Duration, nanoseconds: Int64) { #expect(duration.nanoseconds == nanoseconds) }

  @Test("A duration that is too long for nanoseconds is one that can be added to another")
  func longest() {
    for long in [Duration.seconds(Int64.max), .nanoseconds(Int64.max)] {
      #expect(long.nanoseconds == .max / 2)
      #expect((.zero - long).nanoseconds == -(.max / 2))
    }
  }
}

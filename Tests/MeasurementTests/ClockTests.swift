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

  @Test("Half a nanosecond is rounded away from zero, less than that towards it")
  func halves() {
    for (attoseconds, nanoseconds) in [
      (0, 0), (499_999_999, 0), (500_000_000, 1), (1_499_999_999, 1), (-499_999_999, 0), (-500_000_000, -1),
      (-1_500_000_000, -2),
    ] as [(Int64, Int64)] {
      #expect(Duration(secondsComponent: 0, attosecondsComponent: attoseconds).nanoseconds == nanoseconds)
    }
  }

  @Test("Processor time passes with work, and is no more than the time that passes")
  func processorTime() {
    let (begin, first) = (MonotonicClock.nanoseconds(), ProcessorTime.ofThread())
    var number: UInt64 = 1
    while ProcessorTime.ofThread() == first { number = SplitMix64.mixed(number) }
    let used = ProcessorTime.ofThread() - first
    #expect(used > 0 && used <= MonotonicClock.nanoseconds() - begin && number != 0)
  }
}

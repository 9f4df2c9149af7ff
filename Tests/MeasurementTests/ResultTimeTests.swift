import Measurement
import Testing

@Suite("Times in results")
struct ResultTimeTests {
  @Test("Every millisecond is written as itself, whatever is behind it")
  func milliseconds() {
    for millisecond in 0..<1_000 as Range<Int64> {
      let digits = String(String(1_000 + millisecond).dropFirst())
      for rest in [0, 1, 500_000, 999_999] as [Int64] {
        let time = 1_442_365_323_000_000_000 + millisecond * 1_000_000 + rest
        #expect(rfc3339(time) == "2015-09-16T01:02:03.\(digits)Z")
      }
    }
  }
}

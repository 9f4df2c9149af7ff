import Bytes
import Testing

@Suite("Units behind numbers")
struct UnitsTests {
  private static let kinds: [(Units, [(name: String, size: Double)])] = [
    (
      .times,
      [
        ("ns", 1), ("us", 1e3), ("µs", 1e3), ("\u{3bc}s", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9),
        ("h", 3_600e9), ("d", 86_400e9),
      ]
    ),
    (
      .sizes,
      [
        ("B", 1), ("KB", 1e3), ("kB", 1e3), ("KiB", 1_024), ("MB", 1e6), ("MiB", 1_048_576), ("GB", 1e9),
        ("GiB", 1_073_741_824),
      ]
    ), (.counts, [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)]),
  ]

  @Test("A unit is known by each of its names, and parted from its number")
  func names() {
    for (units, named) in Self.kinds {
      for (name, size) in named {
        #expect(units.size(of: name) == size)
        let parts = units.split("1.5\(name)")
        #expect(parts?.number == "1.5" && parts?.size == size, "\(name)")
      }
      for name in ["", "x", "Ms", "kb", "mib"] { #expect(units.size(of: name) == nil, "\(name)") }
      for text in ["", "1", "1 ", "1.5e3"] { #expect(units.split(text) == nil, "\(text)") }
    }
    // What is left need not be a number.
    #expect(Units.times.split("ms")?.number == "")
  }

  @Test("A number is written in the largest unit that makes it a whole one")
  func written() {
    let times = ["s", "ms", "us", "ns"]
    for (value, text) in [
      (0, "0s"), (1, "1ns"), (999, "999ns"), (1_000, "1us"), (1_001_000, "1001us"), (90_000_000_000, "90s"),
      (-2_000_000, "-2ms"),
    ] { #expect(Units.times.text(value, in: times) == text) }
    for (value, text) in [(1_024, "1KiB"), (1 << 20, "1MiB"), (1_000, "1000"), (3 << 19, "1536KiB")] {
      #expect(Units.sizes.text(value, in: ["MiB", "KiB"]) == text)
    }
    for (value, text) in [(1_000, "1k"), (1_500, "1500"), (2_000_000, "2M"), (3_000_000_000, "3G")] {
      #expect(Units.counts.text(value, in: ["G", "M", "k"]) == text)
    }
  }

  @Test(
    "A share is a number, or one in percent",
    arguments: [("0.01", 0.01), ("1%", 0.01), ("57%", 0.57), ("1e-4", 1e-4), ("150%", 1.5)])
  func shares(text: String, share: Double) { #expect(Units.share(text) == share) }

  @Test("Other texts are no shares", arguments: ["", "%", "x%", "1%%", "one"])
  func noShares(text: String) { #expect(Units.share(text) == nil) }
}

import Bytes
import TestSupport
import Testing

@testable import PacketCapture

/// Retransmissions with other bytes are found without the bytes.
@Suite("Recent segments")
struct RecentSegmentsTests {
  @Test("One byte that differs, wherever it stands, is a conflict; the same bytes are none")
  func anyByte() {
    var random = SeededGenerator(seed: 19)
    for length in Array(1...100) + [1_400, 1_448] {
      let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      var segments = RecentSegments()
      segments.note(bytes.rawBytes, at: 1_000)
      let same = segments.conflicts(bytes.rawBytes, at: 1_000).length
      #expect(same == 0)
      for position in 0..<length {
        for change in [1, 0x80, UInt8.random(in: 1...255, using: &random)] {
          var changed = bytes
          changed[position] ^= change
          let (conflicting, first) = segments.conflicts(changed.rawBytes, at: 1_000)
          #expect(conflicting == length && first == 1_000, "byte \(position) of \(length)")
        }
      }
    }
  }

  @Test("A segment within a longer retransmission is compared, one that is cut is not") func parts() {
    let bytes = (0..<200).map { UInt8($0) }
    let others = bytes[50..<150].map { ~$0 }
    let end = Array(bytes[60...])
    var segments = RecentSegments()
    segments.note(others.rawBytes, at: 50)
    let found = segments.conflicts(bytes.rawBytes, at: 0)
    #expect(found.length == 100 && found.first == 50)
    let cut = segments.conflicts(end.rawBytes, at: 60).length
    #expect(cut == 0)
  }
}

import Measurement
import PacketCapture
import PushModel
import Records
import TLSDecryption
import Testing

@testable import Analysis

/// Where a recording may hide sendings.
@Suite("Unseen sendings")
struct UnseenSendingsTests {
  private static func time(_ seconds: Int64) -> Timestamp { Timestamp(nanoseconds: seconds * 1_000_000_000) }

  /// - Parameter files: the seconds of each file.
  private static func unseen(_ files: [ClosedRange<Int64>]) -> UnseenSendings {
    var unseen = UnseenSendings(resendWithin: 2_000_000_000)
    for file in files {
      unseen.note(
        CaptureOutcome(
          source: "a.pcap", format: .pcap, firstTime: time(file.lowerBound), lastTime: time(file.upperBound)))
    }
    return unseen
  }

  /// Why a notification that was discarded at this second may not be lost.
  private static func reason(_ unseen: UnseenSendings, at second: Int64) -> OpenReason? {
    let time = time(second).nanoseconds
    return unseen.view(longestResend: 0).reason(
      against: .lost, first: time, last: time, topic: .zero, isOfUnknownProvider: false)
  }

  @Test("A pause between files hides sendings, and a file within another makes none") func files() {
    let nested = Self.unseen([10...110, 20...30, 111...200])
    #expect([15, 25, 60, 110, 150].map { Self.reason(nested, at: $0) } == [nil, nil, nil, nil, nil])
    let apart = Self.unseen([10...50, 60...200])
    #expect([15, 49, 61, 100].map { Self.reason(apart, at: $0) } == [nil, .betweenFiles, .betweenFiles, nil])
    #expect(Self.reason(apart, at: 11) == .beforeRecording && Self.reason(apart, at: 199) == .afterRecording)
  }

  @Test("Nothing was sent to an observed gateway before its first record; a file of its records may begin later")
  func gateway() {
    var unseen = Self.unseen([10...200])
    #expect(Self.reason(unseen, at: 11) == .beforeRecording)
    unseen.note(CaptureRecord(source: "gateway", format: .gateway, linkTypes: []))
    #expect(Self.reason(unseen, at: 11) == .beforeRecording)
    unseen.note(CaptureRecord(source: "gateway", format: .gateway, linkTypes: [], isObserved: true))
    #expect(Self.reason(unseen, at: 11) == nil && Self.reason(unseen, at: 199) == .afterRecording)
  }

  @Test(
    "A connection that was not decrypted hides sendings, unless it is known to speak another protocol",
    arguments: [(nil, .undecrypted), (.tls, .undecrypted), (.http2, nil)] as [(OtherProtocol?, OpenReason?)])
  func undecrypted(other: OtherProtocol?, reason: OpenReason?) {
    var unseen = Self.unseen([10...200])
    var tls = TLSSummary()
    (tls.isDecrypted, tls.isWhole) = (false, false)
    unseen.note(
      ConnectionRecord(
        connection: 1, service: .other, otherProtocol: other, opened: Self.time(20), closed: Self.time(30),
        end: .clientFIN, tls: tls, clientBytes: 100, serverBytes: 100, missingBytes: 0, notifications: 0,
        errorResponses: 0, feedbackTuples: 0, fates: FateCounts(), conflictingBytes: 0, limits: []))
    #expect(Self.reason(unseen, at: 100) == reason)
  }

  @Test("Keys are in the order of their upper halves, then of their lower ones") func keys() {
    let ordered = [ContentKey(high: 0, low: 9), ContentKey(high: 1, low: 0), ContentKey(high: 1, low: 5)]
    for (place, key) in ordered.enumerated() {
      for (other, second) in ordered.enumerated() { #expect((key < second) == (place < other)) }
    }
  }
}

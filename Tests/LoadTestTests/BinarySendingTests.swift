import BinaryProtocol
import Bytes
import TestSupport
import Testing

@testable import LoadTest

/// The binary protocol on one connection: what it asks for at its end, and what a response names.
@Suite("Binary sending")
struct BinarySendingTests {
  private func sending(_ change: (inout LoadPlan) -> Void) throws -> BinarySending {
    var plan = LoadPlan()
    change(&plan)
    return BinarySending.maker(plan, BinaryFrames(try Workload(plan.workload)))()
  }

  @Test("A marker is written where something is unsettled or a proof is needed, if the plan has markers")
  func ends() throws {
    let cases: [(written: Int, isNeeded: Bool, usesMarkers: Bool, action: CloseAction)] = [
      (0, false, true, .close), (0, false, false, .close), (0, true, false, .close),
      (0, true, true, .ask(BinarySending.markerFrame)), (1, false, true, .ask(BinarySending.markerFrame)),
      (1, true, true, .ask(BinarySending.markerFrame)), (1, false, false, .endOutput), (1, true, false, .endOutput),
    ]
    for (written, isNeeded, usesMarkers, action) in cases {
      var sending = try sending { $0.usesMarkers = usesMarkers }
      let asked = sending.close(written: written, isProofNeeded: isNeeded, at: 0)
      #expect(asked == action, "\(written) written, \(isNeeded), \(usesMarkers)")
    }
  }

  @Test("A response finds what was sent many writes before, however many connections share the memory")
  func longAgo() throws {
    let count = 1_000
    for connections in [1, 1_000_000] {
      var sending = try sending { $0.connections.count = connections }
      var batch = ConnectionBatch(.init(bytes: .max, notifications: .max))
      for number in 0..<count {
        // No three of these are in a row with equal distances.
        let piece = SentLog.Piece(index: number * number, count: 1, attempt: 0)
        let taken = sending.collect(piece, into: &batch, room: .max, now: 0) { _ in DueTimes(0) }
        #expect(taken == 1)
      }
      let answer = written {
        ErrorResponse(command: 8, status: .invalidToken, identifier: Workload.identifier(of: 0)).encode(into: &$0)
      }
      let response = SendingResponse(
        rejection: .status(.invalidToken), position: 0, ends: .rejected, lossWindow: count - 1)
      let answers = sending.receive(answer, written: count, at: 0)
      #expect(answers == [.response(response)], "\(connections)")
    }
  }

  @Test("Connections share the memory of a plan, and each has a little", arguments: [1, 2, 250, 16_384, 1_000_000])
  func memory(connections: Int) {
    var plan = LoadPlan()
    plan.connections.count = connections
    let each = plan.unsettledMemoryOfConnection
    #expect(each >= 4_096)
    #expect(each == 4_096 || (each * connections...(each + 1) * connections).contains(plan.unsettledMemory))
  }
}

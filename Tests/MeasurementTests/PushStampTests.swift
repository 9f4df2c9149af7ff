import Bytes
import TestSupport
import Testing

@testable import Measurement

@Suite("Stamps in payloads")
struct PushStampTests {
  private func read(_ payload: String) -> PushStamp? {
    var object = JSONObject()
    return PushStamp(of: Array(payload.utf8).rawBytes, &object)
  }

  @Test("Members that are there are read, each by itself")
  func members() {
    #expect(
      read(#"{"aps":{},"apnscope":{"due_ns":5,"written_ns":7,"campaign":"spring"}}"#)
        == PushStamp(due: 5, written: 7, campaign: "spring"))
    #expect(read(#"{"apnscope":{"written_ns":7},"apns":1}"#) == PushStamp(written: 7))
    #expect(read(#"{"apnscope":{"campaign":"ä\n"}}"#) == PushStamp(campaign: "ä\n"))
    // A time that a sender does not know, with the space that was left for it.
    #expect(read(#"{"apnscope":{"due_ns":0                  ,"written_ns":7}}"#) == PushStamp(written: 7))
  }

  @Test(
    "Anything else is no stamp",
    arguments: [
      "", "{}", "null", #"{"apnscope":5}"#, #"{"apnscope":{}}"#, #"{"apnscope":{"due_ns":"5"}}"#,
      #"{"apnscope":{"due_ns":-5}}"#, #"{"apnscope":{"due_ns":1.5}}"#, #"{"apnscope":{"due_ns":99999999999999999999}}"#,
      #"{"aps":{"apnscope":{"due_ns":5}}}"#, #"["apnscope",{"due_ns":5}]"#, #"{"apnscope":{"due_ns":5}"#,
      #"{"apnscope":{"campaign":""}}"#, #""apnscope""#, #"{"a":"\"apnscope\":{\"due_ns\":5}"}"#,
    ])
  func others(payload: String) { #expect(read(payload) == nil) }

  @Test("A name that is too long is none")
  func long() {
    #expect(read(#"{"apnscope":{"campaign":"\#(String(repeating: "x", count: 128))"}}"#) != nil)
    #expect(read(#"{"apnscope":{"campaign":"\#(String(repeating: "x", count: 129))"}}"#) == nil)
  }

  @Test("A payload that is cut anywhere has no stamp, and is no fault")
  func cut() {
    let payload = Array(#"{"aps":{"alert":"x"},"apnscope":{"due_ns":5,"written_ns":7}}"#.utf8)
    var object = JSONObject()
    for length in 0..<payload.count { #expect(PushStamp(of: Array(payload[..<length]).rawBytes, &object) == nil) }
    #expect(PushStamp(of: payload.rawBytes, &object) != nil)
  }

  @Test("Names beyond a limit count together, and nothing is missing", arguments: seeds(10, of: 100))
  func campaigns(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var campaigns: [FleetResult.Campaign] = []
    var count = 0
    for _ in 0..<generator.number(1...200) {
      let name = generator.happens(oneIn: 4) ? nil : "\(generator.number(0...20))"
      campaigns.note(
        PushStamp(due: generator.happens(oneIn: 2) ? 1 : nil, campaign: name), time: 9, sent: 3,
        isOnline: generator.happens(oneIn: 2), most: 5)
      count += 1
    }
    #expect(campaigns.reduce(0) { $0 + $1.received } == count && Set(campaigns.map(\.name)).count == campaigns.count)
    // The names, those without one, and those beyond.
    #expect(campaigns.count <= 7)
    for campaign in campaigns {
      #expect(campaign.lastNs == 9 && campaign.firstSentNs == 3 && (campaign.firstDueNs == 1) == (campaign.dated > 0))
      #expect(campaign.beganNs == (campaign.dated == campaign.received ? 1 : 3))
    }
  }
}

import Bytes
import Payload
import Testing

extension LibraryExamples {
  @Test("Payload: a payload is judged, and the places of its faults are found")
  func payload() {
    var judge = PayloadJudge()
    let payload = Array(#"{"aps":{"alert":"Hello","badge":"3"}}"#.utf8)
    let judgement = judge.judge(payload.rawBytes, findsPlaces: true)
    let kind = judgement.kind  // alert
    let codes = judgement.rules.codes  // ["badge_type"]
    let messages = judgement.findings.map(\.message)
    let samples = PayloadSamples(seed: 1)
    let sample = samples.payload(.alert, number: 7, size: 200)  // 200 bytes, the same in every run
    let isClean = judge.judge(sample.rawBytes).isClean

    #expect(kind == .alert)
    #expect(codes == ["badge_type"])
    #expect(messages.count == 1)
    #expect(sample.count == 200)
    #expect(isClean)
  }
}

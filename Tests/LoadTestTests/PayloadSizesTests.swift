import BinaryProtocol
import Bytes
import LoadTest
import TestSupport
import Testing

@Suite("Sizes of payloads from records")
struct PayloadSizesTests {
  private func sizes(_ lines: [String]) throws -> PayloadSizes {
    var sizes = PayloadSizes()
    for line in lines { try sizes.add(record: Array(line.utf8).rawBytes) }
    return sizes
  }

  private func notification(_ length: Int) -> String {
    #"{"type":"notification","connection":1,"token":"00","payload_length":\#(length),"payload":{"payload_length":1,"type":"x"}}"#
  }

  @Test("Notifications with a payload are counted, and nothing else")
  func counts() throws {
    let sizes = try sizes([
      #"{"type":"capture","schema":1,"source":"a.pcap"}"#, notification(100), notification(100), "", "  \r",
      #" { "payload_length" : 37 , "type" : "notification" } "#, #"{"type":"notification","index":3}"#,
      #"{"type":"error_response","payload_length":50}"#,
      #"{"type":"gap","reason":"}{\",\\","list":[1,{"type":"notification","payload_length":9}]}"#,
      #"{"type":"summary","notifications":4}"#,
    ])
    #expect(sizes.count == 3)
    #expect(sizes.clamped == 0)
    #expect(sizes.mix == WorkloadPlan.Mix([(37...37, 1), (100...100, 2)]))
  }

  @Test("Sizes that cannot be made count as the nearest")
  func clamped() throws {
    let sizes = try sizes([0, 19, 20, 65_535].map(notification))
    #expect(sizes.clamped == 3)
    #expect(sizes.mix?.parts.map(\.weight) == [3, 1])
    var plan = WorkloadPlan()
    plan.payload = .sizes(try #require(sizes.mix))
    _ = try Workload(plan)
  }

  @Test("Nothing was there") func empty() throws {
    #expect(try sizes([]).mix == nil)
    #expect(try sizes([#"{"type":"summary"}"#]).mix == nil)
  }

  @Test(
    "What is no record is refused with its reason",
    arguments: [
      ("type,length", "not a JSON object"), ("[1]", "not a JSON object"),
      (#"{"type":"notification""#, "not a JSON object"), ("7", "not a JSON object"),
      (#"{"a":1}"#, "missing field 'type'"), (#"{"type":1}"#, "missing field 'type'"),
      (#"{"type":["notification"]}"#, "wrong type"),
      (#"{"type":"notification","payload_length":"5"}"#, "whole number"),
      (#"{"type":"notification","payload_length":-5}"#, "whole number"),
      (#"{"type":"notification","payload_length":5.5}"#, "whole number"),
      (#"{"type":"notification","payload_length":null}"#, "whole number"),
      (#"{"type":"notification","payload_length":99999999999999999999}"#, "whole number"),
      (#"{"type":"capture","schema":2}"#, "schema 2"), ("{\"type\":\"\u{0}\"}", "not a JSON object"),
    ])
  func refused(line: String, reason: String) {
    let error = #expect(throws: RecordError.self) { try sizes([line]) }
    #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test("Every beginning of a record is refused or passed over, never more")
  func prefixes() throws {
    let record = Array(notification(100).utf8)
    for length in record.indices {
      var sizes = PayloadSizes()
      try? sizes.add(record: record.rawBytes.extracting(0..<length))
      #expect(sizes.count == 0)
    }
  }

  @Test(
    "Many sizes share at most 1,024 parts, about as frequent, in which nothing is lost",
    arguments: seeds(1, of: 5))
  func parts(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let lengths = (0..<8_000).map { _ in random.number(20...random.number(21...20_000)) }
    let parts = try #require(try sizes(lengths.map { #"{"type":"notification","payload_length":\#($0)}"# }).mix).parts
    #expect(parts.count <= PayloadSizes.maximumParts && parts.count > 200)
    #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.value.upperBound < $1.value.lowerBound })
    #expect(parts.reduce(0) { $0 + $1.weight } == 8_000)
    for part in parts { #expect(part.weight == Double(lengths.count { part.value.contains($0) })) }
    // A part ends where it has its share, so only one very frequent size makes it larger.
    for part in parts where part.value.count > 1 {
      let last = Double(lengths.count { $0 == part.value.upperBound })
      #expect(part.weight - last < 8_000.0 / 1_024 + 1)
    }
  }

  @Test("A workload draws each of many sizes as often as it occurs")
  func drawn() throws {
    var plan = WorkloadPlan()
    let parts = (0..<1_000).map { (100 + $0...100 + $0, $0 < 10 ? 99.0 : 1.0) }
    plan.payload = .sizes(.init(parts))
    let read = try Workload(plan).read(0..<20_000)
    // Each of the ten has 99 / 1,980 of all.
    for size in 100..<110 {
      #expect(WorkloadShareTests.isLikely(read.count { $0.payload.count == size }, share: 0.05))
    }
    #expect(WorkloadShareTests.isLikely(read.count { $0.payload.count >= 600 }, share: 500.0 / 1_980))
  }
}

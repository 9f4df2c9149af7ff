import BinaryProtocol
import Bytes

/// The number of payloads of each size in a decoded trace; a workload draws sizes with the same frequencies.
///
/// The input is the records that `apnscope decode` writes, one line at a time (Documentation/records.md:
/// `payload_length` of `notification` records). Memory does not grow with the trace.
package struct PayloadSizes: Sendable {
  /// Most parts of the mix.
  package static let maximumParts = 1_024

  private var counts = [Int](repeating: 0, count: PayloadMaker.longest + 1)
  /// The number of payloads.
  package private(set) var count = 0
  /// The number of payloads that are shorter or longer than a workload can make; each counts as the nearest size.
  package private(set) var clamped = 0

  package init() {}

  /// Counts the payload of a notification; other records and empty lines are skipped.
  package mutating func add(record line: RawSpan) throws(RecordError) {
    guard var members = try RecordMembers(line) else { return }
    var kind = RecordKind()
    var length: Int?
    while let member = members.next() {
      if try !kind.read(member, of: members), members.isName("payload_length", of: member) {
        length = try members.number(member, "payload_length")
      }
    }
    try kind.check()
    guard kind.isNotification, let length else { return }
    let size = min(PayloadMaker.longest, max(PayloadMaker.shortest, length))
    if size != length { clamped += 1 }
    counts[size] += 1
    count += 1
  }

  /// As often as they occur; `nil` when there was no payload.
  ///
  /// When there are too many different sizes, neighbours are combined into parts of about equal frequency; sizes within
  /// a part are drawn uniformly.
  package var mix: WorkloadPlan.Mix<ClosedRange<Int>>? {
    guard count > 0 else { return nil }
    let sizes = counts.indices.filter { counts[$0] > 0 }
    let areAlone = sizes.count <= Self.maximumParts
    var parts: [(ClosedRange<Int>, Double)] = []
    var (before, place) = (0, -1)
    for size in sizes {
      let next = areAlone ? place + 1 : Int(Double(before) / Double(count) * Double(Self.maximumParts))
      if next > place {
        parts.append((size...size, 0))
        place = next
      }
      parts[parts.count - 1].0 = parts[parts.count - 1].0.lowerBound...size
      parts[parts.count - 1].1 += Double(counts[size])
      before += counts[size]
    }
    return WorkloadPlan.Mix(parts)
  }
}

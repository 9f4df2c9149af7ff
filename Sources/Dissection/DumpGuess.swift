import APNSProtocol
import Bytes
import PacketCapture

/// What a raw dump holds, told from its beginning: whatever explains most of it as whole records.
///
/// A dump has no header, and a search that goes on after damage finds records by chance in anything. So records are
/// also counted that hardly come by chance; when they are few, the guess is a doubtful one.
struct DumpGuess {
  /// Bytes that are looked at.
  private static let sampleLength = 1 << 16

  let contents: DumpContents
  /// Bytes of the sample, and those of them in records that hardly come by chance.
  let sampled: Int
  let credible: Int

  /// Throws when there is no record, or none that is likely.
  init(_ beginning: RawSpan, _ limits: ProtocolLimits) throws {
    let sample = beginning.extracting(0..<min(beginning.byteCount, Self.sampleLength))
    let counts = [
      (DumpContents.gateway, Self.count(sample, GatewayGrammar(limits: limits))),
      (.responses, Self.count(sample, ResponseGrammar())),
      (.feedback, Self.count(sample, FeedbackGrammar(limits: limits))),
    ]
    guard let best = counts.max(by: { $0.1.explained < $1.1.explained }), best.1.credible > 0 else {
      throw CaptureError(
        .notACapture,
        "neither a packet capture nor a dump of this protocol (no likely record in its first \(sample.byteCount) bytes); "
          + "--stream says what a damaged dump holds")
    }
    contents = best.0
    sampled = sample.byteCount
    credible = best.1.credible
  }

  /// What is to be said when most of the sample is nothing, or nothing that is likely.
  var warning: String? {
    guard credible < sampled / 2 else { return nil }
    return
      "perhaps no dump of this protocol: read as \(contents.meaning), which is a guess, but only \(credible) of its "
      + "first \(sampled) bytes are in records that are likely; --stream says what it holds"
  }

  private struct Count {
    /// Bytes that belong to whole records, searching through damage.
    var explained = 0
    var credible = 0
  }

  private static func count<G: RecordGrammar>(_ sample: RawSpan, _ grammar: G) -> Count {
    // Followed from the first byte: right for a dump that begins with a record, whatever the record holds.
    var count = Count()
    var substantial = 0
    walk: while count.explained < sample.byteCount {
      switch grammar.extent(sample, count.explained) {
      case .complete(let length):
        let end = count.explained + length
        let record = sample.extracting(count.explained..<end)
        guard grammar.isTrustworthy(record, followedBy: sample.extracting(end..<sample.byteCount)) else { break walk }
        count.explained = end
        if grammar.isCredible(record, isAligned: true) { substantial += length }
      default: break walk
      }
    }
    // Lengths that lead from the first byte through most of it are no chance, if they are not those of nothing: zeros
    // are records as well.
    let isChain = substantial >= max(1, sample.byteCount / 2)
    let aligned = isChain ? count.explained : 0
    guard count.explained < sample.byteCount else {
      return Count(explained: sample.byteCount, credible: isChain ? sample.byteCount : substantial)
    }
    // Searched for: right for a dump with damage, and stricter.
    count = Count()
    func add(_ record: RawSpan) {
      count.explained += record.byteCount
      if grammar.isCredible(record, isAligned: false) { count.credible += record.byteCount }
    }
    var framer = RecordFramer(grammar: grammar, isAligned: false)
    framer.read(sample, at: 0, mark: Mark(time: .none, packet: 0)) { record, _, _ in
      add(record)
    } damage: { _ in
    }
    framer.finish()
    framer.readFound { record, _, _ in
      add(record)
    } damage: { _ in
    }
    return Count(explained: max(count.explained, aligned), credible: max(count.credible, aligned))
  }
}

extension DumpContents {
  fileprivate var meaning: String {
    switch self {
    case .gateway: "what a provider sends"
    case .responses: "error responses"
    case .feedback: "feedback"
    }
  }
}

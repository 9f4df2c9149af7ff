import BinaryProtocol
import Bytes
import HTTP2
import PacketCapture

/// Recognises the contents of a raw dump by its beginning: the kind by which most bytes are complete records.
///
/// A dump has no header, and a search after damage finds records by chance in any data. So records that are unlikely by
/// chance are counted separately; at least half of a dump's bytes are in such records.
struct DumpGuess {
  /// The number of bytes examined.
  private static let sampleLength = 1 << 16

  let contents: DumpContents

  /// Throws if less than half of the bytes are in records that are unlikely by chance.
  ///
  /// - Parameter file: the file's first bytes, which differ from the dump's if the file is text.
  init(_ beginning: RawSpan, of file: [UInt8] = [], _ limits: ProtocolLimits) throws {
    if let contents = Self.http2(beginning) {
      self.contents = contents
      return
    }
    let sample = beginning.extracting(0..<min(beginning.byteCount, Self.sampleLength))
    let counts = [
      (DumpContents.gateway, Self.count(sample, GatewayGrammar(limits: limits))),
      (.responses, Self.count(sample, ResponseGrammar())),
      (.feedback, Self.count(sample, FeedbackGrammar(limits: limits))),
    ]
    let found = counts.max { ($0.1.credible, $0.1.explained) < ($1.1.credible, $1.1.explained) }
    guard let best = found, best.1.credible > 0, best.1.credible >= sample.byteCount / 2 else {
      let likely = found.map { $0.1.credible } ?? 0
      throw CaptureError(
        .notACapture,
        "neither a packet capture nor a dump of this protocol: of the first \(sample.byteCount) bytes \(likely) look like "
          + "records; give --stream to read a damaged dump",
        beginning: file.isEmpty
          ? Array(copying: sample.extracting(0..<min(sample.byteCount, CaptureError.keptLength))) : file)
    }
    contents = best.0
  }

  /// The direction of HTTP/2 that begins with these bytes; `nil` if none does.
  static func http2(_ beginning: RawSpan) -> DumpContents? {
    switch FrameRecognition.ofStart(beginning, sender: nil, atEnd: true) {
    case .yes(.client?): .http2
    case .yes: .http2Responses
    case .no, .needsMore: nil
    }
  }

  private struct Count {
    /// Bytes that belong to whole records, searching through damage.
    var explained = 0
    var credible = 0
  }

  private static func count<G: RecordGrammar>(_ sample: RawSpan, _ grammar: G) -> Count {
    // Bytes in records from the first byte on: right for a dump that begins with a record of any content.
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
    // Lengths that lead from the first byte through most of the dump are not by chance, unless the records are empty:
    // zeros are records as well.
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
    var framer = RecordFramer<G, Int>(grammar: grammar, isAligned: false)
    framer.read(sample, at: 0, mark: 0) { record, _, _ in
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

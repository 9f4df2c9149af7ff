import BinaryProtocol
import Bytes
import PacketCapture
import Payload
import PushModel
import TLSDecryption

/// Replaces everything in a recording but what is known to be structure: tokens by pseudonyms, the same for the same
/// token; payloads except for their structure (`PayloadRedaction`); addresses and certificate subjects by pseudonyms,
/// too, unless they are kept; names of files and interfaces; and all bytes outside of known fields. Commands,
/// identifiers, expirations, priorities, statuses, times, lengths and ports stay.
package final class Redaction {
  private let hash: HMAC
  private let keepsAddresses: Bool
  private var payloads = PayloadRedaction()

  /// Shortest key, in bytes.
  package static var shortestKey: Int { 16 }

  /// - Parameter key: determines the pseudonyms: the same key gives a token the same one.
  package init?(key: [UInt8], keepsAddresses: Bool) {
    guard key.count >= Self.shortestKey, let hash = HMAC(.sha256, key: key) else { return nil }
    self.hash = hash
    self.keepsAddresses = keepsAddresses
  }

  /// The kind of value that a pseudonym replaces: the same bytes have different pseudonyms as a token and as a name.
  private enum Kind: UInt8 {
    case token = 1
    case address, name, label, payload, permutation, identifier, credential, ping
  }

  private func pseudonym(_ kind: Kind, _ bytes: RawSpan, count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    var block: UInt32 = 0
    while result.count < count {
      let label = [kind.rawValue] + (0..<4).map { UInt8(truncatingIfNeeded: block >> (8 * $0)) }
      let code = hash.code(label.rawBytes, bytes)
      guard !code.isEmpty else { return [UInt8](repeating: 0, count: count) }
      result += code.prefix(count - result.count)
      block += 1
    }
    return result
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  /// Hexadecimal digits that stand for a text.
  func pseudonymDigits(of text: String, count: Int) -> String {
    String(Self.hex(pseudonym(.identifier, Array(text.utf8).rawBytes, count: (count + 1) / 2)).prefix(count))
  }

  /// Hexadecimal digits that stand for a provider token.
  func credentialTag(of value: RawSpan) -> String { Self.hex(pseudonym(.credential, value, count: 8)) }

  /// The data that stands for that of a PING, and of the answer to it.
  func ping(_ data: RawSpan) -> [UInt8] { pseudonym(.ping, data, count: data.byteCount) }

  /// A pseudonym of the same length. A token of equal bytes or of hexadecimal digits stays one, because payload rules
  /// detect these.
  package func token(_ token: RawSpan) -> [UInt8] {
    let rules = PayloadJudge.rules(ofToken: token)
    if rules.contains(.tokenConstant) {
      return [UInt8](repeating: permutation[Int(token.byte(at: 0))], count: token.byteCount)
    }
    let pseudonym = pseudonym(.token, token, count: token.byteCount)
    guard rules.contains(.tokenHexText) else { return pseudonym }
    return Array(Self.hex(pseudonym).utf8.prefix(token.byteCount))
  }

  /// The replacement of each byte in tokens that repeat one byte. Hexadecimal digits stay such, because such a token
  /// breaks both rules.
  private lazy var permutation: [UInt8] = {
    let isText = (0...255).map {
      PayloadJudge.rules(ofToken: [UInt8](repeating: $0, count: 32).rawBytes).contains(.tokenHexText)
    }
    let order = (0...255 as ClosedRange<UInt8>).map { byte in
      (pseudonym(.permutation, [byte].rawBytes, count: 8), byte)
    }.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
    var result = [UInt8](repeating: 0, count: 256)
    for kind in [false, true] {
      let places = (0...255).filter { isText[$0] == kind }
      for (place, byte) in zip(places, order.filter { isText[Int($0)] == kind }) { result[place] = byte }
    }
    return result
  }()

  package func payload(_ payload: [UInt8]) -> [UInt8] {
    var payload = payload
    redact(payload: payload.indices, of: &payload)
    return payload
  }

  private func redact(payload range: Range<Int>, of bytes: inout [UInt8]) {
    if range.isEmpty { return }
    let tag = pseudonym(.payload, bytes.rawBytes.extracting(range), count: 16)
    payloads.redact(&bytes, in: range, tag: tag)
  }

  /// The pseudonym of a topic, of a connection's flow, or of another name.
  private func name(_ name: String) -> String {
    if keepsAddresses { return name }
    return "redacted-" + Self.hex(pseudonym(.name, Array(name.utf8).rawBytes, count: 6))
  }

  package func flow(_ flow: String) -> String { name(flow) }

  /// The pseudonym of a topic: a topic of the same kind.
  private func topic(_ topic: String) -> String {
    if keepsAddresses { return topic }
    switch PayloadTopic(name: topic) {
    case .voip: return name(topic) + ".voip"
    case .wallet: return "pass." + name(topic)
    default: return name(topic)
    }
  }

  /// The pseudonyms of a certificate's topics, separated by spaces.
  package func topics(_ topics: String) -> String {
    if keepsAddresses || topics.isEmpty { return topics }
    return topics.split(separator: " ", omittingEmptySubsequences: false).map { topic(String($0)) }.joined(
      separator: " ")
  }

  /// The pseudonym of a certificate's subject: as many topics, of the same kinds, and no other part.
  package func subject(_ subject: String) -> String {
    if keepsAddresses { return subject }
    let topics = CertificateSubject(subject).topics
    return (topics.map { "UID=" + topic($0) } + ["CN=" + name(subject)]).joined(separator: ",")
  }

  /// The pseudonym of a file or an interface, which is replaced even if addresses are kept.
  package func label(_ label: String) -> String {
    "redacted-" + Self.hex(pseudonym(.label, Array(label.utf8).rawBytes, count: 4))
  }

  /// An IPv4 address becomes one of 240.0.0.0/4, an IPv6 address one of fd00::/8; the port stays.
  package func endpoint(_ endpoint: Endpoint) -> Endpoint {
    if keepsAddresses { return endpoint }
    let code = pseudonym(.address, Array("\(endpoint.address)".utf8).rawBytes, count: 16).rawBytes
    let address =
      endpoint.address.isV4
      ? IPAddress(v4: 0xf000_0000 | code.uint32(at: 0) >> 4)
      : IPAddress(high: 0xfd << 56 | code.uint64(at: 0) >> 8, low: code.uint64(at: 8))
    return Endpoint(address: address, port: endpoint.port)
  }

  // MARK: frames

  /// The frame, redacted: it has the same length, with its fields at the same offsets.
  package func frame(_ fields: PushFields, _ original: RawSpan) -> [UInt8] {
    var frame = Array(copying: original)
    if fields.command == .framed { Self.eraseUnknownItems(of: &frame, fields) }
    let place = fields.token.range
    frame.replaceSubrange(place, with: token(original.extracting(place)))
    redact(payload: fields.payload.range, of: &frame)
    return frame
  }

  /// Erases items that are not fields, repeated ones included, and the bytes after the last item that fits. Ids and
  /// lengths stay.
  private static func eraseUnknownItems(of frame: inout [UInt8], _ fields: PushFields) {
    var items = ItemIterator(end: frame.count)
    var end = min(frame.count, BinaryFrame.Offsets.items)
    var known: Set<UInt8> = []
    while let item = try? items.next(in: frame.rawBytes) {
      let data = item.data.range
      let isField =
        switch item.id {
        case 1: fields.token.isPresent && data == fields.token.range
        case 2: fields.payload.isPresent && data == fields.payload.range
        case 3, 4: data.count == 4 && known.insert(item.id).inserted
        case 5: data.count == 1 && known.insert(item.id).inserted
        default: false
        }
      if !isField { for place in data { frame[place] = 0 } }
      end = data.upperBound
    }
    // The remainder overran the frame and still does with 0xff bytes; zeros would parse as items.
    for place in end..<frame.count { frame[place] = 0xff }
  }
}

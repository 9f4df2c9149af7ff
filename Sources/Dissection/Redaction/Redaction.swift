import APNSProtocol
import Bytes
import PacketCapture
import Payload
import TLSDecryption

/// Replaces what a recording says about people: tokens by pseudonyms, the same for the same token; texts of payloads;
/// addresses and certificate subjects by pseudonyms, too, unless they are kept; and all bytes that are no known field.
package final class Redaction {
  private let hash: HMAC
  private let keepsAddresses: Bool
  private var payloads = PayloadRedaction()

  /// Shortest key, in bytes.
  package static var shortestKey: Int { 16 }

  /// - Parameter key: with the same key a token has the same pseudonym.
  package init?(key: [UInt8], keepsAddresses: Bool) {
    guard key.count >= Self.shortestKey, let hash = HMAC(.sha256, key: key) else { return nil }
    self.hash = hash
    self.keepsAddresses = keepsAddresses
  }

  /// The kind of thing that a pseudonym stands for: the same bytes have different ones as a token and as a name.
  private enum Kind: UInt8 {
    case token = 1
    case address, name
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

  package func token(_ token: RawSpan) -> [UInt8] { pseudonym(.token, token, count: token.byteCount) }

  package func payload(_ payload: [UInt8]) -> [UInt8] {
    var payload = payload
    payloads.redact(&payload, in: payload.indices)
    return payload
  }

  /// Of a certificate's subject, a topic, or another name.
  package func name(_ name: String) -> String {
    if keepsAddresses { return name }
    let code = pseudonym(.name, Array(name.utf8).rawBytes, count: 6)
    return "redacted-" + code.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
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

  /// The frame redacted: of the same length, with its fields where they were.
  package func frame(_ layout: PushNotification.Layout, _ original: RawSpan) -> [UInt8] {
    var frame = Array(copying: original)
    if layout.command.rawValue == 2 { Self.eraseUnknownItems(of: &frame, layout) }
    let place = layout.token.range
    frame.replaceSubrange(place, with: token(original.extracting(place)))
    payloads.redact(&frame, in: layout.payload.range)
    return frame
  }

  /// Items that are no field, and what follows an item that does not fit.
  private static func eraseUnknownItems(of frame: inout [UInt8], _ layout: PushNotification.Layout) {
    var offset = 5
    while offset + 3 <= frame.count {
      let (item, length) = (frame[offset], Int(frame[offset + 1]) << 8 | Int(frame[offset + 2]))
      let data = offset + 3..<min(frame.count, offset + 3 + length)
      let isField =
        switch item {
        case 1: layout.token.isPresent && data == layout.token.range
        case 2: layout.payload.isPresent && data == layout.payload.range
        case 3, 4: length == 4
        case 5: length == 1
        default: false
        }
      if !isField { for place in data { frame[place] = 0 } }
      offset += 3 + length
    }
  }
}

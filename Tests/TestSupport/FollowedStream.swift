/// What `tshark -z follow,tcp,raw,N` prints, and `follow,tls,raw`, which does not name the second node.
///
/// ```
/// Node 0: 10.0.0.1:50000
/// Node 1: 17.0.0.1:2195
/// 68656c6c6f            from node 0
/// 	676f6f64            from node 1
/// ```
public struct FollowedStream {
  public var first: (node: String, bytes: [UInt8]) = ("", [])
  public var second: (node: String, bytes: [UInt8]) = ("", [])

  public static func all(in text: String) -> [FollowedStream] {
    var streams: [FollowedStream] = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("Follow: ") {
        streams.append(FollowedStream())
      } else if line.hasPrefix("Node 0: ") {
        streams[streams.count - 1].first.node = String(line.dropFirst(8))
      } else if line.hasPrefix("Node 1: ") {
        streams[streams.count - 1].second.node = String(line.dropFirst(8))
      } else if line.hasPrefix("\t") {
        streams[streams.count - 1].second.bytes += bytes(line.dropFirst())
      } else if line.allSatisfy(\.isHexDigit) {
        streams[streams.count - 1].first.bytes += bytes(line)
      }
    }
    return streams
  }

  /// tshark writes a note of its own where bytes are missing.
  private static func bytes(_ digits: Substring) -> [UInt8] {
    let digits = Array(digits.utf8)
    let bytes = stride(from: 0, to: digits.count - 1, by: 2).map {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16) ?? 0
    }
    let text = String(decoding: bytes, as: UTF8.self)
    return text.hasPrefix("[") && text.contains(" bytes missing in capture file]") ? [] : bytes
  }
}

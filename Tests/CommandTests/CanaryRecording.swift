import Foundation
import TestSupport

/// A pcapng file with a canary in every text that such a file and the protocol in it have.
enum CanaryRecording {
  static func bytes(of canary: Canary) -> [UInt8] {
    let text = Array(canary.text.utf8)
    var file = block(
      0x0a0d_0d0a,
      [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0] + [UInt8](repeating: 0xff, count: 8) + options([1, 2, 3, 4], text))
    // Raw IP, with a name, a description, a filter, hardware and an operating system.
    file += block(1, number(101, 2) + number(0, 2) + number(0, 4) + options([2, 3, 12, 15, 1], text))
    // Names of hosts.
    file += block(4, number(1, 2) + number(5 + text.count, 2) + padded([10, 0, 0, 5] + text + [0]) + number(0, 4))
    var connection = Connection(comment: text, port: 40_001)
    file += connection.begin()
    for frame in frames(canary) { file += connection.send(frame) }
    // Bytes that are no frame end it.
    file += connection.send([77, 78] + text)
    for number in 0..<3 {
      var other = Connection(comment: text, port: 40_002 + number)
      file += other.begin()
      for frame in usualFrames(canary, from: 10 * number) { file += other.send(frame) }
      file += other.answer([8, 8, 0, 0, 0, UInt8(10 * number + 2)])
      if number == 2 { file += other.send(Array("GET /\(canary.text) HTTP/1.1\r\n\r\n".utf8)) }
    }
    // Another protocol, and a count of lost packets.
    var web = Connection(comment: text, port: 40_009)
    file += web.begin() + web.send(Array("GET /\(canary.text) HTTP/1.1\r\nHost: \(canary.text)\r\n\r\n".utf8))
    file += block(
      5, number(0, 4) + number(0, 8) + options([1], text) + option(4, number(10, 8)) + option(5, number(3, 8)))
    return file
  }

  /// Notifications of all commands, whose payloads, tokens and items hold it.
  private static func frames(_ canary: Canary) -> [[UInt8]] {
    let text = Array(canary.text.utf8)
    func item(_ id: UInt8, _ data: [UInt8]) -> [UInt8] { [id] + bigEndian(data.count, 2) + data }
    func framed(_ items: [UInt8]) -> [UInt8] { [2] + bigEndian(items.count, 4) + items }
    let token = Array((text + text + text + text + text + text).prefix(32))
    var frames: [[UInt8]] = []
    for payload in payloads(canary.text) {
      for encoding in Canary.Encoding.allCases where encoding == .utf8 || encoding == .utf16LE {
        frames.append(
          framed(item(1, token) + item(2, encoding.bytes(of: payload)) + item(3, bigEndian(frames.count, 4))))
      }
    }
    let payload = Array(#"{"aps":{"alert":"\#(canary.text)"}}"#.utf8)
    // Unknown items, items that come again, and items that overrun their frames.
    frames.append(framed(item(1, token) + item(2, payload) + item(9, text) + item(2, text) + item(1, text)))
    frames.append(framed(item(1, token) + item(2, payload) + [3, 0, 4] + text.prefix(2)))
    frames.append(framed(item(1, token) + item(2, payload) + text.prefix(2)))
    frames.append([0] + bigEndian(token.count, 2) + token + bigEndian(payload.count, 2) + payload)
    return frames
  }

  private static func usualFrames(_ canary: Canary, from first: Int) -> [[UInt8]] {
    let payload = Array(#"{"aps":{"alert":"\#(canary.text)"},"\#(canary.text.replacing("\"", with: ""))":1}"#.utf8)
    let token = Array((Array(canary.text.utf8) + [UInt8](repeating: 7, count: 32)).prefix(32))
    return (first + 1...first + 3).map { identifier in
      [1] + bigEndian(identifier, 4) + bigEndian(1_900_000_000, 4) + bigEndian(32, 2) + token
        + bigEndian(payload.count, 2) + payload
    }
  }

  private static func payloads(_ secret: String) -> [String] {
    [
      #"{"aps":{"alert":{"title":"\#(secret)","loc-args":["\#(secret)"]},"badge":"\#(secret)"},"\#(secret)":"\#(secret)"}"#,
      #"{"aps":{"badge":1,"alert" "\#(secret)"}}"#, #"{"aps":{"sound":"default" /* \#(secret) */}}"#,
      #"{"aps":{"sound":"default","alert"="\#(secret)"}}"#,
      #"{"aps":{"\#(secret)":"\#(secret)","sound":"\#(secret).caf"}}"#,
      #"{"aps":{"alert":"\#(secret)"#, secret,
    ]
  }

  // MARK: blocks

  /// One TCP connection between 203.0.113.77 and 203.0.113.9, whose packets have comments.
  private struct Connection {
    let comment: [UInt8]
    let port: Int
    var next = 1
    var received = 500

    init(comment: [UInt8], port: Int) { (self.comment, self.port) = (comment, port) }

    mutating func begin() -> [UInt8] { packet(fromClient: true, flags: 2) + packet(fromClient: false, flags: 18) }
    mutating func send(_ data: [UInt8]) -> [UInt8] { packet(fromClient: true, flags: 24, data) }
    mutating func answer(_ data: [UInt8]) -> [UInt8] { packet(fromClient: false, flags: 24, data) }

    private mutating func packet(fromClient: Bool, flags: UInt8, _ data: [UInt8] = []) -> [UInt8] {
      let (client, server): ([UInt8], [UInt8]) = ([203, 0, 113, 77], [203, 0, 113, 9])
      var packet = bigEndian(0x4500, 2) + bigEndian(40 + data.count, 2) + bigEndian(0, 4) + bigEndian(0x4006_0000, 4)
      packet += fromClient ? client + server : server + client
      packet += fromClient ? bigEndian(port, 2) + bigEndian(2195, 2) : bigEndian(2195, 2) + bigEndian(port, 2)
      packet += bigEndian(fromClient ? next : received, 4) + bigEndian(fromClient ? received : next, 4)
      packet += [0x50, flags] + bigEndian(0xffff, 2) + bigEndian(0, 4) + data
      let length = data.count + (flags & 2 != 0 ? 1 : 0)
      if fromClient { next += length } else { received += length }
      let time = 1_450_000_000_000_000 + next + received
      return block(
        6,
        number(0, 4) + number(time >> 32, 4) + number(time & 0xffff_ffff, 4) + number(packet.count, 4)
          + number(packet.count, 4) + padded(packet) + options([1], comment))
    }
  }

  private static func block(_ type: Int, _ body: [UInt8]) -> [UInt8] {
    let length = number(body.count + 12, 4)
    return number(type, 4) + length + body + length
  }

  private static func options(_ codes: [Int], _ value: [UInt8]) -> [UInt8] { codes.flatMap { option($0, value) } }
  private static func option(_ code: Int, _ value: [UInt8]) -> [UInt8] {
    number(code, 2) + number(value.count, 2) + padded(value)
  }
  private static func padded(_ bytes: [UInt8]) -> [UInt8] { bytes + [UInt8](repeating: 0, count: -bytes.count & 3) }
  private static func number(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
  private static func bigEndian(_ value: Int, _ count: Int) -> [UInt8] { number(value, count).reversed() }
}

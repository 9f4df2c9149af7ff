import Bytes

/// A capture file made from packets that text shows: those that tcpdump or tshark print, and connections that `tshark
/// -z follow` prints, for which packets are synthesized.
struct PastedPackets {
  enum Kind {
    /// `tcpdump -x`, `-X`, `-xx`, `-XX`: lines that begin with `0x0000:`.
    case tcpdump
    /// `tshark -x`: lines that begin with `0000`; packets include the link layer.
    case tshark
    /// `tshark -z follow,tcp,raw|hex|yaml`.
    case follow

    var name: String {
      switch self {
      case .tcpdump: "tcpdump"
      case .tshark: "tshark -x"
      case .follow: "tshark's follow"
      }
    }

    /// Detected from the first lines; `nil` if the text shows no packets.
    init?(_ text: [UInt8]) {
      var found: Kind?
      var lines = 0
      PastedText.eachLine(text) { line in
        lines += 1
        let words = PastedText.trimmed(line)
        if PastedPackets.isFollow(words) {
          found = .follow
        } else if words.starts(with: Array("data: !!binary".utf8)) {
          found = .follow
        } else if PastedPackets.tcpdumpLine(line) != nil {
          found = .tcpdump
        } else if let (offset, bytes) = PastedPackets.tsharkLine(line), offset == 0,
          PastedPackets.linkType(bytes, isWhole: true) == .ethernet
        {
          found = .tshark
        }
        return found == nil && lines < 1_000
      }
      guard let found else { return nil }
      self = found
    }
  }

  /// The packets as a pcapng file.
  private(set) var capture: [UInt8] = []

  /// `nil` if the text has no packet.
  init?(_ text: [UInt8], _ kind: Kind) {
    switch kind {
    case .tcpdump, .tshark:
      var packets = PrintedPackets()
      PastedText.eachLine(text) { line in
        packets.read(line, kind)
        return true
      }
      packets.end()
      guard let first = packets.packets.first else { return nil }
      begin(Self.linkType(first.bytes, isWhole: false))
      for packet in packets.packets { append(packet.bytes, packet.time) }
    case .follow:
      var streams = FollowedStreams()
      PastedText.eachLine(text) { line in
        streams.read(line)
        return true
      }
      streams.end()
      guard streams.streams.contains(where: { !$0.pieces.isEmpty }) else { return nil }
      begin(.raw)
      for (number, stream) in streams.streams.enumerated() { append(stream, number: number) }
    }
  }

  private mutating func begin(_ linkType: LinkType) {
    capture = PcapngBlock.section() + PcapngBlock.interface(linkType: linkType.rawValue, snapLength: 0, digits: 9)
  }

  private mutating func append(_ bytes: [UInt8], _ time: Int64?) {
    if let time, time >= 0 {
      capture += PcapngBlock.packet(
        time: UInt64(time), length: UInt32(truncatingIfNeeded: bytes.count), bytes.rawBytes)
    } else {
      capture += PcapngBlock.packet(simple: bytes.rawBytes)
    }
  }

  private mutating func append(_ stream: FollowedStreams.Stream, number: Int) {
    guard let first = stream.pieces.first else { return }
    func total(_ isClient: Bool) -> Int {
      stream.pieces.reduce(0) { $0 + ($1.isFromClient == isClient ? $1.bytes.count : 0) }
    }
    var connection = SynthesizedConnection(
      number: number + 1, client: stream.client, server: stream.server, clientBytes: total(true),
      serverBytes: total(false))
    for packet in connection.handshake() { append(packet, first.time) }
    var (client, server) = (0, 0)
    for piece in stream.pieces {
      let offset = piece.isFromClient ? client : server
      for packet in connection.data(piece.bytes.rawBytes, at: offset, fromClient: piece.isFromClient) {
        append(packet, piece.time)
      }
      if piece.isFromClient { client += piece.bytes.count } else { server += piece.bytes.count }
    }
  }

  // MARK: lines

  /// `Follow: tcp,raw`: a format with all bytes.
  static func isFollow(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.starts(with: Array("Follow: ".utf8)) else { return false }
    return ["raw", "hex", "yaml"].contains { line.suffix($0.utf8.count + 1).elementsEqual(",\($0)".utf8) }
  }

  /// A line of tcpdump: `0x0010:  11bc 0109 c351 0893  .....Q..`
  static func tcpdumpLine(_ line: ArraySlice<UInt8>) -> (offset: Int, bytes: [UInt8])? {
    let text = line.drop(while: PastedText.isBlank)
    guard text.starts(with: Array("0x".utf8)) else { return nil }
    let digits = text.dropFirst(2).prefix(while: PastedText.isHexDigit)
    let rest = text.dropFirst(2 + digits.count)
    guard digits.count >= 4, rest.first == UInt8(ascii: ":"), let offset = PastedText.number(digits, radix: 16) else {
      return nil
    }
    return groups(rest.dropFirst()).map { (offset, $0) }
  }

  /// A line of tshark: `0010  01 f5 00 00 …   ..`; some versions write two blanks in the middle.
  static func tsharkLine(_ line: ArraySlice<UInt8>) -> (offset: Int, bytes: [UInt8])? {
    let digits = line.prefix(while: PastedText.isHexDigit)
    let rest = line.dropFirst(digits.count)
    guard digits.count == 4 || digits.count == 8, rest.starts(with: [0x20, 0x20]),
      let offset = PastedText.number(digits, radix: 16)
    else { return nil }
    // Sixteen pairs take 48 or 49 columns; text follows.
    return groups(rest.dropFirst(2).prefix(49), hasMiddle: true).map { (offset, $0) }
  }

  /// Groups of pairs of digits, up to two consecutive blanks; at most 16 bytes.
  ///
  /// - Parameter hasMiddle: whether two blanks may follow the eighth byte.
  private static func groups(_ text: ArraySlice<UInt8>, hasMiddle: Bool = false) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.drop(while: PastedText.isBlank)
    while !rest.isEmpty {
      let group = rest.prefix { !PastedText.isBlank($0) }
      guard let pairs = PastedText.pairs(group), bytes.count + pairs.count <= 16 else { break }
      bytes += pairs
      rest = rest.dropFirst(group.count)
      let gap = rest.prefix(while: PastedText.isBlank).count
      guard gap == 1 || hasMiddle && gap == 2 && bytes.count == 8 else { break }
      rest = rest.dropFirst(gap)
    }
    return bytes.isEmpty ? nil : bytes
  }

  /// The link type of a packet, judging by its first bytes.
  ///
  /// - Parameter isWhole: whether only unambiguous bytes count; otherwise the result is a guess.
  static func linkType(_ bytes: [UInt8], isWhole: Bool) -> LinkType {
    func isType(_ offset: Int) -> Bool {
      guard bytes.count > offset + 1 else { return false }
      let type = UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
      guard [0x0800, 0x86dd, 0x8100, 0x88a8, 0x8864, 0x8847].contains(type) else { return false }
      guard type == 0x0800 || type == 0x86dd, bytes.count > offset + 2 else { return true }
      return bytes[offset + 2] >> 4 == (type == 0x0800 ? 4 : 6)
    }
    if isType(12) { return .ethernet }
    if let first = bytes.first, first >> 4 == 6 || first >> 4 == 4 && first & 15 >= 5, !isWhole { return .raw }
    if isType(14) { return .linuxSLL }
    return .raw
  }
}

/// The packets in printed lines, each preceded by a line that may have its time.
private struct PrintedPackets {
  private(set) var packets: [(bytes: [UInt8], time: Int64?)] = []
  private var bytes: [UInt8] = []
  private var time: Int64?
  private var nextTime: Int64?
  /// Whether the lines follow a heading of tshark for data other than a packet: reassembled or decrypted data.
  private var isOther = false

  mutating func read(_ line: ArraySlice<UInt8>, _ kind: PastedPackets.Kind) {
    let shown = kind == .tcpdump ? PastedPackets.tcpdumpLine(line) : PastedPackets.tsharkLine(line)
    guard let shown else {
      readHeading(line)
      return
    }
    if shown.offset == 0 {
      end()
      (time, nextTime) = (nextTime, nil)
    }
    if !isOther, shown.offset == bytes.count { bytes += shown.bytes }
  }

  private mutating func readHeading(_ line: ArraySlice<UInt8>) {
    if let found = PrintedTime.nanoseconds(line) { nextTime = found }
    let text = String(decoding: line, as: UTF8.self)
    guard text.hasSuffix("bytes):") || text.hasSuffix("byte):") else { return }
    end()
    isOther = !(text.hasPrefix("Frame (") || text.hasPrefix("Packet ("))
  }

  mutating func end() {
    if !bytes.isEmpty { packets.append((bytes, time)) }
    bytes = []
    time = nil
  }
}

/// The time at the beginning of a line of tcpdump, if it includes the date: `-tt` or `-tttt`.
private enum PrintedTime {
  static func nanoseconds(_ line: ArraySlice<UInt8>) -> Int64? {
    let words = PastedText.words(line.prefix(64))
    guard let first = words.first, line.first == first.first else { return nil }
    if let time = since1970(first) { return time }
    guard words.count > 1 else { return nil }
    let text = String(decoding: first, as: UTF8.self) + "T" + String(decoding: words[1], as: UTF8.self) + "Z"
    return RFC3339.nanoseconds(Array(text.utf8).rawBytes)
  }

  /// Seconds since 1970: `1420070400.029999971`
  static func since1970(_ word: ArraySlice<UInt8>) -> Int64? {
    let parts = word.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 2, (9...10).contains(parts[0].count), (1...9).contains(parts[1].count),
      let seconds = PastedText.number(parts[0], radix: 10), var fraction = PastedText.number(parts[1], radix: 10)
    else { return nil }
    for _ in parts[1].count..<9 { fraction *= 10 }
    return Int64(seconds) * 1_000_000_000 + Int64(fraction)
  }
}

/// The connections of `tshark -z follow`, and the bytes that their endpoints sent.
private struct FollowedStreams {
  struct Piece {
    var isFromClient: Bool
    var bytes: [UInt8]
    var time: Int64?
  }

  struct Stream {
    var ends: [Endpoint] = []
    /// The pieces; until the stream is complete, `isFromClient` refers to the first endpoint.
    var pieces: [Piece] = []

    /// The first endpoint is the first one that sent. It is the client, except for a connection whose beginning was not
    /// captured: there the port tells.
    var client: Endpoint { isSwapped ? ends[1] : ends[0] }
    var server: Endpoint { isSwapped ? ends[0] : ends[1] }
    var isSwapped: Bool {
      func isKnown(_ end: Endpoint) -> Bool { (2195...2196).contains(end.port) }
      return ends.count == 2 && isKnown(ends[0]) && !isKnown(ends[1])
    }
  }

  private enum Form { case raw, hex, yaml }

  private(set) var streams: [Stream] = []
  private var current = Stream()
  private var form = Form.raw
  private var peer = 0
  private var time: Int64?
  private var host: String?
  /// The base64 lines of a packet.
  private var base64: [UInt8]?

  mutating func read(_ line: ArraySlice<UInt8>) {
    let text = PastedText.trimmed(line)
    if text.starts(with: Array("Follow: ".utf8)) {
      end()
      form = text.contains(UInt8(ascii: ",")) && text.suffix(3).elementsEqual("hex".utf8) ? .hex : .raw
      return
    }
    if text.elementsEqual("peers:".utf8) {
      end()
      form = .yaml
      return
    }
    switch form {
    case .yaml: readYAML(text)
    case .raw, .hex: readLine(line, text)
    }
  }

  /// A line `Node 0: 10.1.0.5:50001`, digits, or a line of a dump; lines of the second endpoint begin with a tab.
  private mutating func readLine(_ line: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) {
    if text.starts(with: Array("Node ".utf8)), text.count > 8 {
      let address = String(decoding: text.dropFirst(8), as: UTF8.self)
      if let end = Self.endpoint(address) { current.ends.append(end) }
      return
    }
    let isFirst = line.first.map { !PastedText.isBlank($0) } ?? true
    let bytes: [UInt8]? =
      switch form {
      case .hex: PastedPackets.tsharkLine(text)?.bytes
      default: PastedText.pairs(text)
      }
    guard let bytes, !bytes.isEmpty else { return }
    append(bytes, isFirst)
  }

  /// An endpoint; an IPv6 address may be without brackets.
  private static func endpoint(_ text: String) -> Endpoint? {
    if let end = Endpoint(text) { return end }
    guard let colon = text.lastIndex(of: ":") else { return nil }
    return Endpoint("[\(text[..<colon])]\(text[colon...])")
  }

  private mutating func append(_ bytes: [UInt8], _ isFirst: Bool) {
    if time == nil, form == .hex, let last = current.pieces.last, last.isFromClient == isFirst {
      current.pieces[current.pieces.count - 1].bytes += bytes
    } else {
      current.pieces.append(Piece(isFromClient: isFirst, bytes: bytes, time: time))
    }
  }

  private mutating func readYAML(_ text: ArraySlice<UInt8>) {
    func value(_ key: String) -> String? {
      let line = text.starts(with: Array("- ".utf8)) ? text.dropFirst(2) : text
      guard line.starts(with: Array("\(key): ".utf8)) else { return nil }
      return String(decoding: line.dropFirst(key.utf8.count + 2), as: UTF8.self)
    }
    if let found = value("host") {
      host = found
    } else if let port = value("port"), let host, current.ends.count < 2 {
      let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
      if let end = Endpoint(address) { current.ends.append(end) }
    } else if value("packet") != nil {
      endPacket()
    } else if let number = value("peer") {
      peer = number == "1" ? 1 : 0
    } else if let found = value("timestamp") {
      time = PrintedTime.since1970(Array(found.utf8)[...])
    } else if value("data") != nil {
      base64 = []
    } else if base64 != nil {
      base64?.append(contentsOf: text)
    }
  }

  private mutating func endPacket() {
    if let bytes = base64.flatMap(PastedText.base64), !bytes.isEmpty { append(bytes, peer == 0) }
    base64 = nil
    time = nil
  }

  mutating func end() {
    endPacket()
    if current.ends.count >= 2, !current.pieces.isEmpty {
      if current.isSwapped {
        for index in current.pieces.indices { current.pieces[index].isFromClient.toggle() }
      }
      streams.append(current)
    }
    current = Stream()
    host = nil
  }
}

import Bytes

@testable import PacketCapture

/// A packet of a link type, or from any header on, looked into to a depth that the input says.
///
/// The first byte chooses the depth, the next two the link type, or from 0x8000 on a layer of the table. Then come packets
/// with their lengths, as for `fuzzPackets`, which share a decoder.
@Sendable func fuzzLayers(_ bytes: RawSpan) {
  var script = Script(bytes)
  let depth = script.byte() & 0x1f
  let choice = script.word()
  var options = dissectionOptions(narrow: false).capture
  options.maximumEncapsulation = depth
  options.vxlanPorts = [5_000]
  var decoder = PacketDecoder(options: options)
  var unread = UnreadTraffic()
  var number = 0
  while !script.isAtEnd {
    let length = script.word()
    let packetBytes = script.take(length & 0x7fff)
    let wire = packetBytes.byteCount + (length & 0x8000 != 0 ? 100 : 0)
    number += 1
    if choice & 0x8000 != 0 {
      checkSteps(Layer.allCases[choice % Layer.allCases.count], packetBytes, wire)
      continue
    }
    let packet = Packet(
      number: number, time: Timestamp(nanoseconds: Int64(number) * 1_000_000),
      linkType: LinkType(rawValue: UInt16(choice & 0x1ff)), originalLength: wire, capturedLength: packetBytes.byteCount)
    var found = 0
    let other = decoder.decode(packet, packetBytes) { segment, payload in
      found += 1
      law(payload.byteCount <= segment.payloadLength, "more payload captured than sent")
    }
    law(found * 20 <= 65_535 + packetBytes.byteCount, "more segments than there is room for")
    if let other {
      unread.note(other, packet: number)
      law(!"\(other)".isEmpty, "what is not read has no name")
      law(other.mayHideTCP == (other.wayOut != nil), "a way out of nothing, or none")
    }
    // A deeper look finds what a shallower one finds, and never ends earlier.
    if other != .tooDeep { checkDeeper(packet, packetBytes, options, found) }
  }
  law(unread.rows.reduce(unread.furtherPackets) { $0 + $1.packets } <= number, "more packets than there are")
}

/// Packets that are no fragments mean the same to decoders of every greater depth.
private func checkDeeper(_ packet: Packet, _ bytes: RawSpan, _ options: CaptureOptions, _ found: Int) {
  var (shallow, deep) = (0, 0)
  var decoder = PacketDecoder(options: options)
  if decoder.decode(packet, bytes, { _, _ in shallow += 1 }) == .tooDeep { return }
  var deeper = options
  deeper.maximumEncapsulation = 300
  var other = PacketDecoder(options: deeper)
  other.decode(packet, bytes) { _, _ in deep += 1 }
  law(shallow <= deep, "\(deep) segments at any depth, \(shallow) at one")
}

/// Each layer moves its place forward, and never its end.
private func checkSteps(_ first: Layer, _ bytes: RawSpan, _ wire: Int) {
  var place = Layer.Place(start: 0, end: wire)
  var layer = first
  let settings = Layer.Settings(maximumDepth: 255, vxlanPorts: [5_000])
  var standing = 0
  while true {
    let (start, end, depth) = (place.start, place.end, place.depth)
    let step = layer.read(bytes, &place, settings)
    law(place.start >= start, "\(layer) moves backward")
    law(place.end <= end, "\(layer) reaches beyond what is around it")
    guard case .next(let next) = step, next != .tcp else { break }
    law(place.start <= bytes.byteCount, "\(layer) leads beyond the packet")
    // Headers of nothing are followed by one of something.
    standing = place.start == start && place.depth == depth ? standing + 1 : 0
    law(standing < 3, "\(layer) stays where it is")
    layer = next
  }
}

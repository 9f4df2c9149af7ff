import Bytes

/// 802.11, and the headers that capturing systems write before it.
extension Layer {
  /// radiotap: `version u8 | pad u8 | length u16 | present u32…`, little-endian. Only its flags matter: a frame with a
  /// wrong checksum is discarded, and some cards pad the 802.11 header to a multiple of four.
  static func radiotap(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let length = Int(bytes.uint16(at: start + 2, bigEndian: false))
    guard length >= 8, start + length <= bytes.byteCount else { return .incomplete }
    let present = bytes.uint32(at: start + 4, bigEndian: false)
    var offset = 8
    var word = present
    while word >> 31 == 1, offset + 4 <= length {
      word = bytes.uint32(at: start + offset, bigEndian: false)
      offset += 4
    }
    // The eight bytes of the timestamp are aligned to eight.
    if present & 1 == 1 { offset = ((offset + 7) & ~7) + 8 }
    let flags = present & 2 == 2 && offset < length ? bytes.byte(at: start + offset) : 0
    place.start += length
    if flags & 0x40 != 0 { return .incomplete }
    return flags & 0x20 != 0 ? wlan(bytes, &place, isPadded: true) : .next(.wlan)
  }

  /// Prism: `message u32 | length u32 | device 16 | …` in the byte order of the capturing host. AVS uses the same link
  /// type.
  static func prism(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    if bytes.uint32(at: place.start) & 0xffff_f000 == 0x8021_1000 { return avs(bytes, &place) }
    let bigEndian = bytes.uint32(at: place.start + 4, bigEndian: false) > 0xffff
    let length = Int(bytes.uint32(at: place.start + 4, bigEndian: bigEndian))
    guard length >= 24 else { return .incomplete }
    return step(over: length, to: .wlan, bytes, &place)
  }

  /// AVS: `version u32 | length u32 | …`
  static func avs(_ bytes: RawSpan, _ place: inout Place) -> Step {
    guard place.start + 8 <= bytes.byteCount else { return .incomplete }
    let length = Int(bytes.uint32(at: place.start + 4))
    guard length >= 8 else { return .incomplete }
    return step(over: length, to: .wlan, bytes, &place)
  }

  /// PPI: `version u8 | flags u8 | length u16 | link type u32`, little-endian; a packet of the link type follows.
  static func ppi(_ bytes: RawSpan, _ place: inout Place) -> Step {
    let start = place.start
    guard start + 8 <= bytes.byteCount else { return .incomplete }
    let length = Int(bytes.uint16(at: start + 2, bigEndian: false))
    guard length >= 8, start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    return packet(of: bytes.uint32(at: start + 4, bigEndian: false))
  }

  static func wlan(_ bytes: RawSpan, _ place: inout Place) -> Step { wlan(bytes, &place, isPadded: false) }

  /// 802.11:
  /// ```
  /// frame control: subtype 4 bits, type 2, version 2 | flags u8 | duration u16 | address 6 | address 6 | address 6
  /// sequence and fragment u16 | address 6, if the frame goes from one access point to another
  /// QoS control u16, if it is a QoS frame | HT control u32, if that has the order flag | LLC…
  /// ```
  private static func wlan(_ bytes: RawSpan, _ place: inout Place, isPadded: Bool) -> Step {
    let start = place.start
    guard start + 2 <= bytes.byteCount else { return .incomplete }
    let (control, flags) = (bytes.byte(at: start), bytes.byte(at: start + 1))
    // Type 2 is data. Management and control frames carry no payload, nor do the subtypes with bit 2 set.
    guard control & 3 == 0 else { return .incomplete }
    guard control & 0x0c == 0x08, control & 0x40 == 0 else { return .empty }
    var length = flags & 3 == 3 ? 30 : 24
    guard start + 24 <= bytes.byteCount else { return .incomplete }
    if flags & 0x40 != 0 { return .unread(.encryptedWireless) }
    if flags & 0x04 != 0 || bytes.byte(at: start + 22) & 0x0f != 0 { return .unread(.fragmentedWireless) }
    var isAggregate = false
    if control & 0x80 != 0 {
      guard start + length + 2 <= bytes.byteCount else { return .incomplete }
      isAggregate = bytes.byte(at: start + length) & 0x80 != 0
      length += flags & 0x80 != 0 ? 6 : 2
    }
    if isPadded { length = (length + 3) & ~3 }
    guard start + length <= bytes.byteCount else { return .incomplete }
    place.start += length
    return isAggregate ? .aggregate : .next(.llc)
  }

  /// Moves the place past the next frame of an aggregate: `destination 6 | source 6 | length u16 | LLC… | padding` to a
  /// multiple of four.
  ///
  /// - Returns: the place of the payload; `nil` after the last frame.
  static func frame(ofAggregate bytes: RawSpan, _ place: inout Place) -> Place? {
    let start = place.start
    guard start + 14 <= min(bytes.byteCount, place.end) else { return nil }
    let length = Int(bytes.uint16(at: start + 12))
    var inner = place
    inner.start = start + 14
    inner.limit(to: start + 14 + length)
    place.start = start + (14 + length + 3) & ~3
    return inner
  }
}

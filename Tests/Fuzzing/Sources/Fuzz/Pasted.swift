import Bytes

@testable import Dissection
@testable import PacketCapture
@testable import Records

/// Text that shows bytes or packets: the first byte chooses whether the input is the text, or bytes that are printed in
/// one of the forms, which then have to be read as they were.
@Sendable func fuzzPasted(_ bytes: RawSpan) {
  var script = Script(bytes)
  let choice = script.byte()
  let rest = Array(copying: script.rest())
  guard choice & 0x80 != 0 else {
    readText(rest)
    return
  }
  // Fewer bytes are no dump.
  guard rest.count >= 32 else { return }
  func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
  let text: String
  switch choice & 7 {
  case 0: text = "<Buffer " + rest.map(hex).joined(separator: " ") + ">"
  case 1: text = rest.map(hex).joined(separator: "-")
  case 2: text = "[" + rest.map { "\($0)" }.joined(separator: ", ") + "]"
  case 3: text = "[" + rest.map { "\(Int8(bitPattern: $0))" }.joined(separator: ", ") + "]"
  case 4: text = "{" + rest.map { "0x" + hex($0) }.joined(separator: ", ") + "}"
  case 5: text = "b'" + rest.map { "\\x" + hex($0) }.joined() + "'"
  case 6:
    text = stride(from: 0, to: rest.count, by: 16).map { offset in
      let digits = String(offset, radix: 8)
      return String(repeating: "0", count: max(0, 7 - digits.count)) + digits + " "
        + rest[offset..<min(offset + 16, rest.count)].map(hex).joined(separator: " ")
    }.joined(separator: "\n")
  default: text = "sent: " + rest.map(hex).joined()
  }
  let heading = choice & 8 != 0 ? "=== sent ===\n" : ""
  let read = PastedBytes(Array((heading + text + "\n").utf8), maximumLength: 1 << 20)?.bytes
  law(read == rest, "\(text.prefix(60)) is read as \((read ?? []).prefix(20))")
}

/// However odd the text, what is made of it is bounded by it.
private func readText(_ bytes: [UInt8]) {
  guard let text = PastedText.utf8(bytes.rawBytes) else { return }
  if let pasted = PastedBytes(text, maximumLength: 1 << 16) {
    law(pasted.bytes.count <= max(text.count, 1 << 16) + 16, "\(pasted.bytes.count) bytes of \(text.count) characters")
  }
  guard let kind = PastedPackets.Kind(text), let packets = PastedPackets(text, kind) else { return }
  law(packets.capture.count >= 48, "a capture without a header")
  withFile(packets.capture.rawBytes) { path in
    do {
      guard var file = try CaptureInput.openCapture(path, options: CaptureOptions()) else {
        return law(false, "the packets of text are no capture")
      }
      try file.forEachPacket { _, bytes, _ in
        law(bytes.byteCount <= text.count + 1_000, "a packet longer than the text")
        return true
      }
      law(file.warnings.isEmpty, "the packets of text are damaged: \(file.warnings)")
    } catch {
      law(false, "the packets of text cannot be read: \(error)")
    }
  }
}

/// What both ends say before the first record: the first byte chooses how it is cut into pieces, and each further one,
/// before its bytes, whose they are.
@Sendable func fuzzPreamble(_ bytes: RawSpan) {
  var script = Script(bytes)
  let size = 1 + script.byte() & 31
  var words: [(isClient: Bool, bytes: [UInt8])] = []
  while !script.isAtEnd, words.count < 16 {
    let choice = script.byte()
    words.append((choice & 1 == 0, Array(copying: script.take(choice >> 1))))
  }
  func taken(_ size: Int) -> (kind: Preamble?, client: Int, server: Int) {
    var reader = PreambleReader()
    var (client, server) = (0, 0)
    var held = (client: [UInt8](), server: [UInt8]())
    for word in words {
      for start in stride(from: 0, to: word.bytes.count, by: size) {
        let piece = word.bytes[start..<min(start + size, word.bytes.count)]
        if word.isClient { held.client += piece } else { held.server += piece }
        while true {
          let waiting = word.isClient ? held.client : held.server
          guard case .taken(let length) = reader.next(waiting.rawBytes, fromClient: word.isClient, isStart: true) else {
            break
          }
          law(length > 0 && length <= waiting.count, "\(length) of \(waiting.count) bytes are taken")
          if word.isClient {
            held.client.removeFirst(length)
            client += length
          } else {
            held.server.removeFirst(length)
            server += length
          }
        }
      }
    }
    return (reader.kind, client, server)
  }
  let cut = taken(size)
  law(cut.kind != nil || cut.client + cut.server == 0, "bytes of no preamble are taken")
  let first = words.first?.bytes ?? []
  let text = LeadingText(first.rawBytes)
  law(text.length <= first.count, "text of \(text.length) bytes")
}

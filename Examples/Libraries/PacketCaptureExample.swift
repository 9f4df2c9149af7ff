import PacketCapture
import Testing

extension LibraryExamples {
  @Test("PacketCapture: the bytes of a capture come in order, and gaps where some are missing")
  func packetCapture() throws {
    let path = Self.trace("snap-length-120.pcap")

    guard case .packets(let file) = try CaptureInput.open(path, options: CaptureOptions()) else { return }
    let reader = StreamReader(file, options: CaptureOptions())
    var (bytesThere, bytesMissing) = (0, 0)
    let end = try reader.forEachBatch {
      true  // wait on while nothing comes
    } _: { batch in
      batch.forEachEvent { event, position in
        switch event {
        case .bytes(let bytes): bytesThere += bytes.byteCount
        case .gap(let length, _): bytesMissing += length
        case .end, .connection: break
        }
      }
      return true
    }

    #expect(end?.linkTypes == [.ethernet])
    #expect(bytesThere > 0)
    #expect(bytesMissing > 0)
  }
}

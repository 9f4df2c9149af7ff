/// The stages from packets to stream events: a filter, the decoder, the reassembler.
struct PacketPath {
  let filter: PacketFilter?
  var decoder: PacketDecoder
  var reassembler: TCPReassembler

  init(_ options: CaptureOptions, _ filter: PacketFilter?) {
    self.filter = filter
    decoder = PacketDecoder(options: options)
    reassembler = TCPReassembler(options: options.reassembly)
  }
}

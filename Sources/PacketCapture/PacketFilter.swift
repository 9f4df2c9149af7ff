import Bytes
import CPcap

/// A libpcap filter expression (`tcp port 2195 and host 10.0.0.5`), compiled by libpcap for each link type it meets.
public final class PacketFilter {
  private let expression: String
  private let snapLength: Int32
  private var programs: [LinkType: FilterProgram] = [:]

  /// Throws `.badFilter` with libpcap's own words when the expression does not compile for Ethernet.
  public init(_ expression: String, snapLength: Int = 1 << 20) throws(CaptureError) {
    self.expression = expression
    self.snapLength = Int32(clamping: snapLength)
    _ = try program(for: .ethernet)
  }

  /// Takes an expression that has been compiled.
  private init(known expression: String, _ snapLength: Int32) {
    self.expression = expression
    self.snapLength = snapLength
  }

  /// One of the same expression that shares nothing with this one, for another thread.
  func another() -> sending PacketFilter { PacketFilter(known: expression, snapLength) }

  /// Whether the packet is to be read. A link type for which the expression has no meaning throws `.badFilter`.
  public func matches(_ packet: Packet, _ bytes: RawSpan) throws(CaptureError) -> Bool {
    try program(for: packet.linkType).matches(bytes, originalLength: packet.originalLength)
  }

  private func program(for linkType: LinkType) throws(CaptureError) -> FilterProgram {
    if let known = programs[linkType] { return known }
    let program = try FilterProgram(expression, linkType, snapLength)
    programs[linkType] = program
    return program
  }
}

/// A compiled filter. Safe because it is the only owner of the program.
@safe private final class FilterProgram {
  private let program: UnsafeMutablePointer<bpf_program>

  init(_ expression: String, _ linkType: LinkType, _ snapLength: Int32) throws(CaptureError) {
    // libpcap wants the host's own DLT for raw IP, not the value that files carry.
    let dataLink: Int32 = linkType.description == "RAW" ? DLT_RAW : Int32(linkType.rawValue)
    guard let handle = unsafe pcap_open_dead(dataLink, snapLength) else {
      throw CaptureError(.badFilter, "libpcap does not know link type \(linkType)")
    }
    defer { unsafe pcap_close(handle) }
    unsafe program = .allocate(capacity: 1)
    unsafe program.initialize(to: bpf_program())
    guard unsafe pcap_compile(handle, program, expression, 1, bpf_u_int32.max) == 0 else {
      let reason = unsafe String(cString: pcap_geterr(handle))
      throw CaptureError(.badFilter, "filter \"\(expression)\" for link type \(linkType): \(reason)")
    }
  }

  deinit {
    // Also right for a program that did not compile: it is empty then.
    unsafe pcap_freecode(program)
    unsafe program.deallocate()
  }

  func matches(_ bytes: RawSpan, originalLength: Int) -> Bool {
    var header = pcap_pkthdr()
    header.caplen = UInt32(clamping: bytes.byteCount)
    header.len = UInt32(clamping: originalLength)
    return unsafe bytes.withUnsafeBytes { memory in
      let start = unsafe memory.baseAddress?.assumingMemoryBound(to: UInt8.self)
      return unsafe pcap_offline_filter(program, &header, start) != 0
    }
  }
}

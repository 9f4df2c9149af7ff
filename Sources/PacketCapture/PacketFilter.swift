import Bytes
import CPcap

/// A filter expression as tcpdump takes it, such as `tcp port 2195 and host 10.0.0.5`.
///
/// libpcap compiles the expression once for each link type that packets have. A filter is for one thread;
/// `StreamReader` makes a filter of its own for its thread.
public final class PacketFilter {
  private let expression: String
  private let snapLength: Int32
  private var programs: [LinkType: FilterProgram] = [:]

  /// Compiles an expression for Ethernet, to check it.
  ///
  /// - Parameters:
  ///   - expression: the expression (pcap-filter(7)).
  ///   - snapLength: the snap length for libpcap, in bytes.
  /// - Throws: a `CaptureError` of kind `badFilter` with the message of libpcap if the expression does not compile.
  public init(_ expression: String, snapLength: Int = 1 << 20) throws(CaptureError) {
    self.expression = expression
    self.snapLength = Int32(clamping: snapLength)
    _ = try program(for: .ethernet)
  }

  /// Takes an expression that compiles.
  private init(known expression: String, _ snapLength: Int32) {
    self.expression = expression
    self.snapLength = snapLength
  }

  /// A filter with the same expression that shares no state with this one, for another thread.
  func another() -> sending PacketFilter { PacketFilter(known: expression, snapLength) }

  /// Whether the expression matches a packet.
  ///
  /// - Throws: a `CaptureError` of kind `badFilter` if the expression does not compile for the link type of the packet.
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
    // libpcap expects the DLT of the host for raw IP, not the LINKTYPE value in files.
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
    // Valid also for a program that did not compile, which is empty.
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

/// Limits on the memory that a capture or a dump can make the reader and the reassembler use.
public struct CaptureOptions: Sendable {
  /// Longest packet record in bytes. A longer one counts as damage and ends reading the file.
  public var maximumPacketLength: Int
  /// Longest pcapng block that is read; longer ones of other kinds than packets are skipped, longer packets are damage.
  public var maximumBlockLength: Int
  /// All decryption secrets blocks of a file together, in bytes; later ones are skipped with a warning.
  public var maximumSecretsLength: Int
  /// Largest hex dump in bytes of text.
  public var maximumHexDumpLength: Int
  /// Bytes that an archive may expand to; the rest is not read.
  public var maximumExpandedLength = 4 << 30
  /// IP datagrams that wait for fragments at a time; the oldest is dropped for a new one.
  public var maximumFragmentedDatagrams: Int
  /// Tunnels inside of tunnels that are followed to the packet inside, 255 at most; packets in more of them are counted
  /// and not read.
  public var maximumEncapsulation = 16
  /// UDP ports that carry VXLAN, beside 4789 and 8472.
  public var vxlanPorts: [UInt16] = []
  /// Files that overlap in time and are merged at a time; each takes a block of memory. A further one is read after them.
  public var maximumMergedFiles: Int
  /// Packets that are late by at most this many nanoseconds are put in the order of their times; `.max`: all of a
  /// recording. `nil`: packets are read in the order of the file.
  public var reorderWindow: Int64?
  /// Bytes of packets that wait for their turn, including overhead; at the limit the earliest packet is read.
  public var maximumReorderBytes: Int
  /// The part of the recording that is read; `nil`: all of it.
  public var shard: Shard?
  public var reassembly: ReassemblyOptions
  /// Bytes that are read at a time: they are to stay in a core's cache until they are taken apart.
  package var blockLength = 1 << 19

  public init(
    maximumPacketLength: Int = 1 << 20, maximumBlockLength: Int = 16 << 20, maximumSecretsLength: Int = 64 << 20,
    maximumHexDumpLength: Int = 256 << 20, maximumFragmentedDatagrams: Int = 64,
    maximumMergedFiles: Int = 256, maximumReorderBytes: Int = 1 << 30,
    reassembly: ReassemblyOptions = ReassemblyOptions()
  ) {
    self.maximumPacketLength = maximumPacketLength
    self.maximumBlockLength = maximumBlockLength
    self.maximumSecretsLength = maximumSecretsLength
    self.maximumHexDumpLength = maximumHexDumpLength
    self.maximumFragmentedDatagrams = maximumFragmentedDatagrams
    self.maximumMergedFiles = maximumMergedFiles
    self.maximumReorderBytes = maximumReorderBytes
    self.reassembly = reassembly
  }
}

/// Limits of TCP reassembly and the patience with which gaps are decided.
public struct ReassemblyOptions: Sendable {
  /// Bytes of one direction that may wait for missing ones before them, 96 more for every piece. At the limit the gap
  /// is declared.
  public var maximumBufferedBytes: Int
  /// The same for all connections together.
  public var maximumTotalBufferedBytes: Int
  /// Connections that are followed at a time, ended ones included. At the limit the longest idle one is closed.
  public var maximumConnections: Int
  /// Packets of a connection after the peer acknowledged missing bytes before they count as lost: captures record
  /// packets out of order, an acknowledgement before its data.
  public var gapPatience: Int
  /// Segments of a direction whose start was not captured that are held before the lowest of them counts as the start.
  public var startPatience: Int
  /// A connection after a RST is closed when it was silent for so many nanoseconds: packets are not always recorded in
  /// order, and the peer goes on sending for a while. While an input that stays open is silent they are those of the
  /// clock, and data that wait for lost ones wait no longer either.
  public var linger: Int64 = 2_000_000_000
  /// Two captures of one packet under other addresses are at most so many nanoseconds apart; 0: flows are never compared.
  public var maximumViewDelay: Int64 = 1_000_000
  /// Connections that a flow is compared with which may be one of them under other addresses: those that began within
  /// the delay, and for a flow whose beginning was not captured those that are followed. With more than these there a
  /// connection that was captured on several interfaces may count as several.
  public var maximumComparedConnections = 4_096

  public init(
    maximumBufferedBytes: Int = 1 << 20, maximumTotalBufferedBytes: Int = 16 << 20, maximumConnections: Int = 65_536,
    gapPatience: Int = 16, startPatience: Int = 32
  ) {
    self.maximumBufferedBytes = maximumBufferedBytes
    self.maximumTotalBufferedBytes = maximumTotalBufferedBytes
    self.maximumConnections = maximumConnections
    self.gapPatience = gapPatience
    self.startPatience = startPatience
  }
}

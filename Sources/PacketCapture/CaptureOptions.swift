/// Limits on the memory that an input can make the reader and the reassembler use.
public struct CaptureOptions: Sendable {
  /// The longest packet record in bytes. A longer one counts as damage and ends the reading of the file. Default: 1
  /// MiB.
  public var maximumPacketLength: Int
  /// The longest pcapng block in bytes. Longer packet blocks count as damage; longer blocks of other types are skipped.
  /// Default: 16 MiB.
  public var maximumBlockLength: Int
  /// The most bytes in all Decryption Secrets Blocks of a file; further blocks are skipped with a warning. Default: 64
  /// MiB.
  public var maximumSecretsLength: Int
  /// The longest dump as text, in bytes of text; the rest is not read. Default: 256 MiB.
  public var maximumHexDumpLength: Int
  /// The most bytes that an archive may expand to; the rest is not read.
  public var maximumExpandedLength = 4 << 30
  /// The most IP datagrams that wait for fragments; a further one evicts the oldest. Default: 64.
  public var maximumFragmentedDatagrams: Int
  /// The deepest nesting of tunnels that is decoded, at most 255; packets nested deeper are counted but not decoded.
  public var maximumEncapsulation = 16
  /// UDP ports that carry VXLAN, in addition to 4789 and 8472.
  public var vxlanPorts: [UInt16] = []
  /// The most files that overlap in time and are merged; each needs a block of memory. A further file is read after
  /// them. Default: 256.
  public var maximumMergedFiles: Int
  /// Sorts packets by time if they are late by at most this many nanoseconds; `.max` sorts the whole recording. `nil`:
  /// packets are read in the order of the file.
  public var reorderWindow: Int64?
  /// The most bytes of packets that wait to be sorted, including overhead; at the limit the earliest packet is read.
  /// Default: 1 GiB.
  public var maximumReorderBytes: Int
  /// The part of the recording that is read; `nil`: the whole recording.
  public var shard: Shard?
  /// Limits of TCP reassembly.
  public var reassembly: ReassemblyOptions
  /// The block size for reading, in bytes: a block should stay in a core's cache until it is decoded.
  package var blockLength = 1 << 19

  /// Makes options; each limit has the default value that is stated at its property.
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

/// Limits on the memory of TCP reassembly, and how long it waits for missing bytes.
public struct ReassemblyOptions: Sendable {
  /// The most bytes of one direction that wait for missing bytes before them, with 96 bytes of overhead for each piece.
  /// At the limit the missing bytes are declared a gap. Default: 1 MiB.
  public var maximumBufferedBytes: Int
  /// The most bytes that wait in all connections together, with the same overhead. Default: 16 MiB.
  public var maximumTotalBufferedBytes: Int
  /// The most connections that are tracked, including ended ones. At the limit an ended connection or one that has long
  /// been idle is closed. Default: 65,536.
  public var maximumConnections: Int
  /// The number of packets of a connection, after the peer acknowledged missing bytes, until those bytes count as lost.
  /// Captures may record packets out of order, such as an acknowledgement before its data. Default: 16.
  public var gapPatience: Int
  /// The number of segments that are held if the start of a direction was not captured; then the lowest sequence number
  /// counts as the start. Default: 32.
  public var startPatience: Int
  /// How long a connection is silent after a RST until it is closed, in nanoseconds of packet times. Packets are not
  /// always recorded in order, and the peer goes on sending for a while. While a pipe is silent its reader's clock
  /// counts instead, and after this time data no longer wait for missing bytes.
  public var linger: Int64 = 2_000_000_000
  /// The most nanoseconds between two captures of one packet under different addresses; 0 disables comparing flows.
  public var maximumViewDelay: Int64 = 1_000_000
  /// The most connections with which a new flow is compared, in case they are the same connection under other
  /// addresses: those that began within the delay; for a flow whose beginning was not captured, all tracked ones. Above
  /// this limit a connection that was captured on several interfaces may be counted several times.
  public var maximumComparedConnections = 4_096

  /// Makes options; each limit has the default value that is stated at its property.
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

/// The number of a packet in its file, and the number of the file, in one integer. The number of the file is in the
/// bits from 40 on; it is 0 if there is only one file, so that the integer equals the packet's number.
///
/// Numbers of one file are in the order of its packets, and numbers of different files in the order of the files.
@usableFromInline package enum PacketNumber {
  @usableFromInline static let bits = 40

  package static func joining(file: Int, packet: Int) -> Int { file << bits | packet }

  /// The number of the packet in its file, from 1; 0 without packets.
  @inlinable
  package static func packet(_ number: Int) -> Int { number & (1 << bits - 1) }

  /// The number of the file, from 1; 0 if there is only one file.
  @inlinable
  package static func file(_ number: Int) -> Int { number >> bits }
}

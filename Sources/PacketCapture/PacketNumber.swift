/// A packet's number in its file together with the number of the file, in one integer: the file's is above bit 40, and 0
/// where there is one file, so that the integer is the packet's number then.
///
/// Numbers of one file compare as its packets follow one another, and those of files as the files do.
@usableFromInline package enum PacketNumber {
  @usableFromInline static let bits = 40

  package static func joining(file: Int, packet: Int) -> Int { file << bits | packet }

  /// The packet's number in its file, from 1; 0 where there are no packets.
  @inlinable
  package static func packet(_ number: Int) -> Int { number & (1 << bits - 1) }

  /// The file's number, from 1; 0 where there is one file.
  @inlinable
  package static func file(_ number: Int) -> Int { number >> bits }
}

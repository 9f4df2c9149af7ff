import Records

/// The stream offsets of the next bytes of both ends of a connection.
struct StreamOffsets: Sendable {
  var client = 0
  var server = 0

  /// The offset of the next byte of an end; adds the length of what follows to it.
  mutating func advance(_ sender: Direction, by length: Int) -> Int {
    switch sender {
    case .client:
      defer { client += length }
      return client
    case .server:
      defer { server += length }
      return server
    }
  }
}

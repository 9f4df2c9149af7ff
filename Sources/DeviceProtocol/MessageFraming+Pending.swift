import Bytes

extension MessageFraming {
  /// Reads bytes of a direction, in pieces of any length, and returns those that wait for the rest of their message.
  ///
  /// The bytes that waited are taken from the caller: `read` may end the connection, and must not find them again. O(n) of
  /// the bytes; a copy is made of what waits, and of nothing else.
  ///
  /// - Parameters:
  ///   - pending: what the call before this one has returned.
  ///   - bytes: what follows.
  ///   - read: reads whole messages from the beginning on, and returns the number of their bytes.
  package static func rest(
    of pending: consuming [UInt8], _ bytes: RawSpan, after read: (RawSpan) -> Int
  ) -> [UInt8] {
    guard !pending.isEmpty else {
      let used = read(bytes)
      return used < bytes.byteCount ? Array(copying: bytes.extracting(used...)) : []
    }
    var whole = consume pending
    whole.append(copying: bytes)
    let used = read(whole.rawBytes)
    return used == 0 ? whole : Array(whole[used...])
  }
}

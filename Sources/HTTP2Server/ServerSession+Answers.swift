import Bytes
import HTTP2

/// Answers.
extension ServerSession {
  /// Writes an answer, and closes its stream once all of it is written.
  ///
  /// Nothing is put into the header table: an answer costs the same whatever came before, and no client can make it keep
  /// anything. Content waits for the client's windows.
  ///
  /// - Parameters:
  ///   - slot: the slot of an open stream. Before the end of its request, that is told no more.
  ///   - status: three digits.
  ///   - content: the content; without any the fields end the stream.
  ///   - write: writes the fields besides `:status`.
  /// - Returns: the length of the output up to the end of `:status`.
  @discardableResult
  public mutating func answer(
    _ slot: Int, status: Int, content: [UInt8] = [], _ write: (inout ByteWriter) -> Void = { _ in }
  ) -> Int {
    guard state != .failed else { return output.count }
    let number = streams[slot].number
    // Its end, if it comes later, is told to nobody: it would be answered again.
    streams[slot].isRequestEnded = true
    // The length is known when the block is written.
    let start = output.count
    output.write(
      FrameHeader(.headers, flags: content.isEmpty ? [.endHeaders, .endStream] : .endHeaders, stream: number))
    if let size = owedTableSize {
      HPACKInteger.write(size, prefix: 5, pattern: 0x20, to: &output)
      owedTableSize = nil
    }
    output.write(status: status)
    let told = output.count
    write(&output)
    let length = output.count - start - FrameHeader.length
    output.overwrite(bigEndian: UInt32(truncatingIfNeeded: length) << 8 | UInt32(FrameType.headers.rawValue), at: start)
    if content.isEmpty {
      finish(slot)
    } else {
      streams[slot].unsent = content[...]
      unsentBytes += content.count
      blocked += 1
      send(slot)
    }
    return told
  }

  /// Sends what the windows allow of an answer's content. If the connection's does not allow all, the stream waits in line
  /// for it; if its own does not, for its own WINDOW_UPDATE.
  mutating func send(_ slot: Int) {
    let number = streams[slot].number
    var rest = streams[slot].unsent
    while !rest.isEmpty {
      let count = min(rest.count, sendWindow, streams[slot].sendWindow, peer.maximumFrameSize)
      guard count > 0 else {
        streams[slot].unsent = rest
        if sendWindow <= 0, !streams[slot].isWaiting {
          streams[slot].isWaiting = true
          waiting.append(number)
        }
        return
      }
      let part = Array(rest.prefix(count))
      output.writeFrame(.data, flags: count == rest.count ? .endStream : [], stream: number, part.rawBytes)
      // Clients give a window back on the stream and on the connection.
      floods.windowUpdates.add(2, options.floods.windowUpdates)
      sendWindow -= count
      streams[slot].sendWindow -= count
      unsentBytes -= count
      rest = rest.dropFirst(count)
    }
    blocked -= 1
    streams[slot].unsent = []
    finish(slot)
  }

  /// Sends what waited for the connection's window, in the order in which it waited: a WINDOW_UPDATE of one byte costs one
  /// stream, and not all.
  mutating func sendWaiting() {
    while sendWindow > 0, firstWaiting < waiting.count {
      let number = waiting[firstWaiting]
      // It may have been reset, or have been sent for another reason.
      if let slot = streams.slot(of: number), !streams[slot].unsent.isEmpty {
        send(slot)
        // The first stays the first.
        if let slot = streams.slot(of: number), !streams[slot].unsent.isEmpty, sendWindow <= 0 { break }
        if let slot = streams.slot(of: number) { streams[slot].isWaiting = false }
      }
      firstWaiting += 1
    }
    guard firstWaiting == waiting.count || firstWaiting > 1_024 else { return }
    waiting.removeFirst(firstWaiting)
    firstWaiting = 0
  }

  /// Sends what waited for any window, after all of them have changed. O(n log n) in open streams.
  mutating func sendBlocked() {
    guard blocked > 0 else { return }
    // Those whose own windows are open now wait for the connection's.
    for slot in streams.inOrder() where !streams[slot].unsent.isEmpty { send(slot) }
  }

  /// The answer is written.
  private mutating func finish(_ slot: Int) {
    guard streams[slot].isClientOpen else { return close(slot) }
    // The rest of the request is not wanted (RFC 9113 section 8.1).
    writeReset(streams[slot].number, .noError)
    close(slot, isReset: true)
  }
}

/// The fields of an answer, as literals that are not inserted into the table.
extension ByteWriter {
  /// Writes a field.
  public mutating func writeField(_ name: StaticString, _ value: RawSpan) {
    writeField(name, length: value.byteCount)
    write(value)
  }

  /// Writes a field up to its value, which has to follow.
  public mutating func writeField(_ name: StaticString, length: Int) {
    write(0 as UInt8)
    HPACKInteger.write(name.utf8CodeUnitCount, prefix: 7, pattern: 0, to: &self)
    write(name)
    HPACKInteger.write(length, prefix: 7, pattern: 0, to: &self)
  }

  fileprivate mutating func write(status: Int) {
    // Those that the static table has.
    switch status {
    case 200: write(0x88 as UInt8)
    case 204: write(0x89 as UInt8)
    case 206: write(0x8a as UInt8)
    case 304: write(0x8b as UInt8)
    case 400: write(0x8c as UInt8)
    case 404: write(0x8d as UInt8)
    case 500: write(0x8e as UInt8)
    default:
      // The name of index 8, and the value.
      write(0x08 as UInt8)
      write(3 as UInt8)
      for place in [100, 10, 1] { write(UInt8(0x30 + status / place % 10)) }
    }
  }
}

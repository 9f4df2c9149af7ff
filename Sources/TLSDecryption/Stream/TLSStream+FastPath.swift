import Bytes
import TLSFoundation

/// The usual case without uncertainty: consecutive records of application data with proven keys.
///
/// State that every record touches is in local variables here, because access to a class is checked at run time.
extension TLSStream {
  /// Reads records of application data as long as they can be decrypted. Returns the offset of the first other record,
  /// for the general path; `nil` if all bytes were read.
  func readFastPath(
    _ bytes: RawSpan, _ direction: TLSDirection, _ decryptor: RecordDecryptor, _ point: CapturePoint,
    _ workspace: TLSWorkspace, _ emit: PlaintextReceiver
  ) -> Int? {
    var taken = TLSRecordReader.State.aligned(partial: [])
    direction.records.exchange(&taken)
    // Straight reading is for aligned records only.
    guard case .aligned(var partial) = consume taken else { return 0 }
    var output: [UInt8] = []
    swap(&output, &workspace.output)
    var offset = direction.tally.offset
    var records = 0
    defer {
      swap(&output, &workspace.output)
      var kept = TLSRecordReader.State.aligned(partial: partial)
      direction.records.exchange(&kept)
      direction.records.count += records
      direction.tally.openStraight(records: records, upTo: offset)
    }
    let version = min(decryptor.version, .tls12)
    let side = direction.side
    var position = 0

    if !partial.isEmpty {
      switch complete(&partial, bytes, &position, version, decryptor, into: &output) {
      case .incomplete: break
      case .other: return 0
      case .opened(let length):
        records += 1
        if length > 0 {
          emit(.bytes(output.rawBytes.extracting(0..<length)), side, offset, point)
          offset += length
        }
      }
    }
    while bytes.byteCount - position >= RecordHeader.length {
      let header = RecordHeader(bytes, at: position)
      guard header.type == .applicationData, header.version == version, header.isPlausible else {
        return position
      }
      guard bytes.byteCount - position >= header.recordLength else { break }
      let fragment = bytes.extracting(position + RecordHeader.length..<position + header.recordLength)
      guard let opened = decryptor.openNextData(header, fragment, into: &output) else {
        return position
      }
      records += 1
      position += header.recordLength
      if opened.length > 0 {
        emit(.bytes(output.rawBytes.extracting(0..<opened.length)), side, offset, point)
        offset += opened.length
      }
    }
    if position < bytes.byteCount { partial.append(copying: bytes.extracting(position..<bytes.byteCount)) }
    return nil
  }

  /// A record that began in earlier bytes.
  private enum BegunRecord {
    /// It goes on after these bytes.
    case incomplete
    /// It is for the general path; the bytes of it are what they were before.
    case other
    /// Application data of so many bytes, which may be none.
    case opened(Int)
  }

  /// Adds to a begun record the bytes that it lacks, and opens it if it is whole.
  private func complete(
    _ partial: inout [UInt8], _ bytes: RawSpan, _ position: inout Int, _ version: TLSVersion,
    _ decryptor: RecordDecryptor, into output: inout [UInt8]
  ) -> BegunRecord {
    let before = partial.count
    if before < RecordHeader.length { TLSRecordReader.fill(&partial, to: RecordHeader.length, bytes, &position) }
    guard partial.count >= RecordHeader.length else { return .incomplete }
    let header = RecordHeader(partial.rawBytes, at: 0)
    if header.type == .applicationData && header.version == version && header.isPlausible {
      TLSRecordReader.fill(&partial, to: header.recordLength, bytes, &position)
      guard partial.count == header.recordLength else { return .incomplete }
      let length = decryptor.openNextData(
        header, partial.rawBytes.extracting(RecordHeader.length..<partial.count), into: &output)?.length
      if let length {
        partial.removeAll(keepingCapacity: true)
        return .opened(length)
      }
    }
    partial.removeLast(partial.count - before)
    return .other
  }
}

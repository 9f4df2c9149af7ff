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
      let before = partial.count
      if before < RecordHeader.length { TLSRecordReader.fill(&partial, to: RecordHeader.length, bytes, &position) }
      if partial.count >= RecordHeader.length {
        let header = RecordHeader(partial.rawBytes, at: 0)
        let isData = header.type == .applicationData && header.version == version && header.isPlausible
        if isData { TLSRecordReader.fill(&partial, to: header.recordLength, bytes, &position) }
        if !isData || partial.count == header.recordLength {
          guard isData,
            let opened = decryptor.openNextData(
              header, partial.rawBytes.extracting(RecordHeader.length..<partial.count), into: &output)
          else {
            // Restores the state before the bytes were added.
            partial.removeLast(partial.count - before)
            return 0
          }
          records += 1
          partial.removeAll(keepingCapacity: true)
          if opened.length > 0 {
            emit(.bytes(output.rawBytes.extracting(0..<opened.length)), side, offset, point)
            offset += opened.length
          }
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
}

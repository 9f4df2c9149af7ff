import Records

/// Why a connection has no packets in a clear capture.
enum ClearRefusal {
  case otherProtocol, notDecrypted, beginningMissing, damaged

  /// - Parameters:
  ///   - isDamaged: a gap or malformed bytes were reported.
  ///   - clientBytes: bytes of its notifications.
  ///   - serverBytes: bytes of its error responses and feedback tuples.
  init?(_ record: ConnectionRecord, isDamaged: Bool, clientBytes: Int, serverBytes: Int) {
    if record.otherProtocol == .http2, record.http2 == nil, record.tls?.isDecrypted == false {
      self = .notDecrypted
      return
    }
    let isOurs = record.service == .gateway || record.service == .feedback || record.service == .channels
    guard isOurs, record.otherProtocol == nil || record.http2 != nil else {
      self = .otherProtocol
      return
    }
    // Without a version nothing was negotiated: a hello alone has no content.
    if let tls = record.tls, !tls.isDecrypted || !tls.isWhole || tls.version == nil {
      self = .notDecrypted
    } else if !record.outline.isFromBeginning {
      self = .beginningMissing
    } else if isDamaged || record.missingBytes > 0 || record.conflictingBytes > 0 || !record.limits.isEmpty
      || !Self.isWhole(record, clientBytes: clientBytes, serverBytes: serverBytes)
    {
      self = .damaged
    } else {
      return nil
    }
  }

  private static func isWhole(_ record: ConnectionRecord, clientBytes: Int, serverBytes: Int) -> Bool {
    guard let http2 = record.http2 else {
      return clientBytes == record.clientBytes && serverBytes == record.serverBytes
    }
    return record.outline.areFramesWhole && http2.clientTableLosses == 0 && http2.serverTableLosses == 0
  }
}

/// Counts of what a clear capture contains of a recording, and of what it leaves out.
package struct ClearCounts: Sendable, Equatable {
  package var connections = 0
  package var packets = 0
  /// Connections among these with notifications, error responses or feedback tuples, or to a feedback service that
  /// listed nothing.
  package var withRecords = 0
  /// Connections left out.
  package var notDecrypted = 0
  package var beginningMissing = 0
  package var damaged = 0
  package var otherProtocols = 0

  mutating func add(_ refusal: ClearRefusal) {
    switch refusal {
    case .otherProtocol: otherProtocols += 1
    case .notDecrypted: notDecrypted += 1
    case .beginningMissing: beginningMissing += 1
    case .damaged: damaged += 1
    }
  }
}

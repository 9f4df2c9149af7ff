import PacketCapture
import Records
import TLSDecryption

/// The record of a connection that has ended.
extension Dissector {
  func record(of connection: Connection) -> ConnectionRecord {
    // With nothing else to go by, the server is the end with the lower port.
    let clientIsHigh = connection.clientIsHigh ?? connection.flow.map { $0.high.port > $0.low.port } ?? false
    var (low, high) = clientStreams[connection.slot].byteCounts
    let tls = connection.tls?.summary ?? connection.describedTLS
    if let stream = connection.tls, tls?.isDecrypted == false {
      // Nothing is known of the content.
      low = stream.wireBytes(from: connection.side(fromHigh: false))
      high = stream.wireBytes(from: connection.side(fromHigh: true))
    }
    let end: ConnectionRecord.End =
      switch connection.firstClosing {
      case nil: .captureEnd
      case (let isHigh, false)?: isHigh == clientIsHigh ? .clientFIN : .serverFIN
      case (let isHigh, true)?: isHigh == clientIsHigh ? .clientRST : .serverRST
      }
    let (service, other) = spoken(connection, tls, bytes: low + high)
    var record = ConnectionRecord(
      connection: connection.number, file: connection.firstFile,
      flow: options.capture.shard == nil ? nil : connection.stableKey,
      service: service, otherProtocol: other, isOnKnownPort: isOnKnownPort(connection),
      outline: connection.outline(clientIsHigh: clientIsHigh),
      notCaptured: ConnectionRecord.NotCaptured(
        start: connection.flow != nil && !connection.startWasCaptured,
        client: clientIsHigh ? connection.unfinished.high : connection.unfinished.low,
        server: clientIsHigh ? connection.unfinished.low : connection.unfinished.high),
      client: connection.flow.map { clientIsHigh ? $0.high : $0.low },
      server: connection.flow.map { clientIsHigh ? $0.low : $0.high },
      opened: connection.opened, closed: connection.closed, end: end,
      tls: tls,
      clientBytes: clientIsHigh ? high : low, serverBytes: clientIsHigh ? low : high,
      missingBytes: connection.missingBytes, notifications: clientStreams[connection.slot].session.written,
      errorResponses: connection.reading.errorResponses, feedbackTuples: connection.reading.feedbackTuples,
      fates: clientStreams[connection.slot].session.fates, conflictingBytes: connection.conflictingBytes,
      limits: connection.limits, alsoSeenAs: connection.otherEnds(clientIsHigh: clientIsHigh))
    if case .http2(let reader) = connection.reading {
      (record.service, record.otherProtocol, record.http2) = (reader.service, .http2, reader.summary)
      (record.notifications, record.fates) = (reader.session.notifications, reader.session.fates)
    }
    if case .messages(let reader) = connection.reading {
      (record.service, record.otherProtocol) = (.other, OtherProtocol(reader.kind))
      record.messages = reader.messages
    }
    record.preamble = connection.preamble.kind
    let (lowPreamble, highPreamble) = connection.preambleBytes
    record.preambleBytes = clientIsHigh ? (highPreamble, lowPreamble) : (lowPreamble, highPreamble)
    return record
  }

  private func isOnKnownPort(_ connection: Connection) -> Bool {
    guard let flow = connection.flow else { return false }
    return options.ports[flow.low.port] != nil || options.ports[flow.high.port] != nil
  }

  /// The service of a connection that has ended, and the other protocol it uses.
  ///
  /// - Parameter bytes: decrypted bytes of both directions.
  private func spoken(_ connection: Connection, _ tls: TLSSummary?, bytes: Int) -> (Service, OtherProtocol?) {
    var other = connection.otherProtocol
    if let tls, other == nil, !tls.isDecrypted || bytes == 0 {
      other = OtherProtocol(tls) ?? (connection.service == .unknown ? .tls : nil)
      if other != nil { return (.other, other) }
    }
    return (connection.service == .unknown && other != nil ? .other : connection.service, other)
  }
}

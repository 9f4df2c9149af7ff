import Bytes
import Measurement

/// The meanings of a trace's codes.

extension InspectionReport.ConnectionRow {
  var isFeedback: Bool { service == "feedback" }
  var isDecrypted: Bool { tls?.decrypted ?? true }

  /// The reason why the connection was not, or not wholly, decrypted; empty if it was.
  var problem: String { tls?.problem ?? "" }

  /// TLS version and cipher suite; `nil` without TLS.
  var encryption: String? {
    tls.map { tls in
      let words = [tls.version, tls.cipherSuite].compactMap { $0 }.joined(separator: ", ")
      return words.isEmpty ? "unknown version" : words
    }
  }

  /// The topic of the client's certificate; empty if the trace does not contain it.
  var topic: String { tls?.topic ?? "" }

  /// The status of its first error response: `8 invalid token`.
  var firstError: String? { firstErrorStatus.map { "\($0) \(firstErrorName ?? "")" } }
}

extension InspectionReport.TLSRow {
  /// The topics of a provider's certificate, otherwise its CN, otherwise the whole subject.
  var topic: String? { clientSubject.map { CertificateSubject($0).name ?? $0 } }

  /// The environment of the client's certificate, and the last day of its validity.
  var certificate: String? {
    let environment: String? =
      switch self.environment {
      case .sandbox: "sandbox"
      case .production: "production"
      case .both: "sandbox and production"
      case nil: nil
      }
    let end = certificateEnds.map { "until \($0.prefix(10))" }
    let words = [environment, end].compactMap { $0 }.joined(separator: ", ")
    return words.isEmpty ? nil : words
  }
}

extension InspectionReport.ErrorRow {
  /// Seconds.
  var latency: Double? { latencyMs.map { $0 / 1e3 } }
}

extension CapturedEnd {
  /// The side that ended the connection.
  var meaning: String {
    switch self {
    case .clientFIN: "client"
    case .serverFIN: "server"
    case .clientRST: "client, by a reset"
    case .serverRST: "server, by a reset"
    case .captureEnd: "end of the trace"
    }
  }
}

extension CapturedGap {
  var meaning: String {
    switch self {
    case .lost: "stretches of bytes that were sent and not captured"
    case .truncated: "packets that the snap length cut"
    case .beforeCapture: "records that began before the capture"
    case .undecrypted: "stretches of TLS that could not be decrypted"
    case .captureEnd: "records that the capture does not end"
    case .givenUp: "unfinished records that were given up at --max-memory"
    }
  }
}

extension FindingKind {
  var tone: Tone {
    switch self {
    case .captureLoss, .neverResent, .payloadOver4096, .certificateExpired, .certificateRevoked, .unknownCA: .bad
    case .resent, .knownBad, .outOfOrder: .neutral
    default: .warning
    }
  }
}

extension TraceReport.Expirations {
  /// Notifications by expiration, in words, in the order in which they are listed.
  var inWords: [(meaning: String, count: Int)] {
    [
      ("none", none), ("0: now or never", zero), ("in the past", past), ("within an hour", withinHour),
      ("within a day", withinDay), ("within four weeks", withinFourWeeks), ("in more than four weeks", later),
    ]
  }
}

extension TraceReport.Connection {
  var lengthS: Double? { openedS.flatMap { opened in closedS.map { $0 - opened } } }
}

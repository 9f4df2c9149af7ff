import BinaryProtocol
import PushModel

/// Compares the records present in a trace with the counts of its summary and its connections.
struct RecordCensus {
  /// Records found, by type; only connections that have ended count.
  var found = SummaryRecord()
  /// Connections with at least one record.
  var begun = 0
  /// Records of connections also count records that were not selected.
  var isSelection = false
  private var summaries = 0
  private var stated = SummaryRecord()
  private var countedByConnections = SummaryRecord()

  mutating func add(_ summary: SummaryRecord) {
    summaries += 1
    stated.connections += summary.connections
    stated.notifications += summary.notifications
    stated.errorResponses += summary.errorResponses
    stated.feedbackTuples += summary.feedbackTuples
    stated.messages += summary.messages
    stated.gaps += summary.gaps
    stated.malformed += summary.malformed
  }

  mutating func add(_ connection: ConnectionRecord) {
    found.connections += 1
    if isSelection { return }
    countedByConnections.notifications += connection.notifications
    countedByConnections.errorResponses += connection.errorResponses
    countedByConnections.feedbackTuples += connection.feedbackTuples
    countedByConnections.messages += connection.messages ?? 0
  }

  var missing: String? {
    let counts = [
      ("connections", found.connections, max(stated.connections, begun)),
      ("notifications", found.notifications, max(stated.notifications, countedByConnections.notifications)),
      ("error responses", found.errorResponses, max(stated.errorResponses, countedByConnections.errorResponses)),
      ("feedback tuples", found.feedbackTuples, max(stated.feedbackTuples, countedByConnections.feedbackTuples)),
      ("messages", found.messages, max(stated.messages, countedByConnections.messages)),
      ("gaps", found.gaps, stated.gaps), ("malformed ranges and frames", found.malformed, stated.malformed),
    ]
    var parts = counts.filter { $0.1 < $0.2 }.map { "\($0.1) of \($0.2) \($0.0)" }
    if summaries == 0 { parts.append("no summary, so more records may be missing") }
    guard !parts.isEmpty else { return nil }
    return "The records are incomplete: they have only \(parts.joined(separator: ", ")). The facts below are of these."
  }
}

/// The fates of a connection's notifications, from its error responses alone: its own record is missing.
struct InferredFates {
  /// The index of the latest notification that a response names, which settles all up to it.
  private var named = -1
  private var isShutdown = false
  private var discarded: Int?
  /// Responses that reject a later notification than any earlier response names.
  private var rejected = 0

  mutating func add(_ record: ErrorResponseRecord) {
    guard let named = record.notification, record.response.status != .noError, named > self.named else { return }
    self.named = named
    isShutdown = record.response.status == .shutdown
    discarded = record.discarded
    if !isShutdown { rejected += 1 }
  }

  /// The fates, which add up to the notifications present, or to more if a response counts more.
  func fates(of notifications: Int) -> FateCounts {
    var fates = FateCounts()
    if named >= 0 {
      fates.rejected = rejected
      fates.accepted = max(0, named + 1 - rejected)
      fates.discarded = discarded ?? max(0, notifications - named - 1)
    }
    fates.unknown = max(0, notifications - fates.written)
    return fates
  }
}

extension FateCounts {
  /// The sum of all fates.
  package var written: Int { accepted + rejected + discarded + unknown }
}

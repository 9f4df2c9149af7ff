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
  private var told = SummaryRecord()
  private var toldByConnections = SummaryRecord()

  mutating func add(_ summary: SummaryRecord) {
    summaries += 1
    told.connections += summary.connections
    told.notifications += summary.notifications
    told.errorResponses += summary.errorResponses
    told.feedbackTuples += summary.feedbackTuples
    told.gaps += summary.gaps
    told.malformed += summary.malformed
  }

  mutating func add(_ connection: ConnectionRecord) {
    found.connections += 1
    if isSelection { return }
    toldByConnections.notifications += connection.notifications
    toldByConnections.errorResponses += connection.errorResponses
    toldByConnections.feedbackTuples += connection.feedbackTuples
  }

  var missing: String? {
    let counts = [
      ("connections", found.connections, max(told.connections, begun)),
      ("notifications", found.notifications, max(told.notifications, toldByConnections.notifications)),
      ("error responses", found.errorResponses, max(told.errorResponses, toldByConnections.errorResponses)),
      ("feedback tuples", found.feedbackTuples, max(told.feedbackTuples, toldByConnections.feedbackTuples)),
      ("gaps", found.gaps, told.gaps), ("malformed ranges and frames", found.malformed, told.malformed),
    ]
    var parts = counts.filter { $0.1 < $0.2 }.map { "\($0.1) of \($0.2) \($0.0)" }
    if summaries == 0 { parts.append("no summary, so more records may be missing") }
    guard !parts.isEmpty else { return nil }
    return "The records are incomplete: they have only \(parts.joined(separator: ", ")). What is told is of these."
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

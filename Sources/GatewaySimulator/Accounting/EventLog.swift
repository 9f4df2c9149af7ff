import Bytes
import Measurement

/// Writes events to a file, one JSON object per line, from any number of event loops at a time.
///
/// ```
/// {"time":"2015-09-16T01:02:03.123456789Z","event":"rejected","client":"127.0.0.1:50000","topic":"com.example.app",
///  "connection":7,"status":8,"identifier":42,"notification":41}                        (in one line)
/// ```
///
/// `write` does not wait for the disk (`LineLog`). When the disk cannot keep up, lines are dropped and counted, and a line
/// reports how many: `{"time":…,"event":"dropped","count":…}`.
public final class EventLog: Sendable {
  /// Something that happened. A field that is `nil` is left out of the line.
  package struct Event: Sendable {
    /// Nanoseconds since 1970-01-01 UTC.
    package var time: Int64
    package var name: String
    /// Version of the contract (Documentation/records.md).
    package var schema: Int?
    /// Address and port.
    package var client: String?
    package var topic: String?
    /// The connection's number in this run.
    package var connection: Int?
    package var status: Int?
    package var identifier: UInt32?
    /// The notification's number on its connection, from 0.
    package var notification: Int?
    package var accepted: Int?
    package var discarded: Int?
    /// Feedback tuples that were sent.
    package var tuples: Int?
    package var reason: String?
    /// GOAWAY: the last stream that was processed, or may have been.
    package var lastStream: Int?
    /// Of a provider token, whose signature is nowhere: key, team, and when it was issued, in nanoseconds since 1970.
    package var keyID: String?
    package var teamID: String?
    package var issuedAt: Int64?
    /// The error of TLS or the system that ended a connection.
    package var error: String?
    /// The TLS version.
    package var tls: String?
    package var suite: String?
    package var resumed: Bool?

    package init(_ name: String, time: Int64) {
      self.name = name
      self.time = time
    }

    /// The first event of a run.
    package static func started(at time: Int64) -> Event {
      var event = Event("started", time: time)
      event.schema = 1
      return event
    }
  }

  /// Why the file cannot be opened.
  public struct OpenError: Error, CustomStringConvertible {
    public let path: String
    public let code: Int32
    public var description: String { "\(path): \(SystemError.text(code))" }
  }

  private let output: LineLog

  /// Opens the file, or makes it with mode 0644; lines go to its end. A named pipe is waited for until somebody reads
  /// it. Not more than `maximumWaitingBytes` of lines wait to be written; lines that come then are dropped.
  public init(path: String, maximumWaitingBytes: Int = 16 << 20) throws(OpenError) {
    do {
      output = try LineLog.open(path: path, limit: maximumWaitingBytes) { count in
        var line = ByteWriter(capacity: 128)
        line.writeDropped(count)
        return Array(copying: line.bytes)
      }
    } catch {
      throw OpenError(path: path, code: error.code)
    }
  }

  deinit { close() }

  package func write(_ event: Event) {
    var line = ByteWriter(capacity: 512)
    line.write(event)
    output.add(line.bytes)
  }

  /// Writes buffered lines and closes the file; later lines are dropped. Blocks until it is done, or until a pipe was
  /// not read for 5 seconds.
  public func close() { output.end() }

  /// Lines that were not written, because there was no room for them or because writing failed.
  public var droppedLines: Int { output.dropped }

  /// The first error of writing, in words; nothing was written after it.
  public var failure: String? { output.failure }
}

// MARK: - a line

extension ByteWriter {
  fileprivate mutating func write(_ event: EventLog.Event) {
    write("{\"time\":\"")
    write(rfc3339: event.time)
    write("\",\"event\":")
    write(jsonString: event.name, onlyRequired: true)
    field("schema", event.schema)
    field("client", event.client)
    field("topic", event.topic)
    field("connection", event.connection)
    field("status", event.status)
    field("last_stream", event.lastStream)
    field("key_id", event.keyID)
    field("team_id", event.teamID)
    field("issued_at", event.issuedAt.map(rfc3339))
    field("identifier", event.identifier.map { Int($0) })
    field("notification", event.notification)
    field("accepted", event.accepted)
    field("discarded", event.discarded)
    field("tuples", event.tuples)
    field("reason", event.reason)
    field("error", event.error)
    field("tls", event.tls)
    field("suite", event.suite)
    if let resumed = event.resumed {
      key("resumed")
      if resumed { write("true") } else { write("false") }
    }
    write("}\n")
  }

  fileprivate mutating func writeDropped(_ count: Int) {
    write("{\"time\":\"")
    write(rfc3339: WallClock.system.nanoseconds())
    write("\",\"event\":\"dropped\"")
    field("count", count)
    write("}\n")
  }

  private mutating func key(_ name: StaticString) {
    write(",\"")
    write(name)
    write("\":")
  }

  private mutating func field(_ name: StaticString, _ value: Int?) {
    guard let value else { return }
    key(name)
    write(decimal: value)
  }

  private mutating func field(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    // Topics come from strangers' certificates: any text.
    write(jsonString: value, onlyRequired: true)
  }
}

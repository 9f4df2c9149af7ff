import ArgumentParser
import BinaryProtocol
import Dispatch
import MetricsEndpoint
import NIOPosix
import Records
import Synchronization

/// Serves the totals of a decoding to Prometheus while it runs.
final class DecodeMetrics: Sendable {
  private let totals = Mutex(SummaryRecord())
  private let endpoint = Mutex<MetricsEndpoint?>(nil)

  /// Starts to listen. Reports an error and throws an exit code when that fails.
  init(_ address: ListeningAddress) throws {
    let result: Result<MetricsEndpoint, any Error> = Self.wait {
      try await MetricsEndpoint.start(
        host: address.address.host, port: address.address.port, group: MultiThreadedEventLoopGroup.singleton
      ) { [self] in totals.withLock { $0 }.metrics }
    }
    do {
      let endpoint = try result.get()
      self.endpoint.withLock { $0 = endpoint }
      complain("metrics at http://\(endpoint.address)/metrics")
    } catch {
      complain("metrics: \(error)")
      throw ExitStatus.unavailable
    }
  }

  func update(_ summary: SummaryRecord) { totals.withLock { $0 = summary } }

  func stop() {
    guard let endpoint = endpoint.withLock({ $0.take() }) else { return }
    let _: Result<Void, any Error> = Self.wait { await endpoint.stop() }
  }

  /// Waits for an asynchronous call. The reading thread is not in the pool that runs such calls.
  private static func wait<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) -> Result<Value, any Error> {
    let box = Box<Value>()
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      do {
        let value = try await body()
        box.result.withLock { $0 = .success(value) }
      } catch {
        box.result.withLock { $0 = .failure(error) }
      }
      isDone.signal()
    }
    isDone.wait()
    return box.result.withLock { $0 }
  }

  private final class Box<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, any Error>>(.failure(CancellationError()))
  }
}

extension SummaryRecord {
  /// The counts as Prometheus metrics.
  var metrics: [Metric] {
    func counter(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.counter, name, help: help, .integer(count))
    }
    func gauge(_ name: Metric.Name, _ help: String, _ count: Int) -> Metric {
      Metric(.gauge, name, help: help, .integer(count))
    }
    let decided = settled.accepted + settled.rejected + settled.discarded + settled.unknown
    return [
      counter("apnscope_decode_packets_total", "Packets read.", packets),
      counter("apnscope_decode_dropped_packets_total", "Packets that the capture lost.", droppedPackets),
      counter("apnscope_decode_connections_total", "Connections seen.", connections),
      gauge("apnscope_decode_connections_open", "Connections that are open.", connections - endedConnections),
      counter("apnscope_decode_notifications_total", "Notifications decoded.", notifications),
      counter("apnscope_decode_accepted_total", "Notifications proven accepted.", settled.accepted),
      counter("apnscope_decode_rejected_total", "Notifications rejected.", settled.rejected),
      counter("apnscope_decode_discarded_total", "Notifications discarded after an error response.", settled.discarded),
      counter(
        "apnscope_decode_unknown_total", "Notifications whose connection ended without deciding their fate.",
        settled.unknown),
      gauge(
        "apnscope_decode_undecided", "Notifications on open connections whose fate is not decided.",
        max(0, notifications - decided)),
      Metric(
        .counter, "apnscope_decode_error_responses_total", help: "Error responses.",
        samples: errorsByRejection.sorted { $0.key < $1.key }.map {
          .init(labels: ["status": $0.key.key], .integer($0.value))
        }),
      counter("apnscope_decode_feedback_tuples_total", "Feedback tuples decoded.", feedbackTuples),
      counter("apnscope_decode_gaps_total", "Gaps.", gaps),
      counter("apnscope_decode_malformed_total", "Stretches of malformed bytes.", malformed),
      counter(
        "apnscope_decode_undecrypted_connections_total", "TLS connections that could not be decrypted.",
        undecryptedConnections),
    ]
  }
}

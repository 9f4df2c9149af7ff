import DeviceProtocol
import NIOCore
import Synchronization

/// The server of local push, shared by all event loops: every message of a device, and every one for a device, passes here.
///
/// An order goes into the mailbox of its connection's loop under the lock under which it was decided on, so requests reach a
/// connection in the order of their identifiers.
final class LocalPushCenter: Sendable {
  private struct State {
    var server: LocalPushServer
    var mailboxes: [LocalPushMailbox] = []
  }

  private let state: Mutex<State>

  init(_ options: LocalPushService, seed: UInt64, start: Int64) {
    state = Mutex(State(server: LocalPushServer(options, seed: seed, start: start)))
  }

  /// - Parameter mailboxes: where orders go, by the number of their loop.
  func begin(_ mailboxes: [LocalPushMailbox]) { state.withLock { $0.mailboxes = mailboxes } }

  /// Calls a body with the server, and then sends what it has decided.
  @discardableResult
  func use<Result: Sendable>(_ body: (inout LocalPushServer) -> Result) -> Result {
    state.withLock { state in
      let result = body(&state.server)
      for (link, order) in state.server.takeOrders() where link.loop < state.mailboxes.count {
        state.mailboxes[link.loop].put((link.connection, order))
      }
      return result
    }
  }

  /// The counts at a UNIX ns.
  func counts(now: Int64) -> LocalPushServer.Counts {
    use { server in
      server.advance(to: now)
      return server.counts
    }
  }
}

/// The orders for the connections of one event loop.
typealias LocalPushMailbox = Mailbox<(connection: UInt64, order: LocalPushServer.Order)>

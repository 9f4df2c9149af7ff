import COpenSSL
import Synchronization
import TLSFoundation

/// Sessions that a client may resume, by server.
///
/// A ticket of TLS 1.3 is for one connection, so the newest is returned and removed; a session of an earlier version
/// may be reused and stays. Sessions are resumed by connections of the `TLSContext` with which they were made. All
/// event loops may share a cache.
public final class SessionCache: Sendable {
  /// The parameters for which a session may be resumed. A resumed handshake verifies no certificates, so a session with
  /// another identity, name or without verification would bypass the check.
  struct Key: Hashable {
    var context: UInt64
    var verifiedName: String?
    var name: String
  }

  private struct Entry {
    var session: TLSSession
    var isSingleUse: Bool
  }

  private let capacity: Int
  private let sessions = Mutex<[Key: [Entry]]>([:])

  /// Makes an empty cache.
  ///
  /// - Parameter capacity: the most sessions that are kept for each server; the oldest is dropped.
  public init(capacity: Int = 64) { self.capacity = max(1, capacity) }

  /// The number of sessions for all servers together.
  public var count: Int { sessions.withLock { $0.values.reduce(0) { $0 + $1.count } } }

  /// Removes all sessions, so that the next handshakes are full ones.
  public func removeAll() { sessions.withLock { $0 = [:] } }

  func add(_ session: TLSSession, for server: Key) {
    let isSingleUse = session.version >= .tls13
    sessions.withLock { sessions in
      var entries = sessions[server] ?? []
      // The newest session of an earlier version replaces the previous one, as such a session can be reused.
      if !isSingleUse { entries.removeAll { !$0.isSingleUse } }
      entries.append(Entry(session: session, isSingleUse: isSingleUse))
      if entries.count > capacity { entries.removeFirst(entries.count - capacity) }
      sessions[server] = entries
    }
  }

  func take(for server: Key) -> TLSSession? {
    sessions.withLock { sessions in
      guard let last = sessions[server]?.last else { return nil }
      if last.isSingleUse { sessions[server]?.removeLast() }
      return last.session
    }
  }
}

/// One session of a client, complete when it comes here (`SSL_CTX_sess_set_new_cb`).
///
/// `@unchecked Sendable` is valid because no call sets anything in it. The interleavings that were looked at:
/// - Connections of two loops begin with the same session, which those before TLS 1.3 may (`SessionCache.take`):
///   `SSL_set_session` takes a reference, and each handshake reads ticket and secret. A ticket that comes for a
///   session that has one goes into a copy of it.
/// - One begins with it while the connection that it came from still runs, on another loop: that one has its own
///   reference, and sets nothing in a session that it has handed to the callback. It is ended by
///   `SSL_set_shutdown` before `SSL_free` (`TLSConnection.deinit`), so that OpenSSL does not mark it as not resumable.
/// - One is dropped from the cache while a connection has it: `SSL_SESSION_free` counts down atomically.
@safe final class TLSSession: @unchecked Sendable {
  /// The reference is owned by this object.
  let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

  deinit { unsafe SSL_SESSION_free(pointer) }

  var version: TLSVersion {
    TLSVersion(rawValue: UInt16(truncatingIfNeeded: unsafe SSL_SESSION_get_protocol_version(pointer)))
  }
}

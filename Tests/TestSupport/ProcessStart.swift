import Foundation
import Synchronization

extension Process {
  private static let starting = Mutex(())

  /// Starts it while no other is started: what `run` opens for one process would stay open in another.
  public func start() throws { try Self.starting.withLock { _ in try run() } }
}

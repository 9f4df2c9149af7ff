import ArgumentParser
import Reporting

extension Descriptors {
  /// The descriptors of the pipe that each event loop of a load has besides its usual ones.
  private static let perLoadingLoop = 2
  /// An event loop for polls of the feedback service, with a connection to it.
  private static let ofPolls = 4

  /// Throws a usage error if a load needs more file descriptors than this process may open. Raises the soft limit of
  /// open files to the hard limit first.
  static func require(connections: Int, threads: Int, endpoints: Int, pollsFeedback: Bool = false) throws {
    let loops = max(1, min(threads, connections))
    let most =
      Self.connections(threads: loops, endpoints: endpoints) - loops * perLoadingLoop - (pollsFeedback ? ofPolls : 0)
    guard connections > most else { return }
    throw ValidationError(
      "\(counted(connections, "connection")) and what else is open take \(grouped(connections + limit - most)) files at a time, and this process may open \(grouped(limit)). Take fewer connections, or raise the limit before ('ulimit -n', and 'ulimit -Hn' for the hard one)."
    )
  }
}

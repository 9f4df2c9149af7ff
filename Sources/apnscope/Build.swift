import CBuild
import Measurement
import TLSTransport

/// The sources of this build.
extension Apnscope {
  static let version = "0.2.0"

  /// The commit, followed by "+" with uncommitted changes; `nil` if unknown, as in a plain `swift build`.
  static let commit: String? = {
    // Safe: the linker placed a NUL-terminated text there that lives as long as the process, or the symbol is null.
    unsafe apnscope_built_commit().map { unsafe String(cString: $0) }
  }()

  /// The machine and the software of results that this process makes by `command`.
  static func environment(_ command: [String]) -> Environment {
    .current(openssl: TLSContext.libraryVersion, apnscope: version, commit: commit, command: command)
  }
}

import ArgumentParser
import Bytes
import GatewaySimulator
import Glibc
import PacketCapture
import Reporting
import TLSDecryption
import TLSTransport

/// The exit statuses, as in sysexits.h where it defines one.
enum ExitStatus {
  /// A check found a fault: a payload with an error.
  static let faultFound = ExitCode(1)
  static let damaged = ExitCode(65)
  static let cannotOpen = ExitCode(66)
  static let unavailable = ExitCode(69)
  static let brokenBooks = ExitCode(70)
  static let inputOutput = ExitCode(74)
  /// The other side broke its protocol.
  static let protocolError = ExitCode(76)
  static let thresholdFailed = ExitCode(99)
  static let interrupted = ExitCode(130)

  static func code(for error: CaptureError) -> ExitCode {
    switch error.kind {
    case .cannotOpen: cannotOpen
    case .notACapture, .damaged: damaged
    case .readFailed: inputOutput
    case .badFilter: ExitCode(64)
    }
  }

  static func code(for error: SecretsError) -> ExitCode {
    switch error.kind {
    case .cannotOpen: cannotOpen
    case .unusable: damaged
    case .readFailed: inputOutput
    }
  }

  static func code(for error: DevicePopulationError) -> ExitCode {
    switch error.kind {
    case .badShares: ExitCode(64)
    case .cannotRead: cannotOpen
    case .badLine, .tooManyTokens: damaged
    }
  }

  static func code(for error: FeedbackListError) -> ExitCode {
    switch error.kind {
    case .cannotOpen, .inUse: cannotOpen
    case .notAFeedbackList, .unknownVersion: damaged
    case .tooMuchPending, .full, .closed, .failed: inputOutput
    }
  }

  static func code(for error: HistoryError) -> ExitCode {
    switch error.kind {
    case .cannotOpen: cannotOpen
    case .notAHistory, .newerSchema: damaged
    case .locked, .failed: inputOutput
    }
  }

  static func code(for error: TLSError) -> ExitCode {
    switch error.kind {
    case .credentials: damaged
    case .configuration: ExitCode(64)
    case .file, .handshake, .closedDuringHandshake, .record: inputOutput
    }
  }
}

/// Writes one line to standard error. Names in it are untrusted: characters that could steer a terminal are escaped.
func complain(_ text: String) {
  let text = RedactedArguments.redacted(ArgumentBytes.named(text))
  StandardError.write("apnscope: \(ControlCharacters.escaped(text))\n")
}

/// Standard error, unbuffered. Failures are ignored: there is nowhere to report them.
enum StandardError {
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  static func write(_ text: String) {
    let bytes = Array(text.utf8)
    // Safe: the array lives through the call.
    _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }
}

import BinaryProtocol
import Bytes
import Foundation
import TestSupport

/// Frames for clients that are no programs of their own.
enum Frames {
  static let marker: UInt32 = 0xffff_ffff

  /// The token of `Clients/provider.py` with this number.
  static func token(_ number: UInt32) -> [UInt8] {
    Array(repeating: bigEndian(number), count: 8).flatMap { $0 }
  }

  static func framed(
    _ number: UInt32, token: [UInt8]? = nil, payload: String = #"{"aps":{"alert":"Hello"}}"#,
    expiration: UInt32? = 0x7fff_ffff, priority: UInt8? = 10
  ) -> [UInt8] {
    let (token, payload) = (token ?? self.token(number), Array(payload.utf8))
    var writer = ByteWriter(capacity: 256)
    BinaryFrame.encodeFramed(
      token: token.rawBytes, payload: payload.rawBytes, identifier: number,
      expiration: expiration, priority: priority, into: &writer)
    return Array(copying: writer.bytes)
  }

  /// A frame that is known to be bad: its error response proves what came before accepted.
  static var known: [UInt8] { framed(marker, token: [], payload: "") }

  private static func bigEndian(_ number: UInt32) -> [UInt8] {
    stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt32($0)) }
  }

  static func response(_ status: UInt8, _ identifier: UInt32) -> [UInt8] {
    [8, status] + bigEndian(identifier)
  }
}

/// `Clients/provider.py`.
struct PythonProvider {
  struct Sent: Decodable {
    var accepted: [UInt32]
    /// Status by identifier.
    var rejected: [String: Int]
    var shutdowns: [UInt32]
    var written: Int
    var markers: Int
    var connections: Int
  }

  struct Feedback: Decodable {
    var tokens: [String]
    var bytes: Int
    var isWhole: Bool
  }

  static let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/provider.py").path

  let folder: URL

  func send(_ port: Int, _ arguments: String...) throws -> Sent { try run("send", port, arguments) }
  func feedback(_ port: Int, _ arguments: String...) throws -> Feedback { try feedback(port, arguments) }
  func feedback(_ port: Int, _ arguments: [String]) throws -> Feedback { try run("feedback", port, arguments) }

  private func run<Result: Decodable>(_ job: String, _ port: Int, _ arguments: [String]) throws -> Result {
    let process = try RunningProcess(
      "python3", [Self.script, job, "--port", "\(port)", "--identity", "ids"] + arguments, in: folder)
    let outcome = try process.end()
    guard outcome.status == 0 else { throw TimeoutError("provider.py: \(outcome.errors)") }
    return try JSONDecoder().decode(Result.self, from: Data(outcome.output.utf8))
  }

  /// A token of `send` as `feedback` tells it.
  static func token(_ number: Int) -> String { String(repeating: String(format: "%08x", number), count: 8) }
  static func tokens(_ numbers: some Sequence<Int>) -> Set<String> { Set(numbers.map(token)) }
}

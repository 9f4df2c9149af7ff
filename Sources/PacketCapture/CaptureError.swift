/// Why a file could not be opened, or not be read to its end.
public struct CaptureError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Kind: Sendable, Equatable {
    /// The file is missing, is a directory, or may not be read.
    case cannotOpen
    /// The bytes are neither a capture nor a dump.
    case notACapture
    /// A structure in the file contradicts itself; everything before it was read.
    case damaged
    /// The operating system failed while reading.
    case readFailed
    /// The filter expression does not compile.
    case badFilter
  }

  /// The kind of failure.
  public var kind: Kind
  /// One sentence without the file's name, which the caller knows.
  public var message: String

  /// The first bytes of a file that is not a capture, at most `keptLength`, so the caller can recognise it.
  package var beginning: [UInt8]

  package static let keptLength = 4_096

  package init(_ kind: Kind, _ message: String, beginning: [UInt8] = []) {
    self.kind = kind
    self.message = message
    self.beginning = beginning
  }

  /// The message.
  public var description: String { message }
}

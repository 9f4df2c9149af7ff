/// A breach of RFC 9113 or RFC 7541: the rule, and the stream on which it was broken.
public struct Violation: Error, Sendable, Hashable, CustomStringConvertible {
  /// The broken rule.
  public var rule: Rule
  /// The stream of the frame; 0 for the connection.
  public var stream: UInt32

  /// Makes a violation.
  ///
  /// - Parameters:
  ///   - rule: the broken rule.
  ///   - stream: the stream of the frame; 0 for the connection.
  public init(_ rule: Rule, stream: UInt32 = 0) { (self.rule, self.stream) = (rule, stream) }

  /// The error code that the RFC prescribes.
  public var code: ErrorCode { rule.entry.code }

  /// Whether the RFC calls it an error of the stream and not of the connection. A rule that a frame broke on stream 0 is
  /// always one of the connection.
  public var isStreamError: Bool { rule.entry.scope == .stream && stream != 0 }

  /// The rule's section and words, and the stream of a stream error.
  public var description: String { "\(rule)" + (isStreamError ? " (stream \(stream))" : "") }
}

/// The rules that an endpoint can break, each with its section, its words and its error code.
public enum Rule: Error, Sendable, Hashable, CaseIterable, CustomStringConvertible {
  // Frames.
  case connectionPreface, firstFrame
  case frameTooLong, fieldFrameTooLong, frameTooShort
  case dataPadding, headersPadding, pushPromisePadding
  case dataOnConnection, headersOnConnection, priorityOnConnection, resetOnConnection, pushPromiseOnConnection
  case continuationOnConnection, settingsOnStream, pingOnStream, goAwayOnStream
  case prioritySize, resetSize, settingsSize, settingsAcknowledgementSize, pingSize, goAwaySize, windowUpdateSize
  case enablePush, initialWindowSize, maximumFrameSize
  case windowIncrementZero, windowOverflow
  // Streams.
  case pushPromiseFromClient, pushPromiseDisabled
  case blockInterrupted, continuationWithoutBlock
  case idleStream, streamParity, streamNumberNotRising, frameAfterEnd, resetOnIdleStream, windowUpdateOnIdleStream
  case tooManyStreams, windowExceeded, trailersWithoutEnd
  // Limits of the reader that the RFC allows.
  case continuationFlood, blockTooLong, fieldListTooLong
  // Header compression.
  case integerTooLong, integerCut, stringCut, indexZero, indexBeyondTables, sizeUpdateAboveLimit, sizeUpdateLate
  case sizeUpdateMissing, huffmanEndOfString, huffmanPaddingLong, huffmanPaddingBits
  // Messages.
  case fieldNameCharacter, fieldValueCharacter, connectionField, pseudoFieldOrder, pseudoFieldUnknown
  case pseudoFieldMissing, pseudoFieldRepeated, pseudoFieldInTrailers, pathForm, connectFields, statusMissing
  case contentLength

  /// Whether a request or an answer that breaks it is malformed (RFC 9113 8.1.1).
  package var isOfMessages: Bool {
    switch self {
    case .fieldNameCharacter, .fieldValueCharacter, .connectionField, .pseudoFieldOrder, .pseudoFieldUnknown,
      .pseudoFieldMissing, .pseudoFieldRepeated, .pseudoFieldInTrailers, .pathForm, .connectFields, .statusMissing,
      .contentLength:
      true
    default: false
    }
  }

  /// Whether a block that breaks it cannot be decoded to its end, so that entries of the table are lost.
  var losesTable: Bool { entry.code == .compressionError && self != .sizeUpdateMissing }

  enum Scope { case connection, stream }

  typealias Entry = (code: ErrorCode, scope: Scope, section: String, words: String)

  /// The section of the RFC, such as `RFC 9113 6.5.2`.
  public var section: String { entry.section }
  /// The rule, or its breach, in a few words.
  public var words: String { entry.words }
  /// The words and the section, such as `PING is not 8 bytes long, RFC 9113 6.7`.
  public var description: String { "\(words), \(section)" }

  var entry: Entry {
    switch self {
    case .connectionPreface: (.protocolError, .connection, "RFC 9113 3.4", "the connection preface is missing")
    case .firstFrame: (.protocolError, .connection, "RFC 9113 3.4", "the first frame is not SETTINGS")
    case .frameTooLong: (.frameSizeError, .stream, "RFC 9113 4.2", "a frame is longer than SETTINGS_MAX_FRAME_SIZE")
    case .fieldFrameTooLong:
      (.frameSizeError, .connection, "RFC 9113 4.2", "a frame is longer than SETTINGS_MAX_FRAME_SIZE")
    case .frameTooShort:
      (.frameSizeError, .connection, "RFC 9113 4.2", "a frame is too short for its mandatory fields")
    case .dataPadding:
      (.protocolError, .connection, "RFC 9113 6.1", "the padding of DATA is as long as the payload, or longer")
    case .headersPadding:
      (.protocolError, .connection, "RFC 9113 6.2", "the padding of HEADERS leaves no room for the field block")
    case .pushPromisePadding:
      (.protocolError, .connection, "RFC 9113 6.6", "the padding of PUSH_PROMISE leaves no room for the field block")
    case .dataOnConnection: (.protocolError, .connection, "RFC 9113 6.1", "DATA on stream 0")
    case .headersOnConnection: (.protocolError, .connection, "RFC 9113 6.2", "HEADERS on stream 0")
    case .priorityOnConnection: (.protocolError, .connection, "RFC 9113 6.3", "PRIORITY on stream 0")
    case .resetOnConnection: (.protocolError, .connection, "RFC 9113 6.4", "RST_STREAM on stream 0")
    case .pushPromiseOnConnection: (.protocolError, .connection, "RFC 9113 6.6", "PUSH_PROMISE on stream 0")
    case .continuationOnConnection: (.protocolError, .connection, "RFC 9113 6.10", "CONTINUATION on stream 0")
    case .settingsOnStream: (.protocolError, .connection, "RFC 9113 6.5", "SETTINGS on a stream other than 0")
    case .pingOnStream: (.protocolError, .connection, "RFC 9113 6.7", "PING on a stream other than 0")
    case .goAwayOnStream: (.protocolError, .connection, "RFC 9113 6.8", "GOAWAY on a stream other than 0")
    case .prioritySize: (.frameSizeError, .stream, "RFC 9113 6.3", "PRIORITY is not 5 bytes long")
    case .resetSize: (.frameSizeError, .connection, "RFC 9113 6.4", "RST_STREAM is not 4 bytes long")
    case .settingsSize:
      (.frameSizeError, .connection, "RFC 9113 6.5", "the length of SETTINGS is no multiple of 6 bytes")
    case .settingsAcknowledgementSize:
      (.frameSizeError, .connection, "RFC 9113 6.5", "an acknowledgement of SETTINGS has a payload")
    case .pingSize: (.frameSizeError, .connection, "RFC 9113 6.7", "PING is not 8 bytes long")
    case .goAwaySize: (.frameSizeError, .connection, "RFC 9113 6.8", "GOAWAY is shorter than 8 bytes")
    case .windowUpdateSize: (.frameSizeError, .connection, "RFC 9113 6.9", "WINDOW_UPDATE is not 4 bytes long")
    case .enablePush:
      (.protocolError, .connection, "RFC 9113 6.5.2", "SETTINGS_ENABLE_PUSH is neither 0 nor 1")
    case .initialWindowSize:
      (.flowControlError, .connection, "RFC 9113 6.5.2", "SETTINGS_INITIAL_WINDOW_SIZE is above 2147483647")
    case .maximumFrameSize:
      (.protocolError, .connection, "RFC 9113 6.5.2", "SETTINGS_MAX_FRAME_SIZE is not in 16384 to 16777215")
    case .windowIncrementZero: (.protocolError, .stream, "RFC 9113 6.9", "WINDOW_UPDATE with an increment of 0")
    case .windowOverflow: (.flowControlError, .stream, "RFC 9113 6.9.1", "a window grows above 2147483647")

    case .pushPromiseFromClient: (.protocolError, .connection, "RFC 9113 8.4", "PUSH_PROMISE from the client")
    case .pushPromiseDisabled:
      (.protocolError, .connection, "RFC 9113 6.6", "PUSH_PROMISE though SETTINGS_ENABLE_PUSH is 0")
    case .blockInterrupted:
      (.protocolError, .connection, "RFC 9113 6.10", "another frame within the frames of a field block")
    case .continuationWithoutBlock:
      (.protocolError, .connection, "RFC 9113 6.10", "CONTINUATION without a field block that it continues")
    case .idleStream: (.protocolError, .connection, "RFC 9113 5.1", "a frame on an idle stream")
    case .streamParity:
      (.protocolError, .connection, "RFC 9113 5.1.1", "a stream with the number of the other endpoint's streams")
    case .streamNumberNotRising:
      (.protocolError, .connection, "RFC 9113 5.1.1", "a new stream's number is not above those of earlier streams")
    case .frameAfterEnd: (.streamClosed, .stream, "RFC 9113 5.1", "a frame after END_STREAM")
    case .resetOnIdleStream: (.protocolError, .connection, "RFC 9113 6.4", "RST_STREAM on an idle stream")
    case .windowUpdateOnIdleStream:
      (.protocolError, .connection, "RFC 9113 5.1", "WINDOW_UPDATE on an idle stream")
    case .tooManyStreams:
      (.protocolError, .stream, "RFC 9113 5.1.2", "more streams than SETTINGS_MAX_CONCURRENT_STREAMS allows")
    case .windowExceeded:
      (.flowControlError, .stream, "RFC 9113 6.9.1", "more DATA than the flow-control window allows")
    case .trailersWithoutEnd: (.protocolError, .stream, "RFC 9113 8.1", "trailers without END_STREAM")

    case .continuationFlood: (.enhanceYourCalm, .connection, "RFC 9113 10.5", "too many CONTINUATION frames")
    case .blockTooLong: (.enhanceYourCalm, .connection, "RFC 9113 10.5.1", "a field block above the limit")
    case .fieldListTooLong: (.enhanceYourCalm, .connection, "RFC 9113 10.5.1", "a field section above the limit")

    case .integerTooLong: (.compressionError, .connection, "RFC 7541 5.1", "an integer is too large or too long")
    case .integerCut: (.compressionError, .connection, "RFC 7541 5.1", "an integer is cut off by the block's end")
    case .stringCut: (.compressionError, .connection, "RFC 7541 5.2", "a string extends past the block's end")
    case .indexZero: (.compressionError, .connection, "RFC 7541 6.1", "index 0")
    case .indexBeyondTables: (.compressionError, .connection, "RFC 7541 2.3.3", "an index beyond the tables")
    case .sizeUpdateAboveLimit:
      (.compressionError, .connection, "RFC 7541 6.3", "a table size above SETTINGS_HEADER_TABLE_SIZE")
    case .sizeUpdateLate:
      (.compressionError, .connection, "RFC 7541 4.2", "a table size update after a field of the block")
    case .sizeUpdateMissing:
      (.compressionError, .connection, "RFC 7541 4.2", "no table size update after the limit was lowered")
    case .huffmanEndOfString:
      (.compressionError, .connection, "RFC 7541 5.2", "the EOS symbol in a Huffman-coded string")
    case .huffmanPaddingLong: (.compressionError, .connection, "RFC 7541 5.2", "Huffman padding longer than 7 bits")
    case .huffmanPaddingBits:
      (.compressionError, .connection, "RFC 7541 5.2", "Huffman padding other than the first bits of EOS")

    case .fieldNameCharacter:
      (.protocolError, .stream, "RFC 9113 8.2.1", "an upper-case or other invalid character in a field name")
    case .fieldValueCharacter: (.protocolError, .stream, "RFC 9113 8.2.1", "an invalid character in a field value")
    case .connectionField: (.protocolError, .stream, "RFC 9113 8.2.2", "a connection-specific field")
    case .pseudoFieldOrder: (.protocolError, .stream, "RFC 9113 8.3", "a pseudo-field after a regular field")
    case .pseudoFieldUnknown: (.protocolError, .stream, "RFC 9113 8.3", "an undefined pseudo-field")
    case .pseudoFieldMissing:
      (.protocolError, .stream, "RFC 9113 8.3.1", "a request without :method, :scheme or :path")
    case .pseudoFieldRepeated: (.protocolError, .stream, "RFC 9113 8.3", "a repeated pseudo-field")
    case .pseudoFieldInTrailers: (.protocolError, .stream, "RFC 9113 8.1", "a pseudo-field in trailers")
    case .pathForm:
      (.protocolError, .stream, "RFC 9113 8.3.1", "a :path that does not begin with a slash")
    case .connectFields:
      (.protocolError, .stream, "RFC 9113 8.5", "CONNECT with :scheme or :path, or without :authority")
    case .statusMissing: (.protocolError, .stream, "RFC 9113 8.3.2", "a response without a valid :status")
    case .contentLength:
      (.protocolError, .stream, "RFC 9113 8.1.1", "content-length differs from the length of the content")
    }
  }
}

import BinaryProtocol
import Bytes

/// The parts that all notifications of a workload share, prepared once: the words of a frame of command 2 that has every
/// item and a payload of letters. Notifications differ in token, size, letters and identifier.
///
/// ```
/// 02 length 01 length  token  02 size {"aps":{"alert":"letters  "}} 03 0004 id 04 0004 expiration 05 0001 priority
/// └───── head ──────┘         └ opening ┘└───── body ─────────┘  └──────── ending: two words and five bytes ─────┘
/// ```
struct FrameTemplate: ~Copyable, Sendable {
  /// Workloads with longer payloads have no template, because it keeps a body for each place of the alphabet.
  private static let longest = 4_096
  /// Bytes of the payload's opening in the word that has the payload's size.
  private static let inWord = 5

  private let head: UInt64
  private let opening: UInt64
  private let ending: UInt64
  private let expirationWord: UInt64
  private let priorityWord: UInt32
  private let priority: UInt8
  /// The rest of the opening and the letters of the longest payload, once for each place of the alphabet at which letters
  /// may begin.
  private let bodies: [UInt8]
  private let stride: Int
  private let tokenLength: Int

  /// - Parameter longest: bytes of the longest payload; `nil` is returned when the template would be too large.
  init?(longest: Int, tokenLength: Int, expiration: UInt32, priority: UInt8) {
    guard longest <= Self.longest else { return nil }
    self.tokenLength = tokenLength
    self.priority = priority
    var words = ByteWriter(capacity: 64)
    BinaryFrame.writeFrameHeader(length: 5 * FrameItem.headerLength + tokenLength + 4 + 4 + 1, into: &words)
    BinaryFrame.writeItemHeader(.deviceToken, length: tokenLength, into: &words)
    head = words.bytes.uint64(at: 0)
    words.removeAll()
    BinaryFrame.writeItemHeader(.payload, length: 0, into: &words)
    words.write(PayloadMaker.opening)
    opening = words.bytes.uint64(at: 0)
    let body = FrameItem.headerLength + Self.inWord..<words.count
    var bodies = ByteWriter()
    for place in 0..<PayloadMaker.places {
      bodies.write(words.bytes.extracting(body))
      for letter in 0..<longest - PayloadMaker.shortest { bodies.write(PayloadMaker.letter(place + letter)) }
    }
    stride = bodies.count / PayloadMaker.places
    self.bodies = Array(copying: bodies.bytes)
    words.removeAll()
    words.write(PayloadMaker.closing)
    BinaryFrame.writeItemHeader(.notificationIdentifier, length: 4, into: &words)
    words.write(bigEndian: UInt32(0))
    BinaryFrame.writeItemHeader(.expiration, length: 4, into: &words)
    words.write(bigEndian: expiration)
    BinaryFrame.writeItemHeader(.priority, length: 1, into: &words)
    ending = words.bytes.uint64(at: 0)
    expirationWord = words.bytes.uint64(at: 8)
    priorityWord = words.bytes.uint32(at: 16)
  }

  /// - Parameters:
  ///   - size: bytes of the payload, at most `longest`.
  ///   - token: writes the token.
  @inline(__always)
  borrowing func write(
    size: Int, _ random: NotificationRandom, identifier: UInt32, into output: inout ByteWriter,
    token: (inout ByteWriter) -> Void
  ) {
    output.reserve(64 + tokenLength + size)
    output.write(bigEndian: head &+ UInt64(truncatingIfNeeded: size) << 24)
    token(&output)
    output.write(bigEndian: opening | UInt64(truncatingIfNeeded: size) << 40)
    let start = stride * PayloadMaker.place(random)
    output.write(bodies.rawBytes.extracting(start..<start + size - PayloadMaker.shortest + Self.restOfOpening))
    output.write(bigEndian: ending | UInt64(identifier >> 16))
    output.write(bigEndian: expirationWord | UInt64(identifier) << 48)
    output.write(bigEndian: priorityWord)
    output.write(priority)
  }

  private static let restOfOpening = PayloadMaker.opening.utf8CodeUnitCount - inWord
}

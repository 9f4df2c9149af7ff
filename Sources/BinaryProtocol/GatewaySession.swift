import Bytes
import PushModel

/// The protocol rules of one connection on the gateway's side: which notifications are accepted, which one is rejected,
/// the answer, and which are discarded after it.
///
/// A plain value without I/O, clock or randomness. It receives bytes as they arrive, and returns the required action as
/// an `Ending`. Notifications are numbered from 0 in the order they arrive.
///
/// The rules (Apple's guide of 2015-09-16, and what servers were seen to do):
/// - nothing is answered for an accepted notification;
/// - a refused one is answered with its status and identifier, and the connection is closed; everything after it is
///   never decoded, only counted;
/// - a notification without an identifier cannot be named: with command 0 there is no answer, only the close, and a
///   frame without item 3 is named 0;
/// - a shutdown names the last accepted notification, or 0;
/// - bytes that are not a frame are answered with status 128, or not at all, depending on `Rules.answersMalformed`.
public struct GatewaySession: Sendable {
  /// The limits of a gateway, which depend on the year and the certificate.
  public struct Rules: Sendable, Equatable {
    /// The rules for all pushes: a token of another length is rejected with status 5, a longer payload with 7, and a
    /// push with nothing to show and priority 10 with 1.
    public var push: PushRules
    /// Answer bytes that are not a frame with 128 (the guide of 2018), or just close (observed).
    public var answersMalformed: Bool
    /// Lengths above which bytes are not a frame. Tokens of any length are parsed, so that a token of invalid size gets
    /// status 5 with commands 0 and 1, as with command 2.
    public var limits: ProtocolLimits

    /// Makes the rules of a gateway. The defaults are those documented in 2015, but malformed bytes are answered as
    /// documented in 2018.
    ///
    /// - Parameters:
    ///   - tokenLengths: the lengths in bytes that a token may have.
    ///   - maximumPayloadLength: the longest payload in bytes.
    ///   - checksPriority: whether to reject a push with priority 10 and nothing to show.
    ///   - answersMalformed: whether bytes that are not a frame are answered with status 128.
    ///   - limits: lengths above which bytes are not a frame.
    public init(
      tokenLengths: ClosedRange<Int> = 32...32, maximumPayloadLength: Int = 2_048, checksPriority: Bool = true,
      answersMalformed: Bool = true, limits: ProtocolLimits = ProtocolLimits(maximumTokenLength: 65_535)
    ) {
      push = PushRules(
        tokenLengths: tokenLengths, maximumPayloadLength: maximumPayloadLength, checksPriority: checksPriority)
      self.answersMalformed = answersMalformed
      self.limits = limits
    }
  }

  /// The reason why the gateway closes, and its last response.
  public struct Ending: Sendable, Equatable {
    /// The reason for the end.
    public enum Cause: Sendable, Equatable {
      /// A notification was rejected.
      case rejected
      /// `shutDown()` was called, or `shutdownAfter` was reached.
      case shutdown
      /// Bytes that are not a frame, or items that extend past the end of their frame.
      case malformed(ParseError)
    }

    /// The reason why the gateway closes.
    public var cause: Cause
    /// The status, even if no response is sent.
    public var status: ErrorResponse.Status
    /// The notification that `status` concerns: the rejected one or, in a shutdown, the last accepted one.
    public var notification: Int?
    /// The identifier of that notification; `nil` if it has none.
    public var identifier: UInt32?
    /// The response to send; `nil` to close without one.
    public var response: ErrorResponse?

    package init(
      cause: Cause, status: ErrorResponse.Status, notification: Int?, identifier: UInt32?, response: ErrorResponse?
    ) {
      (self.cause, self.status, self.notification) = (cause, status, notification)
      (self.identifier, self.response) = (identifier, response)
    }
  }

  private enum State: Sendable, Equatable {
    case open
    /// A notification was rejected, or the connection is shutting down: frames are counted and not decoded.
    case discarding
    /// No further frame can be found.
    case lost
  }

  /// The limits of the gateway.
  public let rules: Rules
  /// The status with which every notification is rejected: the provider's certificate names no topic, or one of invalid
  /// size.
  public let standing: ErrorResponse.Status?
  /// The number of accepted notifications after which the gateway shuts the connection down.
  public var shutdownAfter = Int.max

  /// The number of notifications that arrived: `received = accepted + rejected + discarded`.
  public private(set) var received = 0
  /// The number of accepted notifications.
  public private(set) var accepted = 0
  /// The number of rejected notifications, 0 or 1.
  public private(set) var rejected = 0
  /// The number of notifications that arrived after the end.
  public private(set) var discarded = 0
  /// The number of bytes consumed so far, of any kind.
  public private(set) var bytes = 0
  /// How the gateway ended the connection; `nil` while it is open.
  public private(set) var ending: Ending?

  /// Whether the gateway has ended the connection because of a frame that it could delimit: a rejected notification, or
  /// items that do not fit their frame.
  package var hasRejectedFrame: Bool {
    switch ending?.cause {
    case .rejected: true
    case .malformed: state != .lost
    case .shutdown, nil: false
    }
  }

  private var state = State.open
  private var lastAccepted: UInt32?

  /// Makes the session of a new connection.
  ///
  /// - Parameters:
  ///   - rules: the limits of the gateway.
  ///   - standing: a status with which every notification is rejected, for a faulty certificate; `nil` for none.
  public init(rules: Rules = Rules(), standing: ErrorResponse.Status? = nil) {
    self.rules = rules
    self.standing = standing
  }

  /// Receives the next bytes, and returns the number of bytes consumed: all complete frames.
  ///
  /// Pass the rest again, together with the following bytes. At most one frame is left over, so at most
  /// `limits.maximumFrameLength + 5` bytes (command 0 or 1: the lengths of token and payload and 13). Check `ending`
  /// afterwards.
  ///
  /// - Parameters:
  ///   - input: the bytes that were not consumed before, and the following ones.
  ///   - decide: returns why a valid notification is rejected, or `nil` to accept it. Called once for each
  ///     notification, however the bytes are split. Statuses 0 and 10 accept and must not be returned.
  /// - Complexity: O(*f*) in the number of frames, except for payloads that may be silent, which are scanned. Nothing
  ///   is allocated or copied.
  @inlinable
  public mutating func receive(
    _ input: RawSpan, decide: (borrowing Push) -> Rejection?
  ) -> Int {
    if !isOpen { return discard(input, from: 0) }
    // Counters of the loop are local variables: properties of the value would be written for every notification.
    var offset = 0
    var count = accepted
    var last: UInt32? = nil
    var verdict: Verdict? = nil
    let (rules, end) = (self.rules, shutdownAfter)
    frames: while offset < input.byteCount && count < end {
      switch BinaryFrame.extent(of: input, at: offset, limits: rules.limits) {
      case .incomplete: break frames
      case .malformed(let error):
        // Command 1 has its identifier in front of the lengths, so it was read before they were found wrong.
        let isThere = input.byte(at: offset) == 1 && input.byteCount - offset >= BinaryFrame.Offsets.expiration
        let identifier = isThere ? input.uint32(at: offset + BinaryFrame.Offsets.identifier) : nil
        verdict = .unframed(error, identifier: identifier)
        break frames
      case .complete(let length):
        let frame = input.extracting(offset..<offset + length)
        offset += length
        let fields: PushFields
        do throws(ParseError) {
          fields = try PushFields(parsing: frame)
        } catch {
          // The identifier's item may be among those that fit.
          verdict = .malformed(error, identifier: PushFields(fitting: frame).identifier)
          break frames
        }
        let notification = Push(fields, frame)
        let status =
          rules.push.fault(of: notification).map(ErrorResponse.Status.init) ?? standing
          ?? decide(notification)?.status
        if let status {
          verdict = .rejected(status, fields.command, fields.identifier)
          break frames
        }
        count += 1
        last = fields.identifier
      }
    }
    settle(count, last, consumed: offset, verdict)
    return isOpen ? offset : discard(input, from: offset)
  }

  @usableFromInline
  enum Verdict {
    case rejected(ErrorResponse.Status, BinaryCommand, UInt32?)
    case malformed(ParseError, identifier: UInt32?)
    case unframed(ParseError, identifier: UInt32?)
  }

  @usableFromInline var isOpen: Bool { state == .open }

  /// Shuts the connection down for maintenance: names the last accepted notification and discards later ones.
  public mutating func shutDown() {
    guard isOpen else { return }
    end(
      Ending(
        cause: .shutdown, status: .shutdown, notification: accepted == 0 ? nil : accepted - 1,
        identifier: lastAccepted,
        response: ErrorResponse(status: .shutdown, identifier: lastAccepted ?? 0)))
  }

  // MARK: out of the loop

  @usableFromInline @inline(never)
  mutating func settle(_ count: Int, _ last: UInt32?, consumed: Int, _ verdict: Verdict?) {
    if count > accepted { lastAccepted = last }
    received += count - accepted
    accepted = count
    bytes += consumed
    guard let verdict else {
      if accepted >= shutdownAfter { shutDown() }
      return
    }
    received += 1
    rejected = 1
    let index = received - 1
    switch verdict {
    case .rejected(let status, let command, let identifier):
      // Command 0 has no identifier to be named by.
      let response = command == .simple ? nil : ErrorResponse(status: status, identifier: identifier ?? 0)
      end(
        Ending(cause: .rejected, status: status, notification: index, identifier: identifier, response: response))
    case .malformed(let error, let identifier):
      end(malformed: error, index, identifier)
    case .unframed(let error, let identifier):
      end(malformed: error, index, identifier)
      state = .lost
    }
  }

  private mutating func end(malformed error: ParseError, _ index: Int, _ identifier: UInt32?) {
    let response = ErrorResponse(status: .protocolError, identifier: identifier ?? 0)
    end(
      Ending(
        cause: .malformed(error), status: .protocolError, notification: index, identifier: identifier,
        response: rules.answersMalformed ? response : nil))
  }

  private mutating func end(_ ending: Ending) {
    self.ending = ending
    state = .discarding
  }

  /// Counts the frames after the end, and returns the offset up to which `input` was consumed.
  @usableFromInline @inline(never)
  mutating func discard(_ input: RawSpan, from start: Int) -> Int {
    var offset = start
    while state == .discarding && offset < input.byteCount {
      switch BinaryFrame.extent(of: input, at: offset, limits: rules.limits) {
      case .complete(let length):
        offset += length
        received += 1
        discarded += 1
        continue
      case .incomplete: break
      case .malformed: state = .lost
      }
      break
    }
    if state == .lost { offset = input.byteCount }
    bytes += offset - start
    return offset
  }
}

extension BinaryStatus {
  /// The status with which a gateway answers a fault.
  @inlinable
  public init(_ fault: PushFault) {
    switch fault {
    case .missingToken: self.init(rawValue: 2)
    case .missingPayload: self.init(rawValue: 4)
    case .tokenSize: self.init(rawValue: 5)
    case .payloadSize: self.init(rawValue: 7)
    case .silentAtOnce: self.init(rawValue: 1)
    }
  }
}

import BinaryProtocol
import Bytes
import PushModel
import TestSupport

/// One connection between a provider and a gateway in memory. Chance decides when each side acts, how bytes are split
/// under way, and how the connection fails; the seed decides chance.
struct SimulatedConnection {
  /// What goes wrong on the way.
  enum Fault: Equatable {
    case none
    /// The path to the gateway dies behind this many bytes; the provider sees a reset some time later.
    case upstream(after: Int)
    /// The answer gets no further than this many bytes, followed by a FIN or a reset.
    case downstream(after: Int, isReset: Bool)
    /// The gateway closes behind this many bytes without a word.
    case silentClose(after: Int)
  }

  /// How the gateway is disposed on this connection.
  struct Gateway {
    var shutdownAfter = Int.max
    /// Asked at every step: the gateway is told to go away.
    var shutdownChance: Int?
    /// Reads and counts until the provider is gone. If not, it closes with its answer, and bytes that come later cause a
    /// reset, which destroys what the provider has not read.
    var lingers = true
    var answersMalformed = true
  }

  let fault: Fault
  let gateway: Gateway
  private(set) var talk: GatewaySession
  /// The provider's view.
  private(set) var session = BinarySession()
  private(set) var verdict: BinarySession.Naming?
  private(set) var status: ErrorResponse.Status?
  /// Something was lost or destroyed on the way.
  private(set) var hasLost = false
  /// Bytes the gateway was given, and what of them it has not consumed.
  private(set) var delivered = 0
  private(set) var rest: [UInt8] = []
  /// Texts of the payloads that the gateway was asked about, in order.
  private(set) var asked: [String] = []
  /// The provider knows that the connection is over.
  private(set) var isOver = false

  // Under way in both directions, and what the provider has in its socket or half of an answer.
  private var up: [UInt8] = []
  private var down: [UInt8] = []
  private var sentDown = 0
  private var unread: [UInt8] = []
  private var answer: [UInt8] = []
  private var providerFinished = false
  private var gatewayFinished = false
  private var gatewayClosed = false
  private var resetIsComing = false

  init(fault: Fault, gateway: Gateway) {
    self.fault = fault
    self.gateway = gateway
    talk = GatewaySession(rules: .init(answersMalformed: gateway.answersMalformed))
    talk.shutdownAfter = gateway.shutdownAfter
  }

  // MARK: the provider's acts

  mutating func write(_ frame: [UInt8], identifier: UInt32?, isKnownBad: Bool) {
    up += frame
    _ = session.write(identifier: identifier, isKnownBad: isKnownBad)
  }

  /// - Parameter identifier: when it stands before what does not fit.
  mutating func write(malformed frame: [UInt8], identifier: UInt32?) {
    up += frame
    _ = session.write(malformedWith: identifier)
  }

  /// The provider's session counts them as a notification, as the simulation does.
  mutating func write(unreadable bytes: [UInt8]) {
    up += bytes
    session.noteUnreadableBytes()
    _ = session.write(identifier: nil, isKnownBad: false)
  }

  /// The provider has nothing more to write on this connection: it closes its side.
  mutating func finishWriting() { providerFinished = true }

  private mutating func read(_ count: Int) {
    answer += unread.prefix(count)
    unread.removeFirst(min(count, unread.count))
    var offset = 0
    if let response = try? ErrorResponse(parsing: answer.rawBytes, at: &offset) {
      verdict = session.receive(response)
      status = response.status
      isOver = true
    } else if unread.isEmpty && down.isEmpty && gatewayFinished {
      isOver = true
    }
  }

  // MARK: everything else

  /// Lets something happen: bytes move, the gateway acts, a reset arrives.
  mutating func step(_ random: inout SeededGenerator, judge: (String) -> ErrorResponse.Status?) {
    switch random.number(0...5) {
    case 0, 1: deliverUp(random.number(1...random.pick([3, 60, 2_000])), judge)
    case 2: if let chance = gateway.shutdownChance, random.happens(oneIn: chance), !gatewayClosed { talk.shutDown() }
    case 3: endGateway()
    case 4: deliverDown(random.number(1...4))
    default:
      if resetIsComing && random.happens(oneIn: 3) {
        if !(unread.isEmpty && down.isEmpty) { hasLost = true }
        unread = []
        down = []
        isOver = true
      } else {
        read(random.number(1...6))
      }
    }
  }

  /// What is still under way reaches a gateway that reads to the end.
  mutating func settle(judge: (String) -> ErrorResponse.Status?) {
    while !up.isEmpty { deliverUp(up.count, judge) }
  }

  private mutating func deliverUp(_ count: Int, _ judge: (String) -> ErrorResponse.Status?) {
    var piece = Array(up.prefix(count))
    up.removeFirst(piece.count)
    if gatewayClosed {
      guard !piece.isEmpty else { return }
      hasLost = true
      resetIsComing = true
      return
    }
    switch fault {
    case .upstream(let limit) where delivered + piece.count > limit,
      .silentClose(let limit) where delivered + piece.count > limit:
      piece = Array(piece.prefix(max(0, limit - delivered)))
      receive(piece, judge)
      hasLost = true
      gatewayClosed = true
      if case .upstream = fault { resetIsComing = true } else { gatewayFinished = true }
    default: receive(piece, judge)
    }
  }

  private mutating func receive(_ piece: [UInt8], _ judge: (String) -> ErrorResponse.Status?) {
    rest += piece
    delivered += piece.count
    var texts: [String] = []
    let input = rest
    let consumed = talk.receive(input.rawBytes) { notification in
      let text = String(decoding: Array(copying: notification.payload), as: UTF8.self)
      texts.append(text)
      return judge(text).map(Rejection.status)
    }
    asked += texts
    rest.removeFirst(consumed)
  }

  /// The gateway answers and closes when its rules say so, and closes when the provider has.
  private mutating func endGateway() {
    guard !gatewayFinished && !gatewayClosed else { return }
    if let ending = talk.ending {
      if let response = ending.response { down += written { response.encode(into: &$0) } }
      gatewayFinished = true
      gatewayClosed = !gateway.lingers
    } else if providerFinished && up.isEmpty {
      gatewayFinished = true
      gatewayClosed = true
    }
  }

  private mutating func deliverDown(_ count: Int) {
    var piece = Array(down.prefix(count))
    down.removeFirst(piece.count)
    if case .downstream(let limit, let isReset) = fault, sentDown + piece.count > limit {
      piece = Array(piece.prefix(max(0, limit - sentDown)))
      down = []
      hasLost = true
      if isReset { resetIsComing = true }
    }
    sentDown += piece.count
    unread += piece
  }
}

import Bytes
import TLSDecryption
import TestSupport

/// What one direction of a `TLSStream` gave out.
struct Output: Equatable {
  enum Piece: Equatable {
    case bytes([UInt8])
    case gap(Int, PlaintextGapReason)
  }

  var pieces: [Piece] = []
  var ends = 0
  /// Offsets that did not follow from what came before.
  var wrongOffsets = 0
  private var next = 0

  var plaintext: [UInt8] {
    pieces.flatMap { piece in
      if case .bytes(let bytes) = piece { bytes } else { [UInt8]() }
    }
  }
  var gaps: [(length: Int, reason: PlaintextGapReason)] {
    pieces.compactMap { piece in
      if case .gap(let length, let reason) = piece { (length, reason) } else { nil }
    }
  }
  /// The bytes with the offsets they were given out at.
  var placed: [(offset: Int, bytes: [UInt8])] {
    var offset = 0
    var result: [(Int, [UInt8])] = []
    for piece in pieces {
      switch piece {
      case .bytes(let bytes):
        result.append((offset, bytes))
        offset += bytes.count
      case .gap(let length, _): offset += length
      }
    }
    return result
  }

  mutating func add(_ event: borrowing PlaintextEvent, at offset: Int) {
    if offset != next || ends > 0 { wrongOffsets += 1 }
    switch event {
    case .bytes(let bytes):
      pieces.append(.bytes(Array(copying: bytes)))
      next += bytes.byteCount
    case .gap(let length, let reason):
      pieces.append(.gap(length, reason))
      next += length
    case .end: ends += 1
    }
  }
}

extension TLSSide {
  init(_ side: RecordedConversation.Side) { self = side == .client ? .client : .server }
}

/// Something that a direction carried, as a capture has it.
enum Arrival {
  case bytes(RecordedConversation.Side, [UInt8])
  case gap(RecordedConversation.Side, Int)
  case end(RecordedConversation.Side)
}

/// A conversation read by a `TLSStream`.
struct StreamRun {
  var client = Output()
  var server = Output()
  var summary = TLSSummary()
  var exportedKeys: [String] = []

  func output(_ side: RecordedConversation.Side) -> Output { side == .client ? client : server }

  init(
    _ arrivals: [Arrival], secrets: Secrets, limits: TLSLimits = TLSLimits(), pieceLength: Int = .max
  ) {
    var used: [String] = []
    secrets.onUse = { used.append($0) }
    let stream = TLSStream(secrets: secrets, limits: limits)
    var packet = 0
    var client = Output()
    var server = Output()
    func take(_ event: borrowing PlaintextEvent, _ side: TLSSide, _ offset: Int, _: CapturePoint) {
      if side == .client { client.add(event, at: offset) } else { server.add(event, at: offset) }
    }
    for arrival in arrivals {
      packet += 1
      let point = CapturePoint(time: Int64(packet), packet: packet)
      switch arrival {
      case .bytes(let side, let bytes):
        var offset = 0
        while offset < bytes.count {
          let count = min(pieceLength, bytes.count - offset)
          stream.receive(bytes.rawBytes.extracting(offset..<offset + count), from: TLSSide(side), at: point) {
            take($0, $1, $2, $3)
          }
          offset += count
        }
      case .gap(let side, let length):
        stream.gap(length: length, reason: .lost, from: TLSSide(side), at: point) { take($0, $1, $2, $3) }
      case .end(let side): stream.end(from: TLSSide(side), at: point) { take($0, $1, $2, $3) }
      }
    }
    stream.finish(at: CapturePoint(time: Int64(packet), packet: packet)) { take($0, $1, $2, $3) }
    self.client = client
    self.server = server
    summary = stream.summary
    exportedKeys = used
    secrets.onUse = nil
  }

  /// Reads a whole conversation with its own key log.
  init(_ recorded: RecordedConversation, pieceLength: Int = .max, limits: TLSLimits = TLSLimits()) {
    self.init(
      recorded.arrivals, secrets: Secrets(keyLog: recorded.keyLogText), limits: limits, pieceLength: pieceLength)
  }
}

extension RecordedConversation {
  var arrivals: [Arrival] { steps.map { .bytes($0.side, $0.bytes) } }
}

extension Secrets {
  convenience init(keyLog: String, limits: TLSLimits = TLSLimits()) {
    self.init(limits: limits)
    add(KeyLog(Array(keyLog.utf8), maximumLines: 1_000_000))
  }
}

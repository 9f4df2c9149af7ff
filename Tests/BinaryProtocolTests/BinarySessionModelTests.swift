import BinaryProtocol
import PushModel
import TestSupport
import Testing

/// The rules of `BinarySession` said in the plainest way: one fate per notification, the list searched from the end.
struct SessionModel {

  private struct Entry {
    var identifier: UInt32?
    var isKnownBad: Bool
    var fate: Fate
  }

  private var entries: [Entry] = []
  private var isTerminated = false
  private(set) var unresolved = 0

  mutating func write(identifier: UInt32?, isKnownBad: Bool) {
    entries.append(
      Entry(identifier: identifier, isKnownBad: isKnownBad, fate: isTerminated ? .discarded : .unknown))
  }

  /// The number of the notification named, how many accepted ones stand up to it, and how many fit the identifier.
  mutating func receive(_ response: ErrorResponse) -> (notification: Int?, accepted: Int?, candidates: Int) {
    let isRejection = response.status != .noError && response.status != .shutdown
    var named = entries.lastIndex { $0.identifier == response.identifier }
    var candidates = entries.count { $0.identifier == response.identifier }
    if response.identifier == 0, response.status != .noError {
      // No fault is ever noted here, so that it is the known-bad frame, the only one, or none for certain.
      let bad = entries.firstIndex(where: \.isKnownBad)
      let areIdentified = bad.map { entries[..<$0].allSatisfy { $0.identifier != nil } } ?? false
      let isTopic = response.status == .missingTopic || response.status == .invalidTopicSize
      if let bad, response.status == .missingDeviceToken || response.status == .invalidTokenSize && areIdentified {
        named = bad
        candidates = max(1, candidates)
      } else if entries.count > 1, !(isTopic && named == 0) {
        let fit = named == nil ? 0 : candidates
        named = nil
        candidates = fit
      }
    }
    guard let named else {
      unresolved += 1
      return (nil, nil, candidates)
    }
    for index in 0..<named where entries[index].fate != .rejected { entries[index].fate = .accepted }
    if isRejection {
      entries[named].fate = .rejected
    } else if entries[named].fate != .rejected {
      entries[named].fate = .accepted
    }
    if response.status != .noError {
      isTerminated = true
      for index in (named + 1)..<entries.count where entries[index].fate == .unknown {
        entries[index].fate = .discarded
      }
    }
    return (named, entries[...named].count { $0.fate == .accepted }, candidates)
  }

  func count(_ fate: Fate) -> Int { entries.count { $0.fate == fate } }
  var fates: [Fate] { entries.map(\.fate) }
}

extension BinarySession {
  /// The fate of each notification from one on; `nil` when the runs leave a hole, or two that join have the same fate.
  func eachFate(from first: Int) -> [Fate]? {
    var fates: [Fate] = []
    var isInOrder = true
    forEachFate(in: first..<written) { range, fate in
      isInOrder = isInOrder && range.lowerBound == first + fates.count && fates.last != fate
      fates += range.map { _ in fate }
    }
    return isInOrder && first + fates.count == written ? fates : nil
  }
}

@Suite("Provider session: the model")
struct BinarySessionModelTests {
  /// How a client chooses identifiers.
  enum Numbering: CaseIterable, Sendable {
    case counter, littleEndianCounter, batches, random, fewValues, constant, descending, alternating, mixed
  }

  @Test(
    "The books balance at every step, and every verdict is the model's", arguments: Numbering.allCases,
    1...25 as ClosedRange<UInt64>)
  func law(numbering: Numbering, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var session = BinarySession()
    var model = SessionModel()
    var used: [UInt32] = []
    let length = random.number(1...180)
    let responds = random.pick([4, 20, 60])
    let hasKnownBad = random.happens(oneIn: 2)

    for step in 0..<length {
      if random.happens(oneIn: responds) {
        let status = random.pick([0, 1, 2, 5, 7, 8, 8, 8, 10, 128, 255, 44] as [UInt8])
        let identifier = random.happens(oneIn: 6) ? 0 : random.happens(oneIn: 6) ? random.uint32() : used.last ?? 1
        let earlier = random.happens(oneIn: 2) ? used.randomElement(using: &random) : nil
        let response = ErrorResponse(status: .init(rawValue: status), identifier: earlier ?? identifier)
        let (verdict, expected) = (session.receive(response), model.receive(response))
        #expect(verdict.notification == expected.notification, "step \(step)")
        #expect(verdict.accepted == expected.accepted, "step \(step)")
        #expect(verdict.candidates == expected.candidates, "step \(step)")
      } else {
        let isKnownBad = hasKnownBad && random.happens(oneIn: 40)
        let identifier = next(numbering, after: used, &random)
        if let identifier { used.append(identifier) }
        _ = session.write(identifier: identifier, isKnownBad: isKnownBad)
        model.write(identifier: identifier, isKnownBad: isKnownBad)
      }
      let fates = session.fates
      #expect(
        fates.accepted + fates.rejected + fates.discarded + fates.unknown == session.written, "step \(step)")
      #expect(fates.accepted == model.count(.accepted), "step \(step)")
      #expect(fates.rejected == model.count(.rejected), "step \(step)")
      #expect(fates.discarded == model.count(.discarded), "step \(step)")
      #expect(fates.unknown == model.count(.unknown), "step \(step)")
      #expect(session.unresolvedResponses == model.unresolved, "step \(step)")
      let first = random.number(0...session.written)
      #expect(session.eachFate(from: first) == Array(model.fates[first...]), "step \(step)")
    }
  }

  /// The identifier of the next notification; `nil` is a command-0 one.
  private func next(_ numbering: Numbering, after used: [UInt32], _ random: inout SeededGenerator) -> UInt32? {
    let position = UInt32(used.count)
    switch numbering {
    case .counter: return position + 1
    case .littleEndianCounter: return (position + 200).byteSwapped
    case .batches: return position % 12
    case .random: return random.uint32()
    case .fewValues: return UInt32(random.number(0...5))
    case .constant: return 7
    case .descending: return 60 &- position
    case .alternating: return position.isMultiple(of: 2) ? 0 : 0x8000_0000
    case .mixed:
      if random.happens(oneIn: 3) { return nil }
      return random.happens(oneIn: 2) ? random.uint32() : (used.last ?? 0) &+ UInt32(random.number(0...1))
    }
  }
}

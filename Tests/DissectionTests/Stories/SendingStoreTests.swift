import Measurement
import PacketCapture
import TestSupport
import Testing

@testable import Analysis
@testable import Dissection
@testable import Records

/// The two stores of sendings beside each other: the window of an inspection, and the exact one of stories.
@Suite("Stores of sendings")
struct SendingStoreTests {
  private struct Place: Hashable {
    var connection: Int
    var index: Int
  }

  /// What a store holds of the notifications that can be recognised when they are sent again.
  private struct Told {
    /// Each story with several sendings, or with one that was discarded or rejected.
    var stories: Set<[Place]> = []
    /// The notification of each sending, by its first sending.
    var notification: [Place: Place] = [:]
    /// Discarded sendings that were sent again.
    var sentAgain: Set<Place> = []
    var outcomes: [StoryOutcome: Int] = [:]

    mutating func add(_ seen: StoryOutcome, _ sendings: [(place: Place, fate: FateCode)]) {
      guard sendings.count > 1 || sendings.contains(where: { $0.fate == .discarded || $0.fate == .rejected }) else {
        return
      }
      let places = sendings.map(\.place)
      stories.insert(places)
      outcomes[seen, default: 0] += 1
      var relations = SendingRelations()
      for (number, sending) in sendings.enumerated() {
        notification[sending.place] = places[0]
        let resent = relations.next(sending.fate, on: sending.place.connection).resent
        sentAgain.formUnion(places[number - resent..<number])
      }
    }
  }

  /// Adds up what stories are told.
  private final class Book: StorySink {
    var told = Told()
    private var story: StoryRecord?
    private var sendings: [(place: Place, fate: FateCode)] = []
    var isOpen: Bool { true }

    func flush() {}
    func receive(_ record: CaptureRecord) {}
    func receive(_ token: TokenRecord) {}
    func receive(_ summary: StorySummary) {}
    func begin(_ story: StoryRecord) { (self.story, sendings) = (story, []) }
    func receive(_ sending: SendingRecord) {
      sendings.append((Place(connection: sending.connection, index: sending.index), FateCode(sending.fate)))
    }
    func endStory() { if let story, story.isRecognisable { told.add(story.seen, sendings) } }
  }

  private static func read(_ path: String, into sink: some RecordSink) throws {
    let options = DissectionOptions()
    var dissection = Dissection(into: sink, options: options, secrets: try secrets(beside: path))
    _ = try dissection.read(try .open(path, options: options.capture), source: path) { _ in true }
    dissection.finish()
  }

  private static func exact(_ path: String, repeatAfter: Int64) throws -> Told {
    let book = Book()
    var options = StoryCollector.Options()
    options.repeatAfter = repeatAfter
    let collector = StoryCollector(options, into: book)
    try read(path, into: collector)
    try collector.write()
    return book.told
  }

  private static func window(
    _ path: String, repeatAfter: Int64, _ limits: Inspection.Limits = Inspection.Limits()
  ) throws -> Told {
    let counted = SharedSink(Inspection(limits: limits))
    try read(path, into: counted)
    var inspection = counted.sink
    _ = inspection.finish()
    var store = TrackedSendings(inspection.shared.tracked, inspection.shared.topics)
    var told = Told()
    var sendings: [SendingPlace: [StoryRow]] = [:]
    store.makeStories(repeatAfter: repeatAfter) { row, story in
      sendings[story, default: []].append(row)
    } story: { facts in
      let rows = sendings.removeValue(forKey: facts.first.place) ?? [facts.first]
      told.add(facts.seen, rows.map { (Place(connection: $0.connection, index: $0.index), $0.fate) })
    }
    return told
  }

  /// Both hold the same, if the window is large enough; and a smaller one holds no more.
  private static func compare(_ path: String, _ name: String) throws {
    for repeatAfter in [StoryCollector.Options().repeatAfter, .max] {
      let exact = try exact(path, repeatAfter: repeatAfter)
      let window = try window(path, repeatAfter: repeatAfter)
      #expect(window.stories == exact.stories, "\(name)")
      #expect(window.sentAgain == exact.sentAgain && window.outcomes == exact.outcomes, "\(name)")
    }
    // Where a window lacks an accepted sending, a repeat on purpose cannot be known for one; so there are none here.
    let exact = try exact(path, repeatAfter: .max)
    for (history, remembered) in [(1, 1 << 16), (64, 1 << 16), (1 << 16, 3), (1, 3)] {
      var limits = Inspection.Limits()
      (limits.history, limits.remembered) = (history, remembered)
      let window = try window(path, repeatAfter: .max, limits)
      let what = "\(name), a window of \(history), \(remembered) remembered"
      for places in window.stories {
        #expect(Set(places.map { exact.notification[$0] }).count == 1, "\(what)")
      }
      #expect(window.notification.keys.allSatisfy { exact.notification[$0] != nil }, "\(what)")
      #expect(window.sentAgain.isSubset(of: exact.sentAgain), "\(what)")
      let twice = window.outcomes[.acceptedTwice] ?? 0
      #expect(twice <= exact.outcomes[.acceptedTwice] ?? 0, "\(what)")
    }
  }

  @Test(
    "Of a trace both stores hold the same, and a small window no more", arguments: some(15, of: TraceTests.baselines))
  func traces(name: String) throws {
    try Self.compare(Folder.traces.appending(path: String(name.dropLast(".jsonl".count))).path, name)
  }

  @Test("Of an incident both stores hold the same, and a small window no more", arguments: seeds(20, of: 120))
  func incidents(seed: UInt64) throws {
    try withTemporaryFile(Incident(seed: seed).capture.bytes) { try Self.compare($0, "seed \(seed)") }
  }

  @Test(
    "Of conversations with many answers both hold the same, and a small window no more", arguments: seeds(20, of: 120))
  func conversations(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    try withTemporaryFile(CaptureBuilder.conversations(&random).bytes) { try Self.compare($0, "seed \(seed)") }
  }
}

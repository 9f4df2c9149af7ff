import Bytes
import HTTP2
import TestSupport
import Testing

/// A field of a test, with the form in which it is written.
struct TestField: Equatable {
  var name: String
  var value: String
  var indexing = HPACKEncoder.Indexing.incremental
  var coding = HPACKEncoder.StringCoding.shortest

  var text: String { "\(name): \(value)" }
}

/// Blocks like those of providers: some fields repeat, some never, in all forms.
struct BlockGenerator {
  var random: SeededGenerator
  private var earlier: [TestField] = []

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func block() -> [TestField] {
    (0..<random.number(1...10)).map { _ in
      if !earlier.isEmpty, random.happens(oneIn: 2) {
        var field = random.pick(earlier)
        if random.happens(oneIn: 3) { field.value = text() }
        return field
      }
      let names = [":path", ":method", "authorization", "apns-topic", "apns-id", "x", "content-type", text()]
      let field = TestField(
        name: random.pick(names), value: text(), indexing: random.pick(HPACKEncoder.Indexing.allCases),
        coding: random.pick(HPACKEncoder.StringCoding.allCases))
      earlier.append(field)
      if earlier.count > 12 { earlier.removeFirst() }
      return field
    }
  }

  private mutating func text() -> String {
    let length = random.happens(oneIn: 12) ? random.number(200...900) : random.number(0...40)
    return String((0..<length).map { _ in random.pick("abcdefghijklmnopqrstuvwxyz0123456789-/._{}\"~") })
  }
}

extension HPACKEncoder {
  mutating func block(_ fields: [TestField]) -> [UInt8] {
    frames { writer in
      beginBlock(&writer)
      for field in fields {
        write(
          Array(field.name.utf8).rawBytes, Array(field.value.utf8).rawBytes, field.indexing, field.coding, to: &writer)
      }
    }
  }
}

@Suite("HPACK") struct HPACKTests {
  @Test("What is encoded is decoded, with the same table on both sides", arguments: seeds(40, of: 400))
  func roundTrip(seed: UInt64) {
    var generator = BlockGenerator(seed: seed)
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    for _ in 0..<40 {
      if generator.random.happens(oneIn: 8) { encoder.resize(to: generator.random.number(0...4_096)) }
      let fields = generator.block()
      let fault = decoder.decode(encoder.block(fields).rawBytes, into: &list)
      #expect(fault == nil)
      #expect(texts(list) == fields.map(\.text))
      #expect(decoder.isTableKnown)
    }
  }

  @Test("A literal keeps that it is never to be indexed") func neverIndexed() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    let fields = [
      TestField(name: "authorization", value: "bearer x", indexing: .neverIndexed),
      TestField(name: "a", value: "b", indexing: .withoutIndexing), TestField(name: "a", value: "b"),
      TestField(name: "a", value: "b"),
    ]
    #expect(decoder.decode(encoder.block(fields).rawBytes, into: &list) == nil)
    #expect(list.fields.map(\.representation) == [.neverIndexed, .withoutIndexing, .incremental, .indexed])
  }

  @Test("An authorization that is never indexed is recognised, and a different one is told apart") func recognised() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    func origin(_ value: String, _ indexing: HPACKEncoder.Indexing) -> FieldList.Origin? {
      let field = TestField(name: "authorization", value: value, indexing: indexing)
      #expect(decoder.decode(encoder.block([field]).rawBytes, into: &list) == nil)
      #expect(texts(list) == [field.text])
      return list.fields.first?.origin
    }
    let first = origin("bearer one", .neverIndexed)
    #expect(first == .repeated(1))
    #expect(origin("bearer one", .neverIndexed) == first)
    #expect(origin("bearer two", .neverIndexed) == .repeated(2))
    #expect(origin("bearer two", .withoutIndexing) == .repeated(2))
    // Inserted, then referred to.
    let entry = origin("bearer three", .incremental)
    #expect(entry == .entry(0))
    #expect(origin("bearer three", .incremental) == entry)
  }

  @Test("After lost blocks every field is right or named unknown", arguments: seeds(60, of: 600))
  func lostBlocks(seed: UInt64) { #expect(decodeWithLosses(seed).known > 0) }

  @Test("After lost blocks more fields are known than not") func share() {
    let counts = (1...40).map { decodeWithLosses($0) }
    #expect(counts.reduce(0) { $0 + $1.known } > counts.reduce(0) { $0 + $1.unknown })
  }

  /// Decodes blocks of which some are lost or cut; returns how many fields are known and how many are not.
  private func decodeWithLosses(_ seed: UInt64) -> (known: Int, unknown: Int) {
    var hasLost = false
    var generator = BlockGenerator(seed: seed)
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    var (known, unknown) = (0, 0)
    for _ in 0..<60 {
      if generator.random.happens(oneIn: 30) { encoder.resize(to: generator.random.number(0...4_096)) }
      let fields = generator.block()
      let block = encoder.block(fields)
      switch generator.random.number(1...10) {
      case 1:
        decoder.lose()
        hasLost = true
      case 2:
        hasLost = true
        let length = generator.random.number(0...block.count)
        let fault = decoder.decode(block.rawBytes.extracting(0..<length), isCut: true, into: &list)
        #expect(fault == nil)
        #expect(list.fields.count <= fields.count)
        compare(list, fields, &known, &unknown)
      default:
        #expect(decoder.decode(block.rawBytes, into: &list) == nil)
        #expect(list.fields.count == fields.count)
        compare(list, fields, &known, &unknown)
        // Nothing is unknown without a loss.
        #expect(hasLost || unknown == 0)
      }
    }
    return (known, unknown)
  }

  private func compare(_ list: FieldList, _ fields: [TestField], _ known: inout Int, _ unknown: inout Int) {
    for (text, field) in zip(zip(texts(list), list.fields), fields) {
      if text.1.isNameKnown { #expect(text.0.hasPrefix(field.name + ": ")) }
      if text.1.isValueKnown { #expect(text.0.hasSuffix(": " + field.value)) }
      // A literal's value is on the wire, whatever is lost.
      if text.1.representation != .indexed { #expect(text.1.isValueKnown) }
      if text.1.isNameKnown && text.1.isValueKnown { known += 1 } else { unknown += 1 }
    }
  }

  @Test("The smallest and the final size are both told at the beginning of the next block") func resized() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    let field = TestField(name: "a", value: "b")
    #expect(decoder.decode(encoder.block([field]).rawBytes, into: &list) == nil)
    for sizes in [[0, 4_096], [4_096, 0, 200], [300, 100]] {
      for size in sizes { encoder.resize(to: size) }
      let block = encoder.block([field])
      #expect(block[0] & 0xe0 == 0x20)
      #expect(decoder.decode(block.rawBytes, into: &list) == nil)
      // The entry was evicted on both sides wherever the table was empty in between.
      let isInserted = list.fields.first?.representation == .incremental
      #expect(isInserted == sizes.contains(0))
      #expect(texts(list) == ["a: b"])
      #expect(decoder.knownEntries == 1)
    }
    #expect(encoder.block([field]) == [0xbe])
  }

  @Test("An encoder takes the static table's entries before its own") func staticFirst() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    #expect(encoder.block([TestField(name: ":method", value: "POST")]) == [0x83])
    let field = TestField(name: ":method", value: "POST", indexing: .neverIndexed)
    #expect(decoder.decode(encoder.block([field]).rawBytes, into: &list) == nil)
    #expect(list.fields.map(\.representation) == [.neverIndexed])
    #expect(texts(list) == [field.text])
  }

  @Test("What is unknown is empty, and the largest announced table bounds it") func unknown() {
    var (decoder, list) = (HPACKDecoder(), FieldList())
    decoder.announce(tableSize: 8_192)
    decoder.lose()
    #expect(decoder.decode([0x7e, 1, 0x61].rawBytes, into: &list) == nil)
    #expect(list.fields.map { list.name(of: $0).byteCount } == [0])
    #expect(texts(list) == ["?: a"])
    // 8,192 bytes have room for 256 entries: 62 to 317, and one is known.
    #expect(decoder.decode([0xff, 0xbe, 1].rawBytes, into: &list) == nil)
    #expect(decoder.decode([0xff, 0xbf, 1].rawBytes, into: &list) == .indexBeyondTables)
  }

  @Test("Entries that are inserted after a loss are known by their indices") func knownAgain() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    let (old, new) = (TestField(name: "old", value: "1"), TestField(name: "new", value: "2"))
    #expect(decoder.decode(encoder.block([old]).rawBytes, into: &list) == nil)
    decoder.lose()
    #expect(!decoder.isTableKnown)
    #expect(decoder.decode(encoder.block([new, old, new]).rawBytes, into: &list) == nil)
    #expect(texts(list) == ["new: 2", "?: ?", "new: 2"])
    // A name of a lost entry: the value is known, and so it is when the new entry is referred to.
    let renamed = TestField(name: "old", value: "3")
    #expect(decoder.decode(encoder.block([renamed, renamed]).rawBytes, into: &list) == nil)
    #expect(texts(list) == ["?: 3", "?: 3"])
  }

  @Test("The table is known again when what follows a loss fills it") func filled() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    decoder.lose()
    for number in 0..<200 {
      let field = TestField(name: "name", value: "\(1_000 + number)")
      #expect(decoder.decode(encoder.block([field]).rawBytes, into: &list) == nil)
      // 40 bytes each: 102 of them leave no room for another entry of 32 bytes in 4,096.
      #expect(decoder.isTableKnown == (number >= 101))
    }
    // Beyond the last entry is an error now, no unknown field.
    #expect(decoder.decode([0xff, 0x40].rawBytes, into: &list) == .indexBeyondTables)
  }

  @Test("A table is known after its size was set to 0") func emptied() {
    var (decoder, list) = (HPACKDecoder(), FieldList())
    decoder.lose()
    #expect(decoder.decode([0xbe].rawBytes, into: &list) == nil)
    #expect(texts(list) == ["?: ?"])
    #expect(decoder.decode([0x20, 0xbe].rawBytes, into: &list) == .indexBeyondTables)
  }

  @Test("No index beyond the largest table is taken for a lost entry") func impossibleIndex() {
    var (decoder, list) = (HPACKDecoder(), FieldList())
    decoder.lose()
    // 4,096 bytes have room for 128 entries: 62 to 189.
    #expect(decoder.decode([0xff, 62].rawBytes, into: &list) == nil)
    #expect(decoder.decode([0xff, 63].rawBytes, into: &list) == .indexBeyondTables)
  }

  @Test("A table that is larger than the limit has unknown entries, not wrong ones") func tableLimit() {
    var limits = HPACKDecoder.Limits()
    limits.tableSize = 1_000
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(limits: limits), FieldList())
    decoder.announce(tableSize: 100_000)
    decoder.acknowledge()
    encoder.resize(to: 100_000)
    let fields = (0..<100).map { TestField(name: "n", value: "\($0)") }
    #expect(decoder.decode(encoder.block(fields).rawBytes, into: &list) == nil)
    #expect(decoder.decode(encoder.block(fields).rawBytes, into: &list) == nil)
    let texts = texts(list)
    // 35 bytes each: 28 of them fit.
    #expect(texts.filter { $0 == "?: ?" }.count == 72)
    #expect(texts.suffix(28) == fields.map(\.text).suffix(28))
    #expect(decoder.heldBytes < 8_000)
  }

  @Test("A field section above the limit is cut, and the table goes on") func listLimit() {
    var limits = HPACKDecoder.Limits()
    limits.listSize = 200
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(limits: limits), FieldList())
    let fields = (0..<9).map { TestField(name: "n", value: "\($0)") }
    #expect(decoder.decode(encoder.block(fields).rawBytes, into: &list) == .fieldListTooLong)
    #expect(list.isCut)
    #expect(texts(list) == fields.prefix(5).map(\.text))
    // Indices count entries that were left out, too.
    #expect(decoder.decode(encoder.block([fields[8], fields[0]]).rawBytes, into: &list) == nil)
    #expect(texts(list) == ["n: 8", "n: 0"])
  }

  @Test("A block that refers to a long entry again and again is bounded") func bomb() {
    var (encoder, decoder, list) = (HPACKEncoder(), HPACKDecoder(), FieldList())
    let long = TestField(name: "a", value: String(repeating: "b", count: 4_000))
    #expect(decoder.decode(encoder.block([long]).rawBytes, into: &list) == nil)
    let references = [UInt8](repeating: 0xbe, count: 60_000)
    #expect(decoder.decode(references.rawBytes, into: &list) == .fieldListTooLong)
    #expect(list.fields.count == 16)
    #expect(list.heldBytes < 300_000)
  }

  @Test("Every string is Huffman-coded and decoded", arguments: seeds(20, of: 500)) func huffman(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var (decoder, list) = (HPACKDecoder(), FieldList())
    for length in 0..<100 {
      let value = random.bytes(length)
      var encoder = HPACKEncoder()
      let block = frames { encoder.write([0x61].rawBytes, value.rawBytes, .withoutIndexing, .huffman, to: &$0) }
      #expect(decoder.decode(block.rawBytes, into: &list) == nil)
      #expect(list.fields.map { Array(copying: list.value(of: $0)) } == [value])
    }
  }
}

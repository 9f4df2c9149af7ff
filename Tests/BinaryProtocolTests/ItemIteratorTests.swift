import BinaryProtocol
import Bytes
import TestSupport
import Testing

@Suite("Items of a frame, one after the other")
struct ItemIteratorTests {
  /// What the iterator gives, and the error that ends it.
  private func walk(_ frame: [UInt8]) -> (items: [FrameItem], error: ParseError?) {
    var (items, iterator) = ([FrameItem](), ItemIterator(end: frame.count))
    do throws(ParseError) {
      while let item = try iterator.next(in: frame.rawBytes) {
        items.append(FrameItem(id: .init(rawValue: item.id), data: Array(frame[item.data.range])))
      }
    } catch {
      // It stays where it is.
      #expect(throws: error) { try iterator.next(in: frame.rawBytes) }
      return (items, error)
    }
    return (items, nil)
  }

  private func frame(_ items: [FrameItem]) -> [UInt8] {
    written { BinaryFrame.encodeFramed(items: items, into: &$0) }
  }

  @Test("All items come as they were written", arguments: 1...8 as ClosedRange<UInt64>)
  func all(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<100 {
      let items = random.items()
      let (read, error) = walk(frame(items))
      #expect(read == items && error == nil)
    }
  }

  @Test("A frame without items has none")
  func none() {
    let (items, error) = walk([2, 0, 0, 0, 0])
    #expect(items.isEmpty && error == nil)
  }

  @Test("Items before one that does not fit come first, and the error says where that stands")
  func overrun() {
    let first = FrameItem(id: .payload, data: [1, 2])
    let whole = frame([first, FrameItem(id: .deviceToken, data: [3, 4, 5])])
    for cut in 1..<6 {
      let (items, error) = walk(Array(whole.dropLast(cut)))
      #expect(items == [first])
      #expect(error == ParseError(cut > 3 ? .itemHeaderCut : .itemOverrun(item: 1, length: 3), at: 10))
      #expect(error?.offset == 10)
    }
  }

  @Test("Of a frame that is not all there, a header tells of an item whose data are to come")
  func beginning() throws {
    let whole = frame([FrameItem(id: .payload, data: [1, 2]), FrameItem(id: .deviceToken, data: [3, 4, 5])])
    for count in 5...whole.count {
      let beginning = Array(whole[..<count])
      var (iterator, ids) = (ItemIterator(end: whole.count), [UInt8]())
      while iterator.hasHeader(in: beginning.rawBytes) {
        ids.append(try #require(try iterator.next(in: beginning.rawBytes)).id)
      }
      #expect(ids == (count < 8 ? [] : count < 13 ? [2] : [2, 1]), "\(count)")
    }
  }

  @Test("An identifier has its place in frames that have one")
  func identifierOffset() throws {
    let token = [UInt8](repeating: 7, count: 32)
    func offset(_ frame: [UInt8]) -> Int? { BinaryFrame.identifierOffset(in: frame.rawBytes) }
    let simple = written { BinaryFrame.encodeSimple(token: token.rawBytes, payload: token.rawBytes, into: &$0) }
    #expect(offset(simple) == nil)
    let enhanced = written {
      BinaryFrame.encodeEnhanced(
        identifier: 0x0102_0304, expiration: 5, token: token.rawBytes, payload: token.rawBytes, into: &$0)
    }
    #expect(offset(enhanced) == 1 && enhanced[1...4] == [1, 2, 3, 4])
    let item = FrameItem(id: .notificationIdentifier, data: [1, 2, 3, 4])
    let (payload, cut) = (FrameItem(id: .payload, data: [9]), FrameItem(id: .notificationIdentifier, data: [1, 2, 3]))
    #expect(offset(frame([item, payload])) == 8)
    #expect(offset(frame([payload, cut, item, item])) == 5 + 4 + 6 + 3)
    #expect(offset(frame([payload, cut])) == nil && offset(frame([])) == nil)
  }
}

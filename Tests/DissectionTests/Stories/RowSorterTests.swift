import Bytes
import Foundation
import Glibc
import TestSupport
import Testing

@testable import Analysis

/// Its size is not a multiple of its alignment.
private struct Row: BitwiseCopyable, Equatable {
  var number: Int
  var key: UInt32
}

private enum KeyOrder: RowOrder {
  static func precedes(_ a: Row, _ b: Row) -> Bool { (a.key, a.number) < (b.key, b.number) }
}

@Suite("Sorting in bounded memory")
struct RowSorterTests {
  private let folder = FileManager.default.temporaryDirectory.path

  @Test("Rows come in their order, however little of them fits into memory", arguments: seeds(20, of: 200))
  func order(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let count = random.pick([0, 1, 2, 50, 3_000])
    let rows = (0..<count).map { Row(number: $0, key: UInt32(random.number(0...count))) }
    let stride = MemoryLayout<Row>.stride
    // Two rows a run make more runs than are merged at a time.
    let memory = random.pick([0, 2 * stride * 40, 2 * stride * count + stride])
    let sorter = RowSorter<KeyOrder>(memory: memory, folder: folder)
    for row in rows { try sorter.append(row) }
    #expect(sorter.hasSpilled == (count > max(2, memory / (2 * stride))))
    var sorted = try sorter.sorted()
    var seen: [Row] = []
    while let row = try sorted.next() { seen.append(row) }
    #expect(seen == rows.sorted(by: KeyOrder.precedes))
  }

  @Test("A folder that is not there fails when memory is full, and names itself") func missingFolder() throws {
    let sorter = RowSorter<KeyOrder>(memory: 0, folder: "/no/such/folder")
    try sorter.append(Row(number: 1, key: 1))
    try sorter.append(Row(number: 2, key: 2))
    let failure = #expect(throws: UnnamedFile.Failure.self) { try sorter.append(Row(number: 3, key: 3)) }
    #expect(failure?.description == "/no/such/folder: No such file or directory")
  }

  @Test("Byte strings come back from memory and file, and the same one is kept once", arguments: seeds(10, of: 100))
  func strings(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let strings = (0..<200).map { _ in random.bytes(random.pick([0, 1, 32, 300, 70_000 / random.number(1...40)])) }
    var store = ContentStore(memory: random.pick([0, 4_096, 1 << 22]), folder: folder)
    var places: [Int] = []
    for string in strings {
      let key = ContentKey(string.rawBytes, in: .zero)
      let place = try store.keep(string.rawBytes, key: key)
      #expect(try store.keep(string.rawBytes, key: key) == place)
      places.append(place)
    }
    for index in strings.indices.shuffled(using: &random) {
      #expect(try store.string(at: places[index]) == strings[index])
    }
  }

  @Test("A file for rows has no name and is its owner's alone") func unnamedFile() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apnscope-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = try UnnamedFile(in: folder.path)
    try file.append([1, 2, 3].rawBytes)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    #expect(file.count == 3)
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { number in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
      return target?.hasPrefix(folder.path) == true
    }
    #expect(open.count == 1)
    var status = stat()
    // Safe: the path ends with its zero.
    let isThere = unsafe stat("/proc/self/fd/\(try #require(open.first))", &status) == 0
    #expect(isThere && status.st_mode & 0o777 == 0o600 && status.st_size == 3 && status.st_nlink == 0)
  }
}

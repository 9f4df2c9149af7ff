import Bytes
import HeapModule

/// An order of rows, which go through memory or a file as they are.
protocol RowOrder {
  associatedtype Row: BitwiseCopyable
  static func precedes(_ a: Row, _ b: Row) -> Bool
}

/// Sorts any number of rows in bounded memory: what does not fit is written to an unnamed file in sorted runs, which are
/// merged when the rows are read.
///
/// Rows that the order does not distinguish come in any order.
final class RowSorter<Order: RowOrder> {
  typealias Row = Order.Row

  /// Runs that are merged at a time.
  private static var fanIn: Int { 32 }

  private var rows: [Row] = []
  private var run: RunWriter<Row>
  /// Runs in the file.
  private var runs: [Range<Int>] = []
  private let maximumRows: Int
  private let rowsOfBuffer: Int

  /// - Parameters:
  ///   - memory: the most bytes for rows, including what sorting and merging them needs.
  ///   - folder: the folder of the file, if one is needed.
  init(memory: Int, folder: String) {
    let stride = MemoryLayout<Row>.stride
    // An array that grows, or is sorted, needs as much memory again.
    maximumRows = max(2, memory / (2 * stride))
    rowsOfBuffer = max(1, memory / (4 * (Self.fanIn + 1) * stride))
    run = RunWriter(folder: folder)
  }

  /// Whether rows were written to a file.
  var hasSpilled: Bool { run.file != nil }
  /// Rows so far.
  private(set) var count = 0

  func append(_ row: Row) throws(UnnamedFile.Failure) {
    if rows.count == maximumRows {
      rows.sort(by: Order.precedes)
      try run.append(rows)
      runs.append(run.end())
      rows.removeAll(keepingCapacity: true)
    }
    rows.append(row)
    count += 1
  }

  /// The rows in their order. They are given away: call it once, after the last row.
  func sorted() throws(UnnamedFile.Failure) -> SortedRows<Order> {
    rows.sort(by: Order.precedes)
    let latest = rows
    rows = []
    while runs.count > Self.fanIn {
      var merged = try SortedRows<Order>(runs.prefix(Self.fanIn), of: run.file, rowsOfBuffer: rowsOfBuffer)
      runs.removeFirst(Self.fanIn)
      var block: [Row] = []
      while let row = try merged.next() {
        block.append(row)
        if block.count == rowsOfBuffer {
          try run.append(block)
          block.removeAll(keepingCapacity: true)
        }
      }
      try run.append(block)
      runs.append(run.end())
    }
    return try SortedRows(runs[...], of: run.file, latest: latest, rowsOfBuffer: rowsOfBuffer)
  }
}

/// Writes sorted runs of rows, one after the other, into a file that is created for the first.
private struct RunWriter<Row: BitwiseCopyable> {
  let folder: String
  private(set) var file: UnnamedFile?
  private var start = 0
  private var count = 0

  init(folder: String) { self.folder = folder }

  mutating func append(_ rows: [Row]) throws(UnnamedFile.Failure) {
    let file = if let file = self.file { file } else { try UnnamedFile(in: folder) }
    self.file = file
    var failure: UnnamedFile.Failure?
    // Safe: the memory lives through the call. Bytes between rows and fields may be anything: they are read back as the
    // same type. (`Span.bytes` has no bytes behind the fields of a single row.)
    unsafe rows.withUnsafeBytes { memory in
      do throws(UnnamedFile.Failure) { try unsafe file.append(RawSpan(_unsafeBytes: memory)) } catch { failure = error }
    }
    if let failure { throw failure }
    count += rows.count
  }

  /// Ends a run: its rows, by their numbers in the file.
  mutating func end() -> Range<Int> {
    let run = start..<count
    start = count
    return run
  }
}

/// Sorted runs, merged as they are read.
struct SortedRows<Order: RowOrder> {
  typealias Row = Order.Row

  /// A run as far as it is not read.
  private struct Run {
    /// Its rows that are still in the file.
    var rest: Range<Int>
    var buffer: [Row]
    var position = 0
  }

  /// The next row of a run.
  private struct Head: Comparable {
    var row: Row
    var run: Int
    static func < (a: Head, b: Head) -> Bool { Order.precedes(a.row, b.row) }
    static func == (a: Head, b: Head) -> Bool { !(a < b) && !(b < a) }
  }

  private let file: UnnamedFile?
  private let rowsOfBuffer: Int
  private var runs: [Run]
  private var heads = Heap<Head>()

  /// - Parameter latest: a run that is in memory.
  fileprivate init(
    _ stored: ArraySlice<Range<Int>>, of file: UnnamedFile?, latest: [Row] = [], rowsOfBuffer: Int
  ) throws(UnnamedFile.Failure) {
    self.file = file
    self.rowsOfBuffer = rowsOfBuffer
    runs = stored.map { Run(rest: $0, buffer: []) }
    runs.append(Run(rest: 0..<0, buffer: latest))
    for run in runs.indices {
      if let row = try next(of: run) { heads.insert(Head(row: row, run: run)) }
    }
  }

  mutating func next() throws(UnnamedFile.Failure) -> Row? {
    guard let head = heads.min else { return nil }
    if let row = try next(of: head.run) {
      heads.replaceMin(with: Head(row: row, run: head.run))
    } else {
      heads.removeMin()
    }
    return head.row
  }

  private mutating func next(of run: Int) throws(UnnamedFile.Failure) -> Row? {
    if runs[run].position == runs[run].buffer.count {
      guard let file, !runs[run].rest.isEmpty else {
        runs[run].buffer = []
        runs[run].position = 0
        return nil
      }
      let rest = runs[run].rest
      let part = rest.lowerBound..<min(rest.upperBound, rest.lowerBound + rowsOfBuffer)
      runs[run].rest = part.upperBound..<rest.upperBound
      runs[run].buffer = try Self.rows(part, of: file)
      runs[run].position = 0
    }
    runs[run].position += 1
    return runs[run].buffer[runs[run].position - 1]
  }

  private static func rows(_ part: Range<Int>, of file: UnnamedFile) throws(UnnamedFile.Failure) -> [Row] {
    let stride = MemoryLayout<Row>.stride
    var failure: UnnamedFile.Failure?
    // Safe: all of the memory is filled with rows that this process wrote, or none of it is used.
    let rows = unsafe [Row](unsafeUninitializedCapacity: part.count) { memory, count in
      do throws(UnnamedFile.Failure) {
        let bytes = unsafe UnsafeMutableRawBufferPointer(
          start: memory.baseAddress, count: part.count * stride)
        try unsafe file.read(into: bytes, at: part.lowerBound * stride)
        count = part.count
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return rows
  }
}

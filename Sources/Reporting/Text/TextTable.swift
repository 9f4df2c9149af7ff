/// Columns as wide as their widest cell.
struct TextTable {
  private let header: [String]
  private let right: Set<Int>
  private var rows: [[String]] = []

  init(_ header: [String], right: Set<Int>) {
    self.header = header
    self.right = right
  }

  var isEmpty: Bool { rows.isEmpty }

  mutating func add(_ row: [String]) { rows.append(row) }

  /// Nothing without rows.
  func text(indent: Int) -> String {
    guard !isEmpty else { return "" }
    let indent = String(repeating: " ", count: indent)
    return Self.lines([header] + rows) { right.contains($0) }.map { ($0.isEmpty ? "" : indent + $0) + "\n" }.joined()
  }

  /// - Parameter isRight: whether a column is right-aligned; otherwise it is left-aligned.
  fileprivate static func lines(_ rows: [[String]], isRight: (Int) -> Bool) -> [String] {
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        if column > 0 { line += "  " }
        line += isRight(column) ? space + cell : cell + space
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}

/// Rows of cells as aligned lines: the first `left` columns and the last are left-aligned, the others right-aligned.
package func aligned(_ rows: [[String]], left: Int = 1) -> [String] {
  let last = (rows.map(\.count).max() ?? 0) - 1
  return TextTable.lines(rows) { $0 >= left && $0 != last }
}

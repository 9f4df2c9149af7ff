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
  ///
  /// - Parameters:
  ///   - columns: the width of the terminal; `nil`: as wide as it is.
  ///   - dispensable: names of columns, in the order in which they are left out where it is too narrow; a line says so.
  func text(indent: Int, columns: Int? = nil, dispensable: [String] = []) -> String {
    guard !isEmpty else { return "" }
    let margin = String(repeating: " ", count: indent)
    let absent = columns.map { columnsLeftOut(in: $0 - indent, dispensable) } ?? []
    let shown = header.indices.filter { !absent.contains($0) }
    let cells = ([header] + rows).map { row in shown.filter { $0 < row.count }.map { row[$0] } }
    var lines = Self.lines(cells) { right.contains(shown[$0]) }.map { $0.isEmpty ? "" : margin + $0 }
    if !absent.isEmpty, let columns {
      let names = absent.sorted().map { header[$0] }.joined(separator: ", ")
      lines.append("\(margin)left out at \(columns) columns: \(names)")
    }
    return lines.map { $0 + "\n" }.joined()
  }

  /// The columns that are left out to fit a width: no more than need be.
  private func columnsLeftOut(in width: Int, _ dispensable: [String]) -> Set<Int> {
    let widths = header.indices.map { column in
      ([header] + rows).map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    func needed(without absent: Set<Int>) -> Int {
      let shown = widths.indices.filter { !absent.contains($0) }
      return shown.reduce(0) { $0 + widths[$1] } + 2 * max(0, shown.count - 1)
    }
    let order = dispensable.compactMap { header.firstIndex(of: $0) }
    var absent: Set<Int> = []
    for column in order where needed(without: absent) > width { absent.insert(column) }
    guard needed(without: absent) <= width else { return absent }
    for column in order.reversed()
    where absent.contains(column) && needed(without: absent.subtracting([column])) <= width {
      absent.remove(column)
    }
    return absent
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

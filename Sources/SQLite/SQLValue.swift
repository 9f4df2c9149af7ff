/// A value in a row, or one that a statement is given.
package enum SQLValue: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// The text, or no value.
  package init(_ text: String?) { self = text.map { .text($0) } ?? .null }
  /// The number, or no value.
  package init(_ number: Double?) { self = number.map { .real($0) } ?? .null }
  /// The number.
  package init(_ number: Int) { self = .integer(Int64(number)) }

  /// A whole number; `nil` of any other value.
  package var integer: Int64? {
    switch self {
    case .integer(let number): number
    case .real(let number): Int64(exactly: number)
    case .null, .text, .blob: nil
    }
  }

  /// A number; `nil` of any other value.
  package var real: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .real(let number): number
    case .null, .text, .blob: nil
    }
  }

  /// A text; `nil` of any other value.
  package var text: String? { if case .text(let text) = self { text } else { nil } }

  /// Bytes; `nil` of any other value.
  package var blob: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
}

/// A row of a result, copied from SQLite.
package struct SQLRow: Sendable {
  /// The place of each column by its name; of several with one name the first.
  let places: [String: Int]
  package let values: [SQLValue]

  /// The value of a column, counted from 0.
  package subscript(_ column: Int) -> SQLValue { values[column] }

  /// The value of a column by its name; `.null` when there is no such column.
  package subscript(_ column: String) -> SQLValue { places[column].map { values[$0] } ?? .null }
}

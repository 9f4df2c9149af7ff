/// Numbers for people.
package enum GroupedNumber {
  /// The number with commas between groups of three digits, as `14,875`.
  package static func text(_ value: Int) -> String {
    var text: [Character] = []
    for (index, digit) in String(value.magnitude).reversed().enumerated() {
      if index > 0, index % 3 == 0 { text.append(",") }
      text.append(digit)
    }
    return (value < 0 ? "-" : "") + String(text.reversed())
  }
}

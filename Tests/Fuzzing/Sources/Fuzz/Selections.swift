import BinaryProtocol
import Bytes
import PacketCapture

@testable import Records

/// Text as people type it for the options that select records: a token's digits, a time, names of fields.
@Sendable func fuzzSelection(_ bytes: RawSpan) {
  let text = String(decoding: Array(copying: bytes), as: UTF8.self)
  checkToken(text)
  checkMoment(text)
  let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  let fields = FieldSelection(names)
  law((fields != nil) == names.allSatisfy(FieldSelection.all.contains), "fields that there are not: \(names)")
  if let fields { law(!fields.columns.isEmpty, "fields without a column") }
}

/// A prefix begins the tokens whose digits begin with it, and no others.
private func checkToken(_ text: String) {
  guard let prefix = RecordSelection.TokenPrefix(text) else { return }
  let digits = Array(prefix.text.utf8)
  law(digits.count == text.utf8.count && prefix.text == text.lowercased(), "digits were lost")
  func token(_ digits: [UInt8]) -> [UInt8] {
    stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
    }
  }
  let whole = token(digits + [UInt8(ascii: "0"), UInt8(ascii: "0")])
  law(prefix.begins(whole.rawBytes), "a token does not begin with its digits")
  law(!prefix.begins(Array(whole.prefix((digits.count - 1) / 2)).rawBytes), "a token that is too short fits")
  var other = whole
  other[0] ^= 0x10
  law(!prefix.begins(other.rawBytes), "another token fits")
}

/// The text of a moment is that moment.
private func checkMoment(_ text: String) {
  guard let moment = RecordSelection.Moment(clock: text) else { return }
  var selection = RecordSelection()
  selection.from = moment
  let option = selection.options[0]
  law(option.hasPrefix("--from="), option)
  let again = RecordSelection.Moment(clock: String(option.dropFirst("--from=".count)))
  if case .timeOfDay(86_400_000_000_000...) = moment { return }
  law(again == moment, "\(text) is \(moment), and \(option) another moment")
  let start = Timestamp(nanoseconds: 1_450_000_000_000_000_000)
  law(moment.time(after: start) != nil, "a moment without a time")
}

import PushModel

@testable import Analysis
@testable import BinaryProtocol
@testable import Bytes
@testable import Payload

nonisolated(unsafe) private let redaction = Redaction(key: [UInt8](repeating: 9, count: 16), keepsAddresses: false)

/// Frames one after the other, as `redact` writes them.
@Sendable func fuzzRedaction(_ bytes: RawSpan) {
  guard let redaction else { return }
  var offset = 0
  while case .complete(let length) = BinaryFrame.extent(of: bytes, at: offset, limits: ProtocolLimits()) {
    let frame = bytes.extracting(offset..<offset + length)
    offset += length
    let whole = try? PushFields(parsing: frame)
    let fields = whole ?? PushFields(fitting: frame)
    let redacted = redaction.frame(fields, frame)
    law(redacted.count == length, "a redacted frame has another length")
    law(
      BinaryFrame.extent(of: redacted.rawBytes, at: 0, limits: ProtocolLimits()) == .complete(length),
      "a redacted frame has another extent")
    law((try? PushFields(parsing: redacted.rawBytes)) == whole, "a redacted frame has other fields")
    law(whole != nil || PushFields(fitting: redacted.rawBytes) == fields, "a redacted frame has other fields that fit")
    checkItems(fields, redacted)
    if fields.token.isPresent {
      let (old, new) = (frame.extracting(fields.token.range), redacted.rawBytes.extracting(fields.token.range))
      law(PayloadJudge.rules(ofToken: old) == PayloadJudge.rules(ofToken: new), "rules about a token")
    }
    if fields.payload.isPresent {
      checkPayload(frame.extracting(fields.payload.range), redacted.rawBytes.extracting(fields.payload.range))
    }
  }
}

/// Bytes that are no field of it are 0, and 255 where an item does not fit.
private func checkItems(_ fields: PushFields, _ frame: [UInt8]) {
  guard fields.command == .framed else { return }
  var items = ItemIterator(end: frame.count)
  var end = BinaryFrame.Offsets.items
  var seen: Set<UInt8> = []
  while let item = try? items.next(in: frame.rawBytes) {
    let isNumber = (3...4).contains(item.id) && item.data.length == 4 || item.id == 5 && item.data.length == 1
    let isField = item.data == fields.token || item.data == fields.payload || isNumber && seen.insert(item.id).inserted
    law(isField || frame[item.data.range].allSatisfy { $0 == 0 }, "an item that is no field")
    end = item.data.range.upperBound
  }
  law(frame[end...].allSatisfy { $0 == 0xff }, "bytes behind the last item")
}

private func checkPayload(_ old: RawSpan, _ new: RawSpan) {
  var judge = PayloadJudge()
  let (before, after) = (judge.judge(old), judge.judge(new))
  law(before.kind == after.kind, "a redacted payload is of another kind")
  var different = PayloadRuleSet()
  for rule in PayloadRule.allCases where before.rules.contains(rule) != after.rules.contains(rule) {
    different.insert(rule)
  }
  // There may be no room for a name that is as unlike the others as the key was.
  let names: [PayloadRule] = [.jsonDuplicateKey, .keyMisspelt, .keyUnknown]
  law(PayloadRule.allCases.allSatisfy { !different.contains($0) || names.contains($0) }, "rules about a payload")
  // Nothing of another script is left; what is no text has bytes that no text has.
  if before.rules.contains(.payloadUTF16) || before.rules.contains(.payloadBadUTF8) { return }
  let start = before.rules.contains(.payloadBOM) ? 3 : 0
  for offset in start..<new.byteCount { law(new.byte(at: offset) < 0x80, "a letter beyond ASCII") }
}

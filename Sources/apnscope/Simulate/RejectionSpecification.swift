import ArgumentParser
import Bytes
import GatewaySimulator
import ProviderAPI
import PushModel

/// Which notifications are rejected, as typed: `every=1000`, `probability=0.001,status=8`, `prefix=dead`,
/// `tokens=FILE`.
struct RejectionSpecification: Quantity {
  static let notation =
    "every=N, probability=P, uninstalled=P, prefix=HEX, token=HEX or tokens=FILE, optionally followed by ,status=S (1 to 255, not 10), ,reason=R, ,http=N (300 to 599; needed for an undocumented reason), ,topic=T and ,times=N"

  private enum Condition {
    case ready(Behavior.RejectionRule.Condition)
    case tokens(file: String)
  }

  private var condition: Condition
  private var status: BinaryStatus
  private var topic: String?
  private var times: Int?
  private var reason = ProviderReason(rawValue: "BadDeviceToken")
  private var httpStatus: Int?

  init?(argument: String) {
    var condition: Condition?
    var status = BinaryStatus.invalidToken
    for part in argument.split(separator: ",") {
      let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
      guard pair.count == 2 else { return nil }
      if pair[0] == "status" {
        guard let code = UInt8(pair[1]), code != 0, code != 10 else { return nil }
        status = .init(rawValue: code)
        continue
      }
      if pair[0] == "reason" {
        reason = ProviderReason(rawValue: pair[1])
        continue
      }
      if pair[0] == "http" {
        guard let code = Int(pair[1]), (300...599).contains(code) else { return nil }
        httpStatus = code
        continue
      }
      if pair[0] == "topic" {
        topic = pair[1]
        continue
      }
      if pair[0] == "times" {
        guard let count = Int(pair[1]), count > 0 else { return nil }
        times = count
        continue
      }
      guard condition == nil else { return nil }
      switch pair[0] {
      case "every":
        guard let interval = Int(pair[1]), interval > 0 else { return nil }
        condition = .ready(.every(interval))
      case "probability":
        guard let share = Share(argument: pair[1]) else { return nil }
        condition = .ready(.probability(share.value))
      case "uninstalled":
        guard let share = Share(argument: pair[1]) else { return nil }
        condition = .ready(.uninstalled(share.value))
      case "prefix":
        guard let bytes = hexadecimal(pair[1]), !bytes.isEmpty else { return nil }
        condition = .ready(.prefix(bytes))
      case "token":
        guard let bytes = hexadecimal(pair[1]), !bytes.isEmpty else { return nil }
        condition = .ready(.tokens(TokenSet([bytes])))
      case "tokens": condition = .tokens(file: pair[1])
      default: return nil
      }
    }
    guard let condition, httpStatus != nil || reason.documentedStatus != nil else { return nil }
    self.condition = condition
    self.status = status
  }

  /// Reads the file of tokens, if there is one: hexadecimal, one per line.
  func rejection() throws -> Behavior.RejectionRule {
    switch condition {
    case .ready(let condition): return rule(condition)
    case .tokens(let file): return rule(.tokens(try TokenSet(contentsOf: file)))
    }
  }

  private func rule(_ condition: Behavior.RejectionRule.Condition) -> Behavior.RejectionRule {
    var rule = Behavior.RejectionRule(condition, status: status, topic: topic, times: times)
    (rule.reason, rule.httpStatus) = (reason, httpStatus ?? reason.documentedStatus ?? 400)
    return rule
  }
}

/// The bytes of hexadecimal digits; `nil` when they are not such.
func hexadecimal(_ text: String) -> [UInt8]? {
  let digits = Array(text.utf8)
  // A number may have a sign, a digit may not.
  guard digits.count % 2 == 0, text.allSatisfy(\.isHexDigit) else { return nil }
  var bytes: [UInt8] = []
  for index in stride(from: 0, to: digits.count, by: 2) {
    guard let byte = UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) else { return nil }
    bytes.append(byte)
  }
  return bytes
}

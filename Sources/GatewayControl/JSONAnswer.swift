import Bytes
import FoundationEssentials
import HTTPEndpoint
import Reporting

/// Why a request cannot be carried out, as a problem document (RFC 9457).
struct ControlProblem: Error {
  let status: Int
  /// A sentence about this request.
  let detail: String
  var headers: [(name: String, value: String)] = []
  /// Further members of the document.
  var members: [String: Int] = [:]

  init(_ status: Int, _ detail: String) { (self.status, self.detail) = (status, detail) }

  private struct Document: Encodable {
    var type = "about:blank"
    var title: String
    var status: Int
    var detail: String
    var received: Int?
    var wanted: Int?
  }

  private var title: String {
    switch status {
    case 400: "Bad Request"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 422: "Unprocessable Content"
    case 431: "Request Header Fields Too Large"
    default: "Service Unavailable"
    }
  }

  var answer: HTTPAnswer {
    let document = Document(
      title: title, status: status, detail: detail, received: members["received"], wanted: members["wanted"])
    // Texts and numbers can always be written.
    let text = (try? document.jsonDocument()) ?? "{}"
    return HTTPAnswer(
      status: status, headers: headers + [("Content-Type", "application/problem+json")], body: Array((text + "\n").utf8)
    )
  }
}

extension HTTPAnswer {
  /// A JSON document.
  static func json(_ value: some Encodable, status: Int = 200) throws -> HTTPAnswer {
    json(text: try value.jsonDocument() + "\n", status: status)
  }

  static func json(text: String, status: Int = 200) -> HTTPAnswer {
    HTTPAnswer(status: status, headers: [("Content-Type", "application/json")], body: Array(text.utf8))
  }

  /// Done, and there is nothing to say.
  static var done: HTTPAnswer { HTTPAnswer(status: 204) }
}

extension HTTPRequest {
  /// The body as a value; its media type has to be JSON, so that no page of another site can send it.
  func decoded<Value: Decodable>(_ type: Value.Type) throws(ControlProblem) -> Value {
    guard mediaType == "application/json" || mediaType == "application/merge-patch+json" else {
      throw ControlProblem(415, "the body has to be application/json")
    }
    guard case .valid = JSONText.scan(body.rawBytes) else { throw ControlProblem(400, "the body is not valid JSON") }
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch let error as DecodingError {
      throw ControlProblem(400, Self.sentence(error))
    } catch let error as ControlProblem {
      throw error
    } catch {
      throw ControlProblem(400, "\(error)")
    }
  }

  private static func sentence(_ error: DecodingError) -> String {
    func place(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
      let path = (context.codingPath + [key].compactMap { $0 }).map { key in
        key.intValue.map { "[\($0)]" } ?? key.stringValue
      }
      return path.isEmpty ? "the body" : path.joined(separator: ".").replacing(".[", with: "[")
    }
    switch error {
    case .keyNotFound(let key, let context): return "\(place(context, key)) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return "\(place(context)) has another type than documented"
    // The text of JSON is valid; this is how the decoder reports a value that it cannot make.
    case .dataCorrupted(let context) where context.codingPath.isEmpty:
      return "a number is out of range, or a string is no Unicode"
    case .dataCorrupted(let context): return "\(place(context)): \(context.debugDescription)"
    @unknown default: return "the body is not as documented"
    }
  }

  /// There is no body, or an empty object.
  func requireNoBody() throws(ControlProblem) {
    guard body.isEmpty || body.filter({ $0 > 0x20 }) == Array("{}".utf8) else {
      throw ControlProblem(400, "this request has no body")
    }
  }
}

extension KeyedDecodingContainer {
  /// A value by its name; another name is refused with all that there are.
  func choice<Value: RawRepresentable & CaseIterable>(
    of type: Value.Type, forKey key: Key
  ) throws -> Value where Value.RawValue == String {
    guard let value = Value(rawValue: try decode(String.self, forKey: key)) else {
      let names = Value.allCases.map(\.rawValue).joined(separator: ", ")
      throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "has to be one of \(names)")
    }
    return value
  }
}

/// The parameters of a query, each at most once.
struct QueryParameters {
  private var values: [String: String] = [:]

  /// Throws for names that are not among these, repeated ones, and percent signs without two digits.
  init(_ query: String?, allowed: [String] = []) throws(ControlProblem) {
    for part in (query ?? "").split(separator: "&", omittingEmptySubsequences: true) {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = try Self.resolved(pair[0])
      guard allowed.contains(name) else {
        let known = allowed.isEmpty ? "there are none here" : "known are \(allowed.joined(separator: ", "))"
        throw ControlProblem(400, "the parameter '\(name)' is unknown; \(known)")
      }
      guard values[name] == nil else { throw ControlProblem(400, "the parameter '\(name)' is repeated") }
      values[name] = try pair.count > 1 ? Self.resolved(pair[1]) : ""
    }
  }

  subscript(_ name: String) -> String? { values[name] }

  /// A whole number in a range.
  func number(_ name: String, in range: ClosedRange<Int>, default value: Int) throws(ControlProblem) -> Int {
    guard let text = values[name] else { return value }
    guard let number = Int(text), range.contains(number), text.first != "+" else {
      throw ControlProblem(400, "'\(name)' has to be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// Seconds from 0.
  func seconds(_ name: String, upTo most: Double, default value: Double) throws(ControlProblem) -> Duration {
    guard let text = values[name] else { return .seconds(value) }
    guard let seconds = Double(text), (0...most).contains(seconds) else {
      throw ControlProblem(400, "'\(name)' has to be seconds from 0 to \(Int(most))")
    }
    return .seconds(seconds)
  }

  /// Text in which `%41` is A and `+` is a blank.
  static func resolved(_ text: some StringProtocol, plusIsBlank: Bool = true) throws(ControlProblem) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
          rest.first != UInt8(ascii: "+"), rest.first != UInt8(ascii: "-")
        else { throw ControlProblem(400, "'%' without two hexadecimal digits") }
        bytes.append(value)
        rest = rest.dropFirst(2)
      case UInt8(ascii: "+") where plusIsBlank: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ControlProblem(400, "the address is not UTF-8")
    }
    return text
  }
}

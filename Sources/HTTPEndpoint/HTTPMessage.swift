/// A request as a service sees it.
package struct HTTPRequest: Sendable {
  /// The method in capitals, such as `GET`; never `HEAD`, which is answered as `GET` is, without the body.
  package let method: String
  /// The path without the query, as it came: percent signs are not resolved.
  package let path: String
  /// What follows the first `?`; `nil`: there is none.
  package let query: String?
  /// The media type of the body without parameters, in lower case; `nil`: the request names none.
  package let mediaType: String?
  package let body: [UInt8]
  /// The host and port that the client means, as it names them; `nil`: it does not.
  package let host: String?
  /// Whether a browser sends it for a page of some site.
  package let isOfPage: Bool

  /// Whether the client means an address of numbers, or `localhost`: names of others can be made to mean this machine.
  package var isForLoopback: Bool {
    guard let host else { return true }
    if host.hasPrefix("[") { return true }
    let name = host.prefix { $0 != ":" }.lowercased()
    return name == "localhost"
      || name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy {
        UInt8($0) != nil
      }
  }
}

/// A service's answer to a request.
package struct HTTPAnswer: Sendable {
  package var status: Int
  /// Beside the length and `Connection: close`.
  package var headers: [(name: String, value: String)]
  package var body: [UInt8]

  package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
    (self.status, self.headers, self.body) = (status, headers, body)
  }

  /// A line of text.
  package static func text(
    _ status: Int, _ line: String, headers: [(name: String, value: String)] = []
  ) -> HTTPAnswer {
    HTTPAnswer(
      status: status, headers: headers + [("Content-Type", "text/plain; charset=utf-8")],
      body: Array((line + "\n").utf8))
  }
}

/// Why bytes are not a request that a service can be asked.
package enum HTTPProblem: Sendable {
  /// Not HTTP, or not in a form that is understood.
  case malformed
  /// The line or the fields of a request are too long.
  case tooLongHead
  /// The body is too long.
  case tooLongBody

  /// The status of the answer.
  package var status: Int {
    switch self {
    case .malformed: 400
    case .tooLongHead: 431
    case .tooLongBody: 413
    }
  }

  /// A sentence for people.
  package var sentence: String {
    switch self {
    case .malformed: "Not an HTTP request."
    case .tooLongHead, .tooLongBody: "The request is too long."
    }
  }
}

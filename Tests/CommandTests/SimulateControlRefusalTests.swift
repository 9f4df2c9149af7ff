import Foundation
import TestSupport
import Testing

/// `--control`: requests that are none, or that hurt.
@Suite("simulate: refusals of the control endpoint", .waiting)
struct SimulateControlRefusalTests {
  /// A problem document (RFC 9457) that says the status of its answer.
  private static func expectProblem(
    _ answer: ControlledGateway.Answer, _ status: Int, _ detail: String, _ comment: String,
    at place: SourceLocation = #_sourceLocation
  ) throws {
    #expect(answer.status == status, "\(comment)", sourceLocation: place)
    #expect(answer.fields["content-type"] == "application/problem+json", "\(comment)", sourceLocation: place)
    let problem = try answer.object(place)
    #expect(problem["status"] as? Int == answer.status && problem["type"] as? String == "about:blank")
    #expect((problem["title"] as? String)?.isEmpty == false)
    let text = try #require(problem["detail"] as? String)
    #expect(text.contains(detail), "\(comment): \(text)", sourceLocation: place)
  }

  @Test("What is not as described is a problem that says what is wrong, and changes nothing")
  func malformed() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let before = try gateway.get("/faults").body
      let token = String(repeating: "ab", count: 1_001)
      let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
      let topic = String(repeating: "x", count: 1_001)
      let devices = Array(repeating: #"{"token":"ab","state":"active"}"#, count: 1_001).joined(separator: ",")
      for (method, path, body, status, detail) in [
        ("GET", "/nothing", nil, 404, "GET /openapi.json"), ("GET", "/notifications/", nil, 404, "GET /openapi.json"),
        ("GET", "/counts?color=red", nil, 400, "'color' is unknown; there are none here"),
        (
          "GET", "/notifications?color=red", nil, 400,
          "known are token, topic, apns_id, collapse_id, push_type, text, fate, since, limit"
        ),
        ("GET", "/notifications?limit=1&limit=2", nil, 400, "'limit' is repeated"),
        ("GET", "/notifications?limit=0", nil, 400, "from 1 to 10000"),
        ("GET", "/notifications?limit=10001", nil, 400, "from 1 to 10000"),
        ("GET", "/notifications?limit=99999999999999999999", nil, 400, "from 1 to 10000"),
        ("GET", "/notifications?since=-1", nil, 400, "from 0"), ("GET", "/notifications?since=1.5", nil, 400, "from 0"),
        ("GET", "/notifications?token=xyz", nil, 400, "hexadecimal"),
        ("GET", "/notifications?token=", nil, 400, "hexadecimal"),
        ("GET", "/notifications?fate=unknown", nil, 400, "accepted, rejected or discarded"),
        ("GET", "/notifications?text=%zz", nil, 400, "two hexadecimal digits"),
        ("GET", "/notifications?text=\(topic)", nil, 400, "at most 1000 characters"),
        ("GET", "/" + String(repeating: "/", count: 8_192), nil, 404, "no path so long"),
        ("GET", "/notifications?text=%ff", nil, 400, "UTF-8"), ("GET", "/%ff", nil, 400, "UTF-8"),
        ("GET", "/notifications/wait?within_s=601", nil, 400, "from 0 to 600"),
        ("GET", "/notifications/wait?within_s=nan", nil, 400, "from 0 to 600"),
        ("GET", "/notifications/wait?within_s=-1", nil, 400, "from 0 to 600"),
        ("GET", "/devices/ab", nil, 400, "'topic' is missing"), ("GET", "/devices/a?topic=a", nil, 400, "hexadecimal"),
        ("GET", "/devices?after=abc", nil, 400, "hexadecimal"),
        ("PUT", "/devices/\(token)", #"{"state":"active"}"#, 400, "1 to 1000 pairs of hexadecimal digits"),
        ("PUT", "/devices/ab", #"{"state":"broken"}"#, 400, "state"),
        ("PUT", "/devices/ab", "{}", 400, "state is missing"),
        ("POST", "/devices", #"{"devices":[{"token":"ab"}]}"#, 400, "devices[0].state is missing"),
        ("POST", "/devices", #"{"devices":[\#(devices)]}"#, 400, "devices: has to be a list of at most 1000"),
        ("POST", "/reset", #"{"all":true}"#, 400, "no body"),
        ("POST", "/faults/silence", nil, 415, "application/json"),
        ("POST", "/faults/silence", "", 400, "not valid JSON"), ("POST", "/faults/silence", "{", 400, "not valid JSON"),
        ("POST", "/faults/silence", #"{"for_s":1e999}"#, 400, "a number is out of range"),
        ("POST", "/faults/silence", deep, 400, "JSON"),
        ("POST", "/faults/silence", #"{"for_s":1,"color":"red"}"#, 400, "color: is unknown; known are for_s"),
        ("POST", "/faults/silence", #"{"for_s":"1"}"#, 400, "for_s has another type"),
        ("POST", "/connections/close", #"{"how":"gently"}"#, 400, "how"),
        ("POST", "/connections/close", #"{"how":"fin","topic":"\#(topic)"}"#, 400, "topic: has to be at most 1000"),
        ("POST", "/faults/rejections", "{}", 400, "one of every, probability, uninstalled, prefix, token"),
        ("POST", "/faults/rejections", #"{"every":2,"token":"ab"}"#, 400, "one of every"),
        ("POST", "/faults/rejections", #"{"every":0}"#, 400, "from 1"),
        ("POST", "/faults/rejections", #"{"every":1,"status":10}"#, 400, "is no rejection"),
        ("POST", "/faults/rejections", #"{"every":1,"status":256}"#, 400, "status has to be 1 to 255"),
        ("POST", "/faults/rejections", #"{"every":1,"topic":"\#(topic)"}"#, 400, "at most 1000 characters"),
        ("POST", "/faults/rejections", #"{"token":"\#(token)"}"#, 400, "1 to 1000 pairs"),
        ("PATCH", "/faults", #"{"read_rate":0}"#, 400, "read_rate: has to be a number from 1"),
        ("PATCH", "/faults", #"{"read_rate":1,"reject":[{"every":0}]}"#, 400, "reject"),
        ("PATCH", "/faults", #"{"idle_close_s":-1}"#, 400, "seconds from 0 to 86400"),
        (
          "PATCH", "/faults", #"{"response_delay_min_s":2,"response_delay_max_s":1}"#, 422,
          "response_delay_max_s is less"
        ),
        ("PATCH", "/faults", #"{"wrong_environment":["\#(topic)"]}"#, 400, "at most 1000 characters"),
        (
          "PATCH", "/faults", #"{"response_pieces":[\#(Array(repeating: "1", count: 1_001).joined(separator: ","))]}"#,
          400, "at most 1000"
        ),
        ("PATCH", "/faults", "[]", 400, "the body"), ("PATCH", "/faults", "null", 400, "the body"),
      ] as [(String, String, String?, Int, String)] {
        let answer = try gateway.ask(method, path, body)
        try Self.expectProblem(answer, status, detail, "\(method) \(path.prefix(60)) \((body ?? "").prefix(60))")
      }
      #expect(try gateway.get("/faults").body == before)
      #expect(try gateway.get("/devices").object()["devices"] as? [[String: String]] == [])
      _ = try gateway.stop()
    }
  }

  @Test("A method that a path has not is answered with those that it has, and HEAD as GET without the body")
  func methods() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      for (method, path, allowed) in [
        ("POST", "/counts", "GET, HEAD"), ("GET", "/reset", "POST"), ("HEAD", "/reset", "POST"),
        ("POST", "/faults", "GET, PATCH, HEAD"), ("PATCH", "/devices/ab", "GET, PUT, DELETE, HEAD"),
        ("GET", "/devices/online", "POST"), ("OPTIONS", "/faults", "GET, PATCH, HEAD"),
      ] {
        let answer = try gateway.ask(method, path)
        #expect(answer.status == 405 && answer.fields["allow"] == allowed, "\(method) \(path) \(answer.fields)")
        if method != "HEAD" { try Self.expectProblem(answer, 405, "takes \(allowed)", path) }
      }
      let (get, head) = (try gateway.get("/faults"), try gateway.ask("HEAD", "/faults"))
      #expect(head.status == 200 && head.body.isEmpty && get.fields == head.fields && get.body.count > 100)
      _ = try gateway.stop()
    }
  }

  @Test("A page in a browser, and one whose site's name means this machine, can neither read nor change anything")
  func pages() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      for fields in [
        ["Host: localhost", "Origin: http://example.com"], ["Host: localhost", "Origin: null"],
        ["Host: localhost", "Sec-Fetch-Site: cross-site"], ["Host: localhost", "Sec-Fetch-Site: same-origin"],
        ["Host: evil.example:\(gateway.control)"], ["Host: 127.0.0.1.evil.example"], ["Host: localhost.evil.example"],
      ] {
        for (method, path) in [("GET", "/notifications"), ("POST", "/reset"), ("OPTIONS", "/reset"), ("GET", "/no")] {
          try Self.expectProblem(
            try gateway.ask(method, path, fields: fields), 403, "the request", "\(fields) \(method) \(path)")
        }
      }
      for fields in [
        ["Host: LOCALHOST:\(gateway.control)"], ["Host: 127.0.0.1"], ["Host: [::1]:1"],
        ["Host: localhost", "Sec-Fetch-Site: none"],
      ] {
        #expect(try gateway.ask("GET", "/notifications", fields: fields).status == 200, "\(fields)")
      }
      // A form of a page needs no permission, but cannot say that it has JSON.
      let form = ["Host: localhost", "Content-Type: text/plain"]
      try Self.expectProblem(
        try gateway.ask("POST", "/faults/silence", #"{"for_s":60}"#, fields: form), 415, "application/json", "form")
      _ = try gateway.stop()
    }
  }

  @Test("Too much of a request is refused, and the gateway goes on")
  func tooLong() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let long = String(repeating: "x", count: 2 << 20)
      try Self.expectProblem(try gateway.ask("PATCH", "/faults", long), 413, "too long", "body")
      try Self.expectProblem(try gateway.get("/" + long), 431, "too long", "path")
      try Self.expectProblem(
        try gateway.ask("GET", "/", fields: ["Host: localhost", "X: \(long)"]), 431, "too long", "X")
      let client = try PlainClient(gateway.control)
      try client.send(Array("\u{1}\u{2}\r\n\r\n".utf8))
      try Self.expectProblem(try ControlledGateway.Answer(try client.receive()), 400, "HTTP", "garbage")
      #expect(try gateway.get("/counts").status == 200)
      _ = try gateway.stop()
    }
  }

  @Test("Rules and devices that requests leave behind are limited")
  func limits() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let rules = Array(repeating: #"{"every":1000000}"#, count: 1_000).joined(separator: ",")
      try gateway.change("PATCH", "/faults", #"{"reject":[\#(rules)]}"#)
      try Self.expectProblem(
        try gateway.ask("POST", "/faults/rejections", #"{"every":5}"#), 409, "more than 1000 rejection rules", "rules")
      #expect((try gateway.get("/faults").object()["reject"] as? [Any])?.count == 1_000)
      _ = try gateway.stop()
    }
  }

  @Test("Clients that ask much and read nothing take bounded memory, and lock nobody out")
  func greed() throws {
    try Command.inFolder { command in
      let gateway = try ControlledGateway(in: command)
      let client = try PlainClient(gateway.gateway)
      let payload = #"{"aps":{"alert":"\#(String(repeating: "x", count: 1_900))"}}"#
      for number in 1...UInt32(2_400) { try client.send(Frames.framed(number, payload: payload)) }
      _ = try gateway.wait(2_400)
      let before = gateway.residentBytes
      let repeating = String(repeating: "x", count: 999)
      // More than the endpoint serves at a time; the oldest are closed.
      let greedy = try (0..<96).map { number in
        switch number % 16 {
        case 0: try gateway.begin("GET", "/notifications?limit=10000")
        case 1: try gateway.begin("GET", "/verdict")
        case 2 where number == 50: try gateway.begin("GET", "/notifications?text=\(repeating)y")
        default: try gateway.begin("GET", "/notifications/wait?count=10000&within_s=600")
        }
      }
      #expect(try gateway.get("/counts").number("gateway", "received") == 2_400)
      #expect(try gateway.get("/verdict").number("sendings") == 2_400)
      #expect(gateway.residentBytes - before < 1 << 30)
      for question in greedy { question.client.close() }
      _ = try gateway.stop()
    }
  }
}

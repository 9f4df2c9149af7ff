import Foundation
import TestSupport
import Testing

/// `simulate --http2-channels` and curl: channels, broadcasts to them, and a recording of both.
@Suite("simulate --http2-channels", .waiting)
struct SimulateBroadcastTests {
  @Test(
    "The ledger has the channels, and a recording the same requests and broadcasts",
    .enabled(if: LoopbackCapture.isPossible, "needs root and dumpcap"))
  func books() throws {
    try Command.inFolder { command in
      let service = try RunningProcess(
        Command.path,
        [
          "simulate", "--http2", "127.0.0.1:0", "--http2-channels", "127.0.0.1:0", "--plain", "--ready-file", "up",
          "--ledger", "ledger.json",
        ], in: command.folder, name: "service")
      let file = command.folder.appending(path: "up")
      #expect(waitUntil { !service.isRunning || FileManager.default.fileExists(atPath: file.path) })
      var ports: [String: Int] = [:]
      for line in try command.read("up").split(separator: "\n") {
        let words = line.split(separator: " ")
        ports[String(words[0])] = words[1].split(separator: ":").last.flatMap { Int($0) }
      }
      let (sending, managing) = (try #require(ports["http2"]), try #require(ports["channels"]))
      let recordings = try [("sent", sending), ("managed", managing)].map {
        try LoopbackCapture(port: $0.1, file: "\($0.0).pcapng", in: command)
      }
      func curl(_ port: Int, _ path: String, _ arguments: [String]) throws -> String {
        let process = try RunningProcess(
          "curl",
          ["-s", "-i", "--http2-prior-knowledge"] + arguments + ["http://127.0.0.1:\(port)\(path)"], in: command.folder)
        #expect(try process.end().status == 0)
        return process.output
      }
      let channels = "/1/apps/com.example.app/channels"
      let created = try curl(managing, channels, ["-d", #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#])
      #expect(created.hasPrefix("HTTP/2 201"))
      let channel = try #require(created.firstMatch(of: #/apns-channel-id: (\S+)/#)).output.1
      let fields = [
        "-H", "apns-channel-id: \(channel)", "-H", "apns-priority: 5", "-H", "apns-push-type: Liveactivity", "-d", "{}",
      ]
      let later = Int(Date().timeIntervalSince1970) + 3_600
      let broadcast = "/4/broadcasts/apps/com.example.app"
      #expect(
        try curl(sending, broadcast, fields + ["-H", "apns-expiration: \(later)"]).hasPrefix("HTTP/2 200"))
      #expect(try curl(sending, broadcast, fields).hasSuffix(#"{"reason":"BadExpirationDate"}"#))
      #expect(try curl(managing, channels, ["-X", "GET"]).hasSuffix(#"{"reason":"MissingChannelId"}"#))
      service.send(SIGTERM)
      #expect(try service.end().status == 0)
      for recording in recordings { try recording.end() }

      let data = try Data(contentsOf: command.folder.appending(path: "ledger.json"))
      expectValid([UInt8](data), .ledger, "ledger.json")
      let text = try command.shell(
        "jq -c '.http2 | [.received, .accepted, .rejected, .other_requests, .channels]' ledger.json"
      ).output
      #expect(
        text == """
          [2,1,1,2,{"created":1,"deleted":0,"keeping":1,"listed":0,"read":0,"registered":1,\
          "rejected":{"MissingChannelId":1}}]

          """)
      let sent = try command.run([
        "decode", "--type", "notification", "--fields", "bundle,channel_id,status,reason", "sent.pcapng",
      ])
      let records = sent.lines.filter { $0.contains(#""bundle":"com.example.app","channel_id":"\#(channel)""#) }
      #expect(records.count == 2, "\(sent.output)")
      #expect(records.count { $0.contains(#""status":200"#) } == 1)
      let managed = try command.run(["decode", "managed.pcapng"]).lines.filter { $0.contains(#""channel_request""#) }
      #expect(managed.count == 2)
      #expect(managed.count { $0.contains(#""action":"create""#) && $0.contains(#""status":201"#) } == 1)
    }
  }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// A network namespace with a loopback interface that nobody else uses.
private final class NetworkNamespace {
  private static let programs = [
    "/usr/bin/dumpcap", "/usr/bin/unshare", "/usr/bin/nsenter", "/usr/sbin/ip", "/usr/bin/python3",
  ]
  static let isPossible =
    getuid() == 0 && programs.allSatisfy(FileManager.default.isExecutableFile(atPath:))
    && canUnshare

  /// Containers often may not.
  private static let canUnshare: Bool = {
    let process = try? ChildProcess("/usr/bin/unshare", ["-n", "/usr/sbin/ip", "link", "set", "lo", "up"])
    return (try? process?.end())?.status == 0
  }()

  private let holder: RunningProcess
  private let command: Command

  init(_ command: Command) throws {
    self.command = command
    holder = try RunningProcess(
      "/usr/bin/unshare", ["-n", "/bin/bash", "-c", "ip link set lo up && echo ready && exec sleep 100000"],
      in: command.folder)
    let isReady = waitUntil { holder.output == "ready\n" }
    guard isReady else { throw TimeoutError("no namespace: \(holder.errors)") }
  }

  deinit { holder.send(SIGKILL) }

  /// The process that is started has its number.
  func run(_ arguments: [String], pipe: Pipe? = nil) throws -> RunningProcess {
    try RunningProcess(
      "/usr/bin/nsenter", ["--net=/proc/\(holder.identifier)/ns/net", "--"] + arguments, in: command.folder,
      pipe: pipe)
  }
}

/// A gateway on port 2195 and its client, which do what lines of standard input say.
private final class Traffic {
  private static let script = #"""
    import socket, struct, sys
    def frame(n):
        items = b''
        for kind, value in ((1, b'\x07' * 32), (2, b'{"aps":{"alert":"n%d"}}' % n), (3, struct.pack('>I', n)),
                            (4, b'\0\0\0\0'), (5, b'\x0a')):
            items += struct.pack('>BH', kind, len(value)) + value
        return b'\x02' + struct.pack('>I', len(items)) + items
    listener = socket.create_server(('127.0.0.1', 2195))
    client = server = None
    print('listening', flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'open':
            client = socket.create_connection(('127.0.0.1', 2195))
            server, _ = listener.accept()
        elif words[0] == 'send':
            client.sendall(frame(int(words[1])))
            server.recv(65536)
        elif words[0] == 'reject':
            server.sendall(b'\x08\x08' + struct.pack('>I', int(words[1])))
            client.recv(6)
        elif words[0] == 'close':
            server.close(); client.close()
        print('done', line.strip(), flush=True)
    """#

  private let running: RunningProcess
  private let pipe = Pipe()
  private var done = 0

  init(_ namespace: NetworkNamespace) throws {
    running = try namespace.run(["/usr/bin/python3", "-c", Self.script], pipe: pipe)
    let isReady = waitUntil { running.output.contains("listening") }
    guard isReady else { throw TimeoutError("no traffic: \(running.errors)") }
  }

  /// Returns when it is done.
  func say(_ line: String) throws {
    done += 1
    try pipe.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    let isDone = waitUntil { running.output.components(separatedBy: "done").count == done + 1 }
    guard isDone else {
      throw TimeoutError("not done: \(line): \(running.errors)")
    }
  }

  /// Sends until a capture has seen something.
  func wake(_ capture: RunningProcess) throws {
    try say("open")
    var number = 1_000
    let isSeen = try waitUntil {
      number += 1
      try say("send \(number)")
      return capture.output.contains("\"n1") || !capture.isRunning
    }
    guard isSeen, capture.isRunning else { throw TimeoutError("nothing captured: \(capture.errors)") }
    try say("close")
  }
}

@Suite(
  "Live captures of an interface", .waiting,
  .enabled(if: NetworkNamespace.isPossible, "needs root, network namespaces, dumpcap, iproute2 and python3"))
struct LiveInterfaceTests {
  private func decode(_ namespace: NetworkNamespace, _ arguments: String...) throws -> RunningProcess {
    try namespace.run([Command.path, "decode", "-i", "lo", "--filter", "tcp port 2195"] + arguments)
  }

  @Test("Notifications are seen while their connection is open; Ctrl-C closes the books")
  func decodes() throws {
    try Command.inFolder { command in
      let namespace = try NetworkNamespace(command)
      let traffic = try Traffic(namespace)
      let capture = try decode(namespace)
      try traffic.wake(capture)
      try traffic.say("open")
      for number in 1...5 { try traffic.say("send \(number)") }
      #expect(waitUntil { capture.output.contains(#""alert":"n5""#) })
      try traffic.say("reject 3")
      try traffic.say("close")
      #expect(waitUntil { capture.output.contains(#""type":"error_response""#) })
      capture.send(SIGINT)
      let outcome = try capture.end()
      #expect(outcome.status == 130 && outcome.errors == "")
      let response = try #require(outcome.lines.first { $0.contains(#""type":"error_response""#) })
      #expect(response.contains(#""status":8"#) && response.contains(#""accepted":2,"discarded":2"#))
      let connection = try #require(outcome.lines.first { $0.contains(#""connection":2,"service""#) })
      #expect(connection.contains(#""accepted":2,"rejected":1,"discarded":2,"unknown":0"#))
      // dumpcap counts; it lost nothing here.
      #expect(outcome.lines.last?.contains("dropped_packets") == false)
    }
  }

  @Test(
    "tcpdump does as well where there is no dumpcap",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/tcpdump"), "needs tcpdump"))
  func tcpdump() throws {
    try Command.inFolder { command in
      let namespace = try NetworkNamespace(command)
      let traffic = try Traffic(namespace)
      let capture = try namespace.run([
        "/bin/bash", "-c",
        """
        mkdir only && ln -s /usr/bin/tcpdump only/tcpdump
        PATH=$PWD/only exec "$apnscope" decode -i lo --filter 'tcp port 2195' --keep ring
        """,
      ])
      try traffic.wake(capture)
      capture.send(SIGINT)
      let outcome = try capture.end()
      #expect(outcome.status == 130 && outcome.errors == "")
      #expect(outcome.lines[0].contains(#""format":"pcap""#))
      let kept = try command.run("decode", "ring")
      #expect(kept.lines[0].contains(#""format":"pcapng""#))
      func count(_ outcome: Outcome) -> Int { outcome.lines.count { $0.contains(#""type":"notification""#) } }
      #expect(count(kept) == count(outcome) && count(kept) > 0)
    }
  }

  @Test("The death of dumpcap is an error, after everything that came was decoded")
  func death() throws {
    try Command.inFolder { command in
      let namespace = try NetworkNamespace(command)
      let traffic = try Traffic(namespace)
      let capture = try decode(namespace)
      try traffic.wake(capture)
      #expect(try command.shell("pkill -KILL -P \(capture.identifier) dumpcap").status == 0)
      let outcome = try capture.end()
      #expect(outcome.status == 74)
      #expect(outcome.errors == "apnscope: lo: dumpcap was killed by signal 9\n")
      #expect(outcome.lines.contains { $0.contains(#""type":"notification""#) })
      #expect(outcome.lines.last?.hasPrefix(#"{"type":"summary""#) == true)
    }
  }

  @Test("Interfaces are listed, and one that is not there is told as such")
  func interfaces() throws {
    try Command.inFolder { command in
      let namespace = try NetworkNamespace(command)
      let list = try namespace.run([Command.path, "decode", "-D"]).end()
      #expect(list.status == 0 && list.output.contains("lo"))
      let none = try namespace.run([Command.path, "inspect", "-i", "nosuch0"]).end()
      #expect(none.status == 66 && none.output == "")
      #expect(none.errors.contains("nosuch0"))
      let filter = try namespace.run([Command.path, "inspect", "-i", "lo", "--filter", "no filter"]).end()
      #expect(filter.status == 64)
    }
  }

  @Test("A key log that grows meanwhile opens connections, and the ring needs none")
  func keyLog() throws {
    try Command.inFolder { command in
      let namespace = try NetworkNamespace(command)
      #expect(try command.run("identity", "--directory", "ids", "--topic", "com.example.app").status == 0)
      try command.write([], "keys.log")
      let gateway = try namespace.run([
        Command.path, "simulate", "--identity", "ids", "--ledger", "sim.json",
      ])
      #expect(waitUntil { gateway.output.contains("2195") || gateway.errors.contains("2195") })
      let capture = try decode(namespace, "--keys", "keys.log", "--keep", "ring")
      // Before it captures there is nothing to see of the first connections.
      var round = 0
      let isSeen = try waitUntil {
        round += 1
        _ = try namespace.run([
          "/bin/bash", "-c",
          """
          (printf '\\1\\0\\0\\0\\7\\0\\0\\0\\0\\0\\40'; printf '%032d' 0; printf '\\0\\40{"aps":{"alert":"followed %03d"}}' \(round); sleep 0.3) |
            openssl s_client -quiet -no_ign_eof -keylogfile keys.log -connect localhost:2195 -CAfile ids/ca.pem \\
              -cert ids/com.example.app.pem -key ids/com.example.app.key 2>/dev/null
          """,
        ]).end()
        return capture.output.contains("followed")
      }
      #expect(isSeen, "\(capture.errors) \(gateway.errors)")
      capture.send(SIGINT)
      let outcome = try capture.end()
      #expect(outcome.status == 130)
      gateway.send(SIGINT)
      _ = try gateway.end()
      let kept = try command.run("decode", "ring")
      #expect(kept.lines.contains { $0.contains("followed") })
    }
  }
}

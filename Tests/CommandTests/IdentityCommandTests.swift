import Foundation
import TestSupport
import Testing

@Suite("identity", .waiting)
struct IdentityCommandTests {
  private static let everything = [
    "identity", "--directory", "ids", "--topic", "com.example.app", "--revoked", "--expired",
  ]

  @Test("It tells what it made, and no secrets; openssl takes it") func makes() throws {
    try Command.inFolder { command in
      let outcome = try command.run("identity", "--directory", "ids", "--topic", "com.example.app")
      #expect(outcome.status == 0)
      #expect(outcome.errors == "")
      #expect(outcome.lines.count == 4)
      for (line, expected) in zip(
        outcome.lines,
        [
          #/authority +ids/ca.pem ids/ca.key  \(new, until 20\d\d-\d\d-\d\d\)/#,
          #/gateway +ids/gateway.pem ids/gateway.key  \(new, until 20\d\d-\d\d-\d\d\)/#,
          #/provider com.example.app +ids/com.example.app.pem ids/com.example.app.key ids/com.example.app.combined.pem ids/com.example.app.p12  \(new, until 20\d\d-\d\d-\d\d\)/#,
          #/revocation list, 0 revoked +ids/crl.pem/#,
        ])
      { #expect(line.wholeMatch(of: expected) != nil, "\(line)") }
      for name in ["ca", "gateway", "com.example.app"] {
        let key = try command.read("ids/\(name).key").split(separator: "\n")
        #expect(key.first == "-----BEGIN PRIVATE KEY-----")
        for line in key { #expect(!outcome.output.contains(line)) }
      }
      let verified = try command.shell(
        "cd ids && openssl verify -x509_strict -CAfile ca.pem -crl_check -CRLfile crl.pem gateway.pem com.example.app.pem"
      )
      #expect(verified.output == "gateway.pem: OK\ncom.example.app.pem: OK\n")
    }
  }

  @Test("Again: what is there is kept, and --force makes it anew") func again() throws {
    try Command.inFolder { command in
      _ = try command.shell(#""$apnscope" \#(Self.everything.joined(separator: " "))"#)
      let key = try command.read("ids/com.example.app.key")
      let second = try command.run("identity", "--directory", "ids/", "--topic", "com.example.app", "--topic", "b")
      #expect(second.status == 0)
      #expect(second.lines.count { $0.contains("(kept, ") } == 3)
      #expect(second.lines.count { $0.contains("(new, ") } == 1)
      #expect(second.output.contains("revocation list, 1 revoked"))
      #expect(try command.read("ids/com.example.app.key") == key)
      let forced = try command.run(
        "identity", "--directory", "ids", "--topic", "com.example.app", "--force", "--expired")
      #expect(forced.lines.count { $0.contains("(kept, ") } == 1)
      #expect(forced.output.contains(#/com.example.app, expired .* \(new, ended 20/#))
      #expect(try command.read("ids/com.example.app.key") != key)
    }
  }

  @Test("--key rsa2048, --days 2") func rsa() throws {
    try Command.inFolder { command in
      let outcome = try command.run(
        "identity", "--directory", "ids", "--topic", "a", "--key", "rsa2048", "--days", "2")
      #expect(outcome.status == 0)
      let text = try command.shell(
        "for f in ca gateway a; do openssl x509 -in ids/$f.pem -noout -text | grep Public-Key; done")
      #expect(text.lines.count == 3)
      #expect(text.lines.allSatisfy { $0.contains("(2048 bit)") })
      #expect(try command.shell("openssl x509 -in ids/a.pem -checkend \(2 * 86_400 - 600)").status == 0)
      #expect(try command.shell("openssl x509 -in ids/a.pem -checkend \(2 * 86_400 + 600)").status == 1)
    }
  }

  @Test("Keys are closed whatever the umask") func umask() throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #"umask 0; "$apnscope" identity --directory ids --topic a && stat -c %a ids/*.key ids/a.combined.pem ids/a.p12 ids/a.pem"#
      )
      #expect(outcome.lines.suffix(6) == ["600", "600", "600", "600", "600", "644"])
    }
  }

  @Test("Keys are never open, not even for a moment", .enabled(if: ExternalTool.isInstalled("strace"))) func created()
    throws
  {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #"umask 0; strace -f -e trace=openat,open,creat,chmod,fchmod,fchmodat "$apnscope" identity --directory ids --topic a 2>&1 | grep 'O_CREAT\|chmod'"#
      )
      let keys = outcome.lines.filter { $0.contains(".key") || $0.contains(".combined") || $0.contains(".p12") }
      #expect(keys.count == 5)
      for line in keys { #expect(line.contains("O_EXCL") && line.contains(", 0600)"), "\(line)") }
    }
  }

  // MARK: files for other programs

  /// Twelve of 22 clients needed an openssl command before they could read what identity had written.
  @Test("openssl, Python and load push with one PEM file and with PKCS#12", arguments: [false, true])
  func combined(isLegacy: Bool) throws {
    try Command.inFolder { command in
      try command.write(Array("correct horse\n".utf8), "phrase")
      var arguments = [
        "identity", "--directory", "ids", "--topic", "com.example.app", "--pass-phrase-file", "phrase",
        "--server-name", "gateway.push.apple.com", "--authority-organization", "Apple Inc.",
      ]
      if isLegacy { arguments.append("--pkcs12-legacy") }
      let made = try RunningProcess(Command.path, arguments, in: command.folder).end()
      #expect(made.status == 0, "\(made.errors)")
      let simulator = try SimulatorProcess(in: command)
      let pem = "ids/com.example.app.combined.pem"
      try command.write(Frames.framed(1) + Frames.known, "frames")
      let client = try RunningProcess(
        "openssl",
        [
          "s_client", "-quiet", "-connect", "127.0.0.1:\(simulator.gateway)", "-CAfile", "ids/ca.pem", "-servername",
          "gateway.push.apple.com", "-verify_hostname", "gateway.push.apple.com", "-verify_return_error", "-cert", pem,
          "-key", pem,
        ], in: command.folder, input: command.folder.appending(path: "frames"))
      _ = try client.end()
      #expect(client.outputBytes == Frames.response(2, Frames.marker), "\(client.errors)")
      for identity in [[pem], ["ids/com.example.app.p12", "--pass-phrase-file", "phrase"]] {
        let load = try RunningProcess(
          Command.path,
          ["load", "--gateway", "127.0.0.1:\(simulator.gateway)", "--ca", "ids/ca.pem", "--count", "100", "--identity"]
            + identity + LoadProcess.patience, in: command.folder
        ).end()
        #expect(load.status == 0, "\(load.errors)")
        #expect(load.output.contains("100 = 100 accepted"))
      }
      let wrong = try RunningProcess(
        Command.path, ["load", "--gateway", "127.0.0.1:1", "--identity", "ids/com.example.app.p12"], in: command.folder
      ).end()
      #expect(wrong.status == 65)
      #expect(try simulator.stop().gateway.accepted == 201)
    }
  }

  @Test("An authority that is there keeps its name: 64") func otherName() throws {
    try Command.inFolder { command in
      let first = try command.run("identity", "--directory", "ids", "--topic", "a", "--authority-name", "First")
      #expect(first.status == 0)
      let other = try command.run("identity", "--directory", "ids", "--topic", "a", "--authority-name", "Second")
      #expect(other.status == 64)
      #expect(
        other.errors.wholeMatch(
          of:
            #/apnscope: ids/ca\.pem: is named OU=apnscope throw-away authority [0-9a-f]+,CN=First, which cannot be changed; use another directory\n/#
        ) != nil, "\(other.errors)")
    }
  }

  // MARK: interruptions and company

  @Test("Killed at any moment: every file is whole, and the next run completes it") func killed() throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #"""
        for i in $(seq 1 2 60); do
          timeout -s KILL 0.$(printf %03d $i) "$apnscope" identity --directory ids --topic a --topic b --revoked --force >/dev/null
          [ $? = 137 ] && echo killed
          for f in $(ls ids 2>/dev/null); do
            case $f in
              crl.pem) openssl crl -in ids/$f -noout || echo bad $f;;
              *.pem) openssl x509 -in ids/$f -noout || echo bad $f;;
              *.p12) openssl pkcs12 -in ids/$f -passin pass: -nodes -out /dev/null || echo bad $f; [ $(stat -c %a ids/$f) = 600 ] || echo open $f;;
              *.key) openssl pkey -in ids/$f -noout || echo bad $f; [ $(stat -c %a ids/$f) = 600 ] || echo open $f;;
            esac
          done
        done 2>&1 | sort | uniq -c
        "$apnscope" identity --directory ids --topic a --topic b --revoked | wc -l
        cd ids; openssl verify -x509_strict -CAfile ca.pem -crl_check -CRLfile crl.pem gateway.pem a.pem b.pem
        openssl verify -CAfile ca.pem -crl_check -CRLfile crl.pem a.revoked.pem b.revoked.pem 2>&1 | grep -c 'certificate revoked'
        """#)
      #expect(!outcome.output.contains("bad"), "\(outcome.output)")
      #expect(!outcome.output.contains("open"), "\(outcome.output)")
      #expect(outcome.output.contains("killed"), "no run was long enough")
      #expect(outcome.lines.suffix(5) == ["7", "gateway.pem: OK", "a.pem: OK", "b.pem: OK", "2"])
    }
  }

  @Test("Ten at the same time: one authority, and every revocation is kept") func together() throws {
    try Command.inFolder { command in
      let outcome = try command.shell(
        #"""
        mkdir ids; for i in $(seq 10); do "$apnscope" identity --directory ids --topic t$i --revoked >/dev/null & done; wait
        cd ids; openssl verify -CAfile ca.pem t*[0-9].pem | grep -c OK
        openssl verify -CAfile ca.pem -crl_check -CRLfile crl.pem t*.revoked.pem 2>&1 | grep -c 'certificate revoked'
        """#)
      #expect(outcome.lines == ["10", "10"])
    }
  }

  // MARK: what is wrong

  @Test(
    "What cannot be meant is a usage error, and makes nothing",
    arguments: [
      ["identity"], ["identity", "--directory", "ids"], ["identity", "--topic", "a"],
      ["identity", "--directory", "", "--topic", "a"], ["identity", "--directory", "ids", "--topic", "a/b"],
      ["identity", "--directory", "ids", "--topic", ""], ["identity", "--directory", "ids", "--topic", "ca"],
      ["identity", "--directory", "ids", "--topic=-rf"], ["identity", "--directory", "ids", "--topic", "a.revoked"],
      ["identity", "--directory", "ids", "--topic", "a", "--key", "dsa"],
      ["identity", "--directory", "ids", "--topic", "a", "--days", "0"],
      ["identity", "--directory", "ids", "--topic", "a", "--days", "3651"],
      ["identity", "--directory", "ids", "--topic", "a", "--server-name", "a b"],
      ["identity", "--directory", "ids", "--topic", "a", "--authority-name", ""],
      ["identity", "--directory", "ids", "--topic", "a.combined"],
    ])
  func usage(arguments: [String]) throws {
    try Command.inFolder { command in
      let outcome = try command.run(arguments)
      #expect(outcome.status == 64)
      #expect(outcome.output == "")
      #expect(outcome.errors.contains("Usage: apnscope identity"))
      #expect(!FileManager.default.fileExists(atPath: command.folder.appending(path: "ids").path))
    }
  }

  @Test("A topic that is too long is told the limit") func limit() throws {
    try Command.inFolder { command in
      let topic = String(repeating: "x", count: 129)
      let outcome = try command.run("identity", "--directory", "ids", "--topic", topic)
      #expect(outcome.status == 64)
      #expect(outcome.errors.contains("has 129 bytes; the limit is 128."))
    }
  }

  @Test("What cannot be written is 74, what is damaged is 65; the file is named") func failures() throws {
    try Command.inFolder { command in
      for directory in ["missing/ids", "/proc/ids"] {
        let outcome = try command.run("identity", "--directory", directory, "--topic", "a")
        #expect(outcome.status == 74)
        #expect(outcome.output == "")
        #expect(outcome.errors == "apnscope: \(directory): No such file or directory\n")
      }
      try FileManager.default.createDirectory(
        at: command.folder.appending(path: "ids"), withIntermediateDirectories: false)
      try command.write(Array("Dear diary".utf8), "ids/ca.pem")
      try command.write(Array("Dear diary".utf8), "ids/ca.key")
      let damaged = try command.run("identity", "--directory", "ids", "--topic", "a")
      #expect(damaged.status == 65)
      #expect(damaged.errors == "apnscope: ids/ca.pem: holds no certificate in PEM\n")
      #expect(try command.read("ids/ca.pem") == "Dear diary")
      let full = try command.shell(#""$apnscope" identity --directory more --topic a >/dev/full"#)
      #expect(full.status == 74)
    }
  }
}

import ArgumentParser
import CommandFiles
import Measurement
import Reporting

struct DemoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Show load, gateway and recording on this machine, whose books agree.",
    discussion: """
      Makes throw-away certificates, runs a gateway that refuses some notifications and shuts connections down, loads it, \
      captures both where this user may, and compares what the load, the gateway and the capture counted: independently, \
      and to the last notification. It shows each command as one would type it. Takes about 20 seconds; nothing leaves \
      this machine.

      The folder of --output then has the results, the capture with its TLS secrets, and a report. To see the capture in \
      Wireshark: apnscope dissector.

      Examples:
        apnscope demo
        apnscope demo --rate 5k/s --for 5s --output tour

      Exit codes: 0 the books agree; 64 usage; 66 the folder exists or cannot be made; 69 a port is in use; 70 the books \
      do not agree; 74 cannot write; 130 interrupted.
      """)

  @Option(
    help: ArgumentHelp("Rate of the load, as 'load' takes it.", valueName: "rate"),
    transform: { text in
      _ = try Rate.parse(text)
      return text
    })
  var rate = "20k/s"

  @Option(
    name: .customLong("for"), help: ArgumentHelp("Length of the load.", valueName: "time"), transform: TimeSpan.parse)
  var duration = TimeSpan(.seconds(10))

  @Option(help: ArgumentHelp("A new folder for what is made.", valueName: "folder"), completion: .directory)
  var output = "apnscope-demo"

  func run() throws {
    Interrupt.watch()
    var demo = try Demo(folder: output, rate: rate, duration: duration.defaultValueDescription)
    do {
      try demo.run()
    } catch let end as Demo.End {
      demo.endAll()
      if let reason = end.reason { complain(reason) }
      throw end.code
    }
  }
}

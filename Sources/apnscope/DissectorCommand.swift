import ArgumentParser
import BinaryProtocol
import CommandFiles
import Measurement

struct DissectorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dissector",
    abstract: "Write a dissector of the protocol for Wireshark, in Lua.",
    discussion: """
      Wireshark and tshark then show notifications with their items, error responses and feedback tuples, in clear or \
      within TLS of which they have the secrets, and have the fields apns.command, apns.identifier, apns.expiration, \
      apns.priority, apns.token, apns.token_length, apns.payload, apns.payload_length, apns.item, apns.item_length, \
      apns.item_data, apns.frame_length, apns.status, apns.feedback.timestamp and apns.malformed to filter by.

      Ports are in Wireshark's preferences of "APNS"; on others the first bytes decide. The dissector knows no fates: \
      'annotate' writes them into a capture.

      Examples:
        apnscope dissector > ~/.local/lib/wireshark/plugins/apns.lua
        tshark -X lua_script:apns.lua -r capture.pcap -Y 'apns.status == 8'
        tshark -X lua_script:apns.lua -r a.pcap -o tls.keylog_file:keys -Y apns

      Exit codes: 0 done; 64 usage; 74 cannot write.
      """)

  func run() throws {
    let output = try TextOutput()
    let program = "apnscope \(Environment.build(Apnscope.version, Apnscope.commit))"
    output.say(
      String(WiresharkDissector.lua(program: program, gatewayPorts: [2_195], feedbackPorts: [2_196]).dropLast()))
    try output.check()
  }
}

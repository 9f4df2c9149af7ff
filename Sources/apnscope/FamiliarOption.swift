import ArgumentParser

/// Options that users of other programs expect, and the ones that mean the same here.
enum FamiliarOption {
  /// Names of k6, vegeta, oha, wrk, tshark and curl, each with the options that may be meant; the first that a command has
  /// counts.
  static let meanings: [String: [String]] = [
    "rps": ["rate"], "qps": ["rate"], "arrival-rate": ["rate"], "requests": ["count"], "iterations": ["count"],
    "number": ["count", "rows"], "duration": ["for"], "time": ["for", "from"], "run-time": ["for"],
    "ramp": ["stage"], "ramp-up": ["stage"], "stages": ["stage"], "users": ["connections"], "vus": ["connections"],
    "clients": ["connections"], "concurrency": ["connections"], "workers": ["threads", "connections"],
    "max-workers": ["connections"], "cpus": ["threads"], "url": ["gateway"], "host": ["gateway"],
    "target": ["gateway"], "targets": ["gateway"], "server": ["gateway"], "listen": ["gateway"], "address": ["gateway"],
    "cert": ["identity"], "certificate": ["identity"], "insecure": ["no-verify"], "cacert": ["ca"],
    "body": ["payload-template", "payload"], "data": ["payload-template"], "size": ["payload"], "out": ["output"],
    "out-file": ["output"], "write": ["output"], "json": ["format"], "csv": ["format"], "summary-export": ["output"],
    "tag": ["label"], "name": ["label"], "abort-on-fail": ["threshold"], "slo": ["threshold"],
    "keylog": ["keys"], "keylog-file": ["keys", "keylog"], "tls-keys": ["keys", "keylog"],
    "ssl-keys": ["keys", "keylog"],
    "read": ["filter"], "display-filter": ["token", "filter"], "decode-as": ["port"], "device": ["interface"],
    "errors": ["reject"], "fail": ["reject"], "error-rate": ["reject", "faults"], "delay": ["response-delay"],
    "latency": ["response-delay"], "api": ["control"], "admin": ["control"], "assert": ["expect"], "check": ["expect"],
  ]

  /// The sentence about the first option that the command does not have; `nil` if it has all of them.
  ///
  /// - Parameter arguments: the command line, with the command's name first.
  static func complaint(about arguments: [String], to command: any ParsableCommand.Type) -> String? {
    guard let grammar = try? OptionGrammar(of: command) else { return nil }
    let typed = arguments.dropFirst().prefix { $0 != "--" }.lazy.filter { $0.hasPrefix("--") }
      .map { String($0.dropFirst(2).prefix { $0 != "=" }) }
    guard let unknown = typed.first(where: { grammar.forms[$0] == nil && !own.contains($0) }) else { return nil }
    let meant =
      meanings[unknown]?.first { grammar.forms[$0] != nil } ?? nearest(unknown, of: grammar.forms.keys.sorted())
    let shown = unknown.count <= 80 ? unknown : "\(unknown.prefix(80))…"
    return "Unknown option '--\(shown)'." + (meant.map { " Did you mean '--\($0)'?" } ?? "")
  }

  /// Options of the argument parser.
  private static let own: Set<String> = [
    "help", "help-hidden", "version", "generate-completion-script", "experimental-dump-help",
  ]
}

extension RunReport {
  var glossary: Section {
    let words: [(String, Prose)] = [
      ("accepted", "proven to be taken by the gateway: an error response or a marker names a later notification"),
      ("rejected", "named by an error response"),
      ("discarded", "written behind a rejected one on the same connection; the gateway never looked at it"),
      ("unknown", "its connection ended and left it open"),
      ("abandoned", "given up: too many attempts, or the run ended"),
      (
        "notifications, sendings",
        "a notification counts once, by its final fate; a sending counts each time it is written"
      ),
      ("marker", "a notification that is bad on purpose; its rejection proves everything before it accepted"),
      ("send lag", "write time − due time; on this side alone"),
      ("error latency", "from writing a bad notification to reading its error response; of bad ones only"),
      ("drain", "from writing a marker to reading its rejection: an upper bound for all before it"),
      (
        "time to recover",
        "from reading an error to when the connection made in its place is up and what was lost goes out again"
      ),
      (
        "limited by",
        "schedule: no more was asked for; gateway: it took no more; generator: this machine could not send more"
      ),
      ("loss window", "notifications discarded by one error response"),
      ("loop lag", "how late the clock of the generator's event loops came"),
      ("backlog", "notifications that are due and not written"),
      ("linger", "how long a batch waits to become full"),
      (
        "resumed",
        "a TLS handshake that goes on with a session of before, without certificates: shorter than a full one"
      ),
      ("measured phase", "between warm-up and drain; rates and send lag are of it"),
      (
        "95 % interval within this run",
        "where the value lies that this run would show if it went on like this for ever; another run may be elsewhere. Of a rate by batch means; of the seconds' p99 by Woodruff; of a share by Wilson, wider where events come in bursts. There is none where neighbours are too much alike, or the run is too short, to know"
      ),
      ("p99", "99 of 100 values are not above it"),
    ]
    return Section("Glossary", [.values(words.map { Value($0.0, $0.1) })])
  }
}

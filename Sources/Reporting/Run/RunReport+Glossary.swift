extension RunReport {
  var glossary: Section {
    let words: [(String, Prose)] = [
      ("accepted", "proven to be accepted by the gateway: an error response or a marker names a later notification"),
      ("rejected", "named by an error response; that of status 10 names the last accepted one"),
      (
        "discarded",
        "written after the one that an error response names on its connection; the gateway ignored it"
      ),
      ("unknown", "its connection ended without an answer about it"),
      ("abandoned", "not sent or resent: too many attempts, or the run ended"),
      (
        "notifications, sendings",
        "a notification counts once, by its final fate; a sending counts each time it is written"
      ),
      ("marker", "an intentionally bad notification; its rejection proves that everything before it was accepted"),
      ("send lag", "time from due to written; measured on this side only"),
      ("error latency", "from writing a bad notification to reading its error response; of bad ones only"),
      ("drain", "from writing a marker to reading its rejection: an upper bound for all before it"),
      (
        "time to recover",
        "from reading an error until the replacement connection is up and resends the lost notifications"
      ),
      (
        "limited by",
        "schedule: no more was requested; gateway: it took no more; generator: this machine could not send more"
      ),
      ("loss window", "notifications discarded by one error response"),
      ("loop lag", "how late the timers of the generator's event loops fired"),
      ("backlog", "due notifications that are not written yet"),
      ("linger", "how long a batch waits to become full"),
      (
        "resumed",
        "a TLS handshake that continues an earlier session, without certificates: shorter than a full one"
      ),
      ("measured phase", "between warm-up and drain; rates and send lag cover it"),
      (
        "95 % interval within this run",
        "where the value lies that this run would show if it continued forever; another run may differ. For rates by batch means; for the p99 of the seconds by Woodruff; for shares by Wilson, widened for bursts. Absent when neighbouring values are too correlated or the run is too short"
      ),
      ("p99", "99 of 100 values are not above it"),
    ]
    return Section("Glossary", [.values(words.map { Value($0.0, $0.1) })])
  }
}

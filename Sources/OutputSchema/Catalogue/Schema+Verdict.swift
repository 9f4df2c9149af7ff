extension Schema {
  /// The verdict on the providers of a gateway, in its ledger.
  static let providerVerdict: [Field] = [
    Field("stories", .object(distinct), "Distinct notifications (one token and payload) by what became of them."),
    Field("sendings", .integer, "Sendings of these."),
    Field(
      "discarded", .integer,
      "Sendings that were discarded: written after a rejected one, or after a shutdown; over HTTP/2 those that were certainly not processed."
    ),
    Field("sent_again", .integer, "The part of `discarded` that was sent again."),
    Field(
      "not_sent_again", .integer,
      "The part of `discarded` that was not sent again, of notifications that were neither accepted nor rejected. What is in neither part was decided on another connection before the gateway read what it discarded."
    ),
    Field(
      "undecided", .integer,
      "The part of `stories.open` of which no sending was accepted or rejected: these notifications may be lost.",
      since: "0.3"),
    Field(
      "resend", .object(spans), "From an error response to the sending again of what it discarded.",
      when: "any was sent again"),
    Field(
      "reconnect", .object(spans), "From an error response to the next connection from the same address.",
      when: "there was one, and all connections are listed"),
    Field(
      "connections",
      .object([
        Field("sending", .integer, "Connections that carried notifications."),
        Field("of_one_notification", .integer, "The part of them that carried one."),
        Field("most_per_second", .integer, "The most connections that were opened within a second."),
        Field(
          "opens_per_minute", .distribution, "Over the minutes in which any connections were opened.",
          when: "any were opened"),
      ]), "How connections to the gateway are used."),
    Field(
      "notifications_per_read", .distribution,
      "Notifications that ended in one TLS record; without TLS in one read of the socket, which may join several segments.",
      when: "any arrived"),
    Field(
      "feedback",
      .object([
        Field("connections", .integer, "Connections to the feedback service."),
        Field("tuples", .integer, "Tuples that were sent on them."),
        Field("listed_tokens", .integer, "Distinct tokens in these."),
        Field("sent_to_listed", .integer, "Notifications to these tokens after they were listed."),
        Field("sent_to_listed_tokens", .integer, "Distinct tokens of those."),
        Field("is_cut", .boolean, "Whether too many tokens were listed to remember all."),
      ]), "The feedback service, and what was sent regardless of it."),
    Field(
      "http2", .object(requests), "Requests, answers and tokens of the HTTP/2 provider API, as `inspect` has them.",
      when: "there was a connection over HTTP/2 with requests", since: "0.3"),
    Field("errors", .array(.object(answer)), "Error responses of the binary protocol one by one, up to 1,000."),
    Field("errors_omitted", .integer, "Error responses that are not in `errors`."),
    Field(
      "is_cut", .boolean,
      "Whether events of connections are no longer kept (`--max-history`): counts of connections and of the feedback service may be too small.",
      when: "any are not, in an answer of `--control`"),
    Field(
      "not_observed", .integer,
      "Notifications that arrived and are not in the verdict: it was behind (`--max-unrecorded`), or they are no longer kept (`--max-history`)."
    ),
    Field(
      "tokens",
      .array(
        .object([
          Field("prefix", .text, "The beginning of the tokens, in hexadecimal."),
          Field("sent", .integer, "Notifications to them that arrived."),
          Field("accepted", .integer, "The part of `sent` that was accepted."),
          Field("rejected", .integer, "The part of `sent` that was rejected."),
        ])), "Notifications to the tokens of each `--expect token=…`."),
    Field("findings", .array(.object(listedFinding)), "Findings worth a look, losses of notifications first."),
  ]

  /// An error response, and what the provider did after it.
  private static let answer =
    listedResponse.filter { !["file", "packet", "token", "payload"].contains($0.name) } + [
      Field(
        "first_resent_s", .number, "From it to the first sending again of what it discarded.", unit: .seconds,
        when: "any was sent again after it"),
      Field(
        "last_resent_s", .number, "From it to the last sending again of what it discarded.", unit: .seconds,
        when: "any was sent again after it"),
      Field(
        "reconnected_s", .number, "From it to the next connection from the same address.", unit: .seconds,
        when: "there was one"),
    ]
}

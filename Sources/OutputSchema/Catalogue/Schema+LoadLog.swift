extension Schema {
  /// The lines of `apnscope load --log`.
  public static let loadLog = Schema(
    "load-log", title: "Log of a load", form: .lines,
    text: [
      """
      `apnscope load --log` appends one JSON object a line while the load runs; `event` determines which fields follow. \
      Lines about connections, errors and stalls are limited (`--log-rate`, `--log-size`), and a `left_out` event counts \
      what is left out: lines and counts together are the counts of the result. Nothing is written for a notification.
      """,
      """
      Lines come in the order in which the load learns of them, at most some hundredths of a second late, stalls up to a \
      second; `t_s` is when it happened. Each run begins with a `started` event. Connections are numbered as in the \
      timeline of the result, from 0, and their attempts from 1.
      """,
    ],
    root: .choice(
      by: "event",
      [
        .init(
          "started", "The load begins.",
          [
            time,
            Field("schema", .exactly(1), "Version of this contract; a field that is renamed or retyped changes it."),
          ]),
        .init("phase", "A phase of the run has begun.", [time, seconds, Field("phase", .phaseName, "Which.")]),
        .init(
          "stage", "A stage of `--stage` has begun.",
          [
            time, seconds, Field("stage", .integer, "Its number, from 1."),
            Field("from_per_s", .number, "The rate at its beginning.", unit: .perSecond),
            Field("to_per_s", .number, "The rate at its end.", unit: .perSecond),
            Field("length_s", .number, "Its length.", unit: .seconds),
          ]),
        .init(
          "connected", "A connection is open; under TLS its handshake is complete.",
          [
            time, seconds, connection, attempt, Field("resumed", .boolean, "Whether a TLS session was resumed."),
          ]),
        .init(
          "connect_failed", "An attempt to connect has failed.",
          [
            time, seconds, connection, attempt, Field("reason", .text, "Message of the system or of TLS."),
          ]),
        .init(
          "closed", "A connection has ended.",
          [
            time, seconds, connection, attempt, Field("cause", .closeCause, "How."),
          ]),
        .init(
          "error_response", "The gateway has answered with an error, other than to a marker.",
          [
            time, seconds, connection, Field("status", .integer, "The status code."),
            Field(
              "notification", .integer,
              "The number in the stream, from 0, of the notification that is named; it determines token and payload.",
              when: "it is known"),
          ]),
        .init(
          "foreign_answer", "The server has sent something that is no error response.",
          [
            time, seconds, connection, Field("reason", .text, "The protocol that the answer seems to be of."),
          ]),
        .init(
          "stall", "The load did not run, so that lags include this time.",
          [
            time, seconds, Field("ms", .number, "For how long, from `t_s` on.", unit: .milliseconds),
          ]),
        .init("abort", "A threshold with `,abort` does not hold, and ends the run.", judged),
        .init("threshold", "The result of a threshold, at the end of the run.", judged),
        .init(
          "left_out", "Lines that the limits left out.",
          [
            time, seconds, Field("events", .map(key: .text, value: .integer), "How many, by event."),
          ]),
        .init(
          "dropped", "Lines were not written because the disk could not keep up.",
          [
            time, Field("count", .integer, "How many."),
          ]),
        .init(
          "ended", "The load has ended.",
          [
            time, Field("t_s", .number, "Seconds since the start of the run.", unit: .seconds, when: "it has begun"),
            Field("outcome", .text, "The verdict, as `verdict.outcome` of the result.", when: "there is a result"),
          ]),
      ]),
    example: #"""
      {"time":"2026-11-28T10:00:00.000000000Z","event":"started","schema":1}
      {"time":"2026-11-28T10:00:01.250000000Z","t_s":1.25,"event":"error_response","connection":2,"status":8,\#
      "notification":8121}
      """#)

  private static let time = Field("time", .time, "When it happened.")
  private static let seconds = Field("t_s", .number, "Seconds since the start of the run.", unit: .seconds)
  private static let connection = Field("connection", .integer, "Number of the connection, from 0.")
  private static let attempt = Field(
    "attempt", .integer, "Number of the attempt of this connection; one above 1 is a reconnect.")
  private static let judged: [Field] = [
    time, seconds, Field("expression", .text, "The threshold as it was given."),
    Field("passed", .boolean, "Whether it holds."),
    Field("value", .number, "The measured value.", when: "it was measured"),
    Field("reason", .text, "Why it does not hold, or what is said of the value.", when: "there is something to say"),
  ]
}

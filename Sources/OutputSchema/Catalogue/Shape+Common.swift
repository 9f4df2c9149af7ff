// Names and objects that occur in several outputs.

extension Shape {
  // MARK: recordings

  static let captureFormat = values([
    "pcap": "A pcap file.", "pcapng": "A pcapng file.", "snoop": "A snoop file.",
    "raw": "A dump of one direction of a connection.", "hex": "Such a dump in hexadecimal.",
    "gateway": "The connections of a simulated gateway, as it knows them itself.",
  ])

  static let statusName = values([
    "no error": "0; servers other than APNs gateways acknowledge with it.", "processing error": "1",
    "missing device token": "2", "missing topic": "3", "missing payload": "4", "invalid token size": "5",
    "invalid topic size": "6", "invalid payload size": "7", "invalid token": "8",
    "shutdown": "10; the gateway goes away for maintenance, and names the last notification it accepted.",
    "protocol error": "128; the frame could not be parsed.", "none (unknown)": "255",
    "unknown": "Any other code.",
  ])

  static let direction = values([
    "client": "From the provider to the gateway, or from whoever opened the connection.",
    "server": "From the gateway or feedback service.",
  ])

  static let service = values([
    "gateway": "Notifications, usually on port 2195; over HTTP/2 443 or 2197.",
    "feedback": "The feedback service, usually on port 2196.",
    "channels": "Channel management of the provider API.",
    "other": "Another protocol, which `protocol` names, or other requests over HTTP/2.",
    "unknown": "Unknown from port and bytes.",
  ])

  static let otherProtocol = values([
    "http1": "HTTP/1.", "http2": "HTTP/2, by its first bytes or as negotiated in TLS (ALPN).", "ssh": "SSH.",
    "tls": "TLS of which nothing could be read, on a port of neither service.",
    "devices": "The device channel of the simulator, whose messages are `device` records.",
    "local_push": "Local push connectivity, whose messages are `local_push` records.",
  ])

  static let preamble = values([
    "http_connect": "A request for a tunnel to an HTTP proxy, and its answers.",
    "proxy_v1": "The header of a balancer, in the text form of the PROXY protocol.",
    "proxy_v2": "The same in its binary form.", "socks4": "A request to a SOCKS 4 or 4a proxy.",
    "socks5": "A request to a SOCKS 5 proxy.", "starttls": "Text of another protocol that asks for TLS.",
    "text": "Lines of text.", "other": "Bytes of another protocol, and then TLS.",
  ])

  static let fate = values([
    "accepted":
      "Proven: an error response names it or a later notification, and none rejects it. Over HTTP/2: its answer has a status of 200 to 299.",
    "rejected":
      "An error response with another status than 10 and 0 names it. Over HTTP/2: its answer has another status.",
    "discarded":
      "Sent after a rejected notification, or after the one that a shutdown names: the gateway ignored it. Over HTTP/2: it was certainly not processed.",
    "unknown": "No error response proves anything about it: it was accepted or lost. Over HTTP/2: nothing tells.",
  ])

  static let gapReason = values([
    "lost": "Sent, and not in the capture.", "truncated": "Cut off by the snap length.",
    "before_capture": "The end of a record that began before the capture.",
    "undecrypted": "Captured, and not to be decrypted.",
    "capture_end": "The beginning of a record that the capture does not end.",
    "given_up":
      "Captured, and given up with a record that was not whole yet: such records took more than `--max-memory`.",
  ])

  static let providerEnvironment = values([
    "sandbox": "Development pushes only.", "production": "Production pushes only.",
    "both": "Either, as certificates since 2015.",
  ])

  static let connectionEnd = values([
    "client_fin": "The client closed it.", "server_fin": "The server closed it.", "client_rst": "The client reset it.",
    "server_rst": "The server reset it.", "capture_end": "No end was seen.",
  ])

  static let notCaptured = values([
    "start": "Its first packets: bytes may have been sent before the first captured ones.",
    "client_end": "A FIN or RST of the client: it may have sent more.",
    "server_end": "A FIN or RST of the server: it may have sent more.",
  ])

  static let limit = values([
    "max_buffered_bytes": "Bytes out of order of one connection.",
    "max_total_buffered_bytes": "Bytes out of order of all connections.",
    "max_connections": "Connections that are followed at a time.",
    "max_memory":
      "Memory of what all connections have begun and not finished: the beginning of a frame or TLS record was given up, and what error responses are resolved with was forgotten.",
  ])

  // MARK: results

  /// Counts by status code of an error response, as `"8"`.
  static let countsByStatus = map(key: .integer, value: .integer)

  static let histogram = named(
    Definition(
      "histogram",
      "How often which value was measured, to three significant digits; values are in `unit`.",
      .object([
        Field(
          "unit",
          .values([
            "us": "Microseconds.", "ms": "Milliseconds, with three decimals.", "count": "A plain number.",
            "bytes": "Bytes.",
          ]), "Unit of the values."),
        Field("count", .integer, "Values that were measured."),
        Field("min", .number, "The smallest; 0 without values, as all that follow."),
        Field("mean", .number, "The arithmetic mean of the exact values."),
        Field("p50", .number, "The median: half of the values are not above it."),
        Field("p90", .number, "The 90th percentile."),
        Field("p99", .number, "The 99th percentile."),
        Field("p999", .number, "The 99.9th percentile."),
        Field("max", .number, "The largest, up to an hour; larger values count as that."),
        Field(
          "counts", .array(.tuple([.number, .integer])),
          "Each value and how often it was measured, in ascending order; enough to merge two histograms exactly."),
      ])))

  static let environment = named(
    Definition(
      "environment", "The machine and the software that the result was measured with.",
      .object([
        Field("host", .text, "Name of the machine."),
        Field("hosts", .array(.text), "All machines; the other fields are of the first.", when: "there were several"),
        Field("kernel", .text, "Name and release of the operating system's kernel."),
        Field("cpu", .text, "Model of the processor."),
        Field("cores", .integer, "Processors that are online.", unit: .cores),
        Field("memory_bytes", .integer, "Physical memory.", unit: .bytes),
        Field("openssl", .text, "OpenSSL's version text."),
        Field("apnscope", .text, "Version of apnscope."),
        Field("commit", .text, "Commit it was built of; `+`: with changes that are in none.", when: "it is known"),
        Field("command", .array(.text), "The command line, without secrets."),
      ])))

  static let notificationCounts = named(
    Definition(
      "notification counts",
      "Distinct notifications by their final fate: generated = accepted + rejected + unknown + abandoned + pruned.",
      .object([
        Field("generated", .integer, "Notifications that were taken from the workload."),
        Field("accepted", .integer, "Proven accepted: an error response or a marker names a later one."),
        Field("rejected", .integer, "Named by an error response."),
        Field("unknown", .integer, "Their connection's end left them open, and they were not sent again."),
        Field("abandoned", .integer, "Given up at the limit of attempts or at the end of the run."),
        Field(
          "pruned", .integer, "Left out because the feedback service had listed their token.",
          when: "feedback is polled"),
        Field(
          "unproven", .integer,
          "The part of `unknown`, `abandoned` and `pruned` that was written and may have been accepted.",
          since: "0.2"),
      ])))

  static let sendingCounts = named(
    Definition(
      "sending counts",
      "Sendings, of which a notification can have several: written = accepted + rejected + discarded + unknown.",
      .object([
        Field("written", .integer, "Notifications that were handed to the transport, each time it was done."),
        Field("resent", .integer, "The part of `written` that is a second or later sending of a notification."),
        Field("accepted", .integer, "The part of `written` that is proven accepted."),
        Field("rejected", .integer, "The part of `written` that an error response of another status than 10 names."),
        Field(
          "discarded", .integer,
          "The part of `written` after the one that an error response names, which the gateway ignored."),
        Field("unknown", .integer, "The part of `written` whose fate the connection's end left open."),
        Field("markers", .integer, "Notifications that were bad on purpose, as proof; they are in no other count."),
        Field("markers_answered", .integer, "The part of `markers` that was answered by name.", since: "0.2"),
      ])))

  static let closeCause = values([
    "rejected": "The gateway answered a notification with an error.",
    "shutdown": "The gateway answered with status 10.", "peer_fin": "The other side closed it.",
    "peer_rst": "The other side reset it, or the network broke.", "idle": "Idle for too long.",
    "lifetime": "It reached its age or its number of notifications.", "local": "This side ended it.",
  ])
}

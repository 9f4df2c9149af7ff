extension Shape {
  /// The findings of an inspection.
  static let findingKind = values([
    "capture_loss": "Packets were lost while the capture was written.",
    "nothing_read": "No APNs traffic was found.",
    "unread_packets": "Packets are of a link type, a tunnel or another protocol that is not read and may hold TCP.",
    "undecrypted_connection": "A TLS connection could not be decrypted.",
    "partly_decrypted": "A TLS connection could be decrypted in part.",
    "device_port": "Connections are on port 5223, which is that of devices and not of providers.",
    "other_protocol": "Connections use another or an unknown protocol.",
    "empty_connection": "A connection carried no data.",
    "never_resent": "Distinct notifications were lost for good: discarded each time they were sent.",
    "not_seen_again":
      "Distinct notifications were discarded and not seen again; something that the recording does not show may hold them.",
    "resent": "Distinct notifications were discarded after an error response and sent again later.",
    "requests_resent":
      "Distinct notifications over HTTP/2 were refused, or excluded by a GOAWAY, and sent again later.",
    "accepted_twice":
      "Distinct notifications were accepted twice or more: sent twice, or recorded on both sides of a balancer.",
    "seen_twice": "A connection was captured under several addresses, as before and after NAT, and counts once.",
    "lost_not_tracked": "Discarded notifications were too many to be followed.",
    "unknown_fate": "A connection ended without an error response, so it is unknown what was accepted.",
    "unknown_fate_end_not_captured":
      "What the gateway sent on a connection was not captured to its end, so it is unknown what was accepted.",
    "unknown_fate_after_response": "The error responses of a connection leave notifications open.",
    "unanswered": "Requests over HTTP/2 got no answer, so it is unknown whether they were accepted.",
    "possible_duplicates": "Distinct notifications over HTTP/2 were sent again after a sending that got no answer.",
    "unresolved_response": "An error response names an identifier that was not seen on its connection.",
    "ambiguous_zero": "An error response names identifier 0, which may mean a notification or none.",
    "ambiguous_identifier": "An error response names an identifier that was used more than once.",
    "token_failed_again": "A token was rejected that had been rejected before.",
    "token_not_of_gateway":
      "A token was rejected with status 8: of the other environment, of another app, or removed.",
    "tokens_of_other_environment":
      "Most tokens that a provider sent to were rejected with status 8: they may be of the other environment.",
    "dead_tokens":
      "Tokens were listed by the feedback service, or rejected with status 8, after they were last accepted; in verdicts and traces.",
    "sent_after_feedback": "Notifications were sent to tokens that the feedback service had listed before.",
    "feedback_not_read": "The feedback service was not read for a day or more; `count` is the hours.",
    "unregistered_tokens":
      "Tokens were answered with 410 after they were last accepted, over HTTP/2; in verdicts and traces.",
    "sent_after_unregistered": "Notifications were written to a token and topic after an answer with 410 to it.",
    "bad_device_tokens":
      "Three or more rejections with BadDeviceToken, and more than accepted ones: tokens of the other environment?",
    "too_many_requests": "Notifications were rejected with 429 TooManyRequests: too many to the same token.",
    "retry_storm": "Notifications were sent again less than a second after an answer with 429 or 5xx.",
    "goaway": "The gateway sent GOAWAY; the text has the reasons.",
    "written_after_goaway": "Notifications were begun a second or more after a GOAWAY that excludes their streams.",
    "silent_after_idle":
      "Notifications after a minute or more without any got nothing back for 10 s or more: a dead connection?",
    "stream_limit_exceeded": "Notifications were sent on more open streams than the limit in force.",
    "streams_unused":
      "A connection with 20 or more notifications had one open at a time and spent half of the time or more waiting for answers, with 100 streams or more allowed.",
    "tls12_without_alpn": "HTTP/2 is used over TLS 1.2 without negotiating it (ALPN).",
    "priority_sent": "Clients sent PRIORITY frames, which APNs ignores and asks not to send.",
    "provider_token_old":
      "A notification was sent with a provider token over 55 minutes old; APNs refuses those over 60.",
    "provider_token_in_future":
      "A notification was sent with a provider token that was issued a minute or more later, by the capture's clock.",
    "provider_token_renewed_often":
      "A connection's provider token was issued less than 20 minutes from the one before, by the same key.",
    "provider_token_per_connection":
      "Three or more connections of a provider have a provider token each, issued less than 20 minutes from another's.",
    "provider_token_not_indexed":
      "A connection with 20 or more notifications sent its provider token in full with each, indexed in no header table, and these values are more than half of the header bytes.",
    "push_type_missing": "A notification has no `apns-push-type`.",
    "push_type_mismatch": "A silent payload has the push type alert, or another one the type background.",
    "background_priority": "A notification of type background has priority 10, or none, which is 10.",
    "topic_suffix": "A topic does not have the suffix of its push type.",
    "collapse_id_too_long": "An `apns-collapse-id` is over 64 bytes.",
    "not_acknowledged":
      "Devices closed connections of the device channel, recorded to the end, and had not acknowledged notifications.",
    "sequence_not_growing": "A notification of the device channel has a sequence that is not above an earlier one.",
    "requests_unacknowledged":
      "Requests of local push were not acknowledged within 10 s, or before the other end closed the connection.",
    "acknowledged_late": "Requests of local push were acknowledged later than after 10 s.",
    "server_silent":
      "A server of local push sent nothing for over 30 s; the text has the longest time between two heartbeats.",
    "certificate_expired": "Connections ended with the TLS alert `certificate_expired`.",
    "certificate_revoked": "Connections ended with the TLS alert `certificate_revoked`.",
    "unknown_ca": "Connections ended with the TLS alert `unknown_ca`.",
    "certificate_ends_soon": "A client certificate ends within 30 days of its use, or had ended.",
    "one_notification_connections": "Most connections carried one notification each.",
    "several_responses": "An error response came after the first of its connection.",
    "acknowledgement": "A response has status 0, which no APNs gateway sends.",
    "foreign_command": "A response has another command than 8, which no APNs gateway sends.",
    "malformed_items": "A frame has items that do not fit it.", "malformed": "Bytes cannot be parsed as a record.",
    "lost_bytes": "Bytes were sent that the capture does not hold.", "truncated_bytes": "The snap length cut packets.",
    "cut_record": "The beginning or end of the capture cuts a record.",
    "undecrypted_bytes": "A stretch of TLS could not be decrypted.",
    "given_up_bytes": "A record that was not whole yet was given up: such records took more than `--max-memory`.",
    "conflict": "Bytes were sent twice with different contents.",
    "limit_hit": "A connection hit a limit of the program.",
    "reconnect_storm": "More than 60 connections were opened within a minute.",
    "unbatched": "Nearly every notification is alone in a TCP segment.",
    "payload_over_4096": "A payload is over 4,096 bytes, which any gateway rejects.",
    "payload_over_2048": "A payload is over 2,048 bytes, which is too long except for VoIP.",
    "unusual_token_length": "A token is not 32 bytes long.",
    "known_bad": "A frame has no token: clients send one to learn what was accepted.",
    "strange_expiration": "An expiration is before 2001 or at the end of time.",
    "unknown_items": "A frame has items that the protocol does not know.",
    "feedback_without_time": "A feedback tuple has the time 0.",
    "out_of_order": "Packets are earlier than ones before them in their file.",
  ])
}

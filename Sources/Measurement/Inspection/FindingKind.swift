/// The kind of a finding, in the order in which findings are listed.
public enum FindingKind: String, Sendable, Codable, CaseIterable {
  // Losses that left no trace in the recording.
  case captureLoss = "capture_loss"

  // Unread traffic: the other findings do not cover it.
  case nothingRead = "nothing_read"
  case unreadPackets = "unread_packets"
  case undecryptedConnection = "undecrypted_connection"
  case partlyDecrypted = "partly_decrypted"
  /// Connections of devices, on port 5223.
  case devicePort = "device_port"
  case otherProtocol = "other_protocol"
  case emptyConnection = "empty_connection"

  // Causes of lost notifications, certain or possible.
  case neverResent = "never_resent"
  case notSeenAgain = "not_seen_again"
  case resent
  /// Refused or excluded by GOAWAY, and sent again (HTTP/2).
  case requestsResent = "requests_resent"
  case acceptedTwice = "accepted_twice"
  case lostNotTracked = "lost_not_tracked"
  case unknownFate = "unknown_fate"
  case unknownFateEndNotCaptured = "unknown_fate_end_not_captured"
  case unknownFateAfterResponse = "unknown_fate_after_response"
  /// Requests of the provider API without an answer.
  case unanswered
  /// Sent again after a sending that got no answer.
  case possibleDuplicates = "possible_duplicates"
  case unresolvedResponse = "unresolved_response"
  case ambiguousZero = "ambiguous_zero"
  case ambiguousIdentifier = "ambiguous_identifier"
  case tokenFailedAgain = "token_failed_again"
  /// Status 8, which by itself indicates a token of the other environment.
  case tokenNotOfGateway = "token_not_of_gateway"
  /// Most tokens that a provider sent to.
  case tokensOfOtherEnvironment = "tokens_of_other_environment"
  case sentAfterFeedback = "sent_after_feedback"
  /// Listed by feedback, or rejected with status 8, after their last acceptance.
  case deadTokens = "dead_tokens"
  case feedbackNotRead = "feedback_not_read"
  /// Tokens that were answered with 410 after their last acceptance (HTTP/2).
  case unregisteredTokens = "unregistered_tokens"
  case sentAfterUnregistered = "sent_after_unregistered"
  /// Most tokens that a provider sent to are rejected with BadDeviceToken.
  case badDeviceTokens = "bad_device_tokens"
  case tooManyRequests = "too_many_requests"
  case retryStorm = "retry_storm"

  // Connections over HTTP/2.
  case goAway = "goaway"
  case writtenAfterGoAway = "written_after_goaway"
  case silentAfterIdle = "silent_after_idle"
  case streamLimitExceeded = "stream_limit_exceeded"
  case streamsUnused = "streams_unused"
  case tls12WithoutALPN = "tls12_without_alpn"
  case prioritySent = "priority_sent"

  // Provider tokens.
  case providerTokenOld = "provider_token_old"
  case providerTokenInFuture = "provider_token_in_future"
  case providerTokenRenewedOften = "provider_token_renewed_often"
  case providerTokenPerConnection = "provider_token_per_connection"
  case providerTokenNotIndexed = "provider_token_not_indexed"

  // Requests whose fields do not go together.
  case pushTypeMissing = "push_type_missing"
  case pushTypeMismatch = "push_type_mismatch"
  case backgroundPriority = "background_priority"
  case topicSuffix = "topic_suffix"
  case collapseIDTooLong = "collapse_id_too_long"

  // Messages to devices.
  /// Notifications of the device channel without an acknowledgement.
  case notAcknowledged = "not_acknowledged"
  case sequenceNotGrowing = "sequence_not_growing"
  /// Requests of local push.
  case requestsUnacknowledged = "requests_unacknowledged"
  case acknowledgedLate = "acknowledged_late"
  case serverSilent = "server_silent"

  // Certificates, also where TLS cannot be decrypted.
  case certificateExpired = "certificate_expired"
  case certificateRevoked = "certificate_revoked"
  case unknownCA = "unknown_ca"
  case certificateEndsSoon = "certificate_ends_soon"

  // Error responses that no APNs gateway sends.
  case severalResponses = "several_responses"
  case acknowledgement
  case foreignCommand = "foreign_command"

  // Gaps and damage of the recording.
  case malformedItems = "malformed_items"
  case malformed
  case lostBytes = "lost_bytes"
  case truncatedBytes = "truncated_bytes"
  case cutRecord = "cut_record"
  case undecryptedBytes = "undecrypted_bytes"
  case givenUpBytes = "given_up_bytes"
  case conflict
  case limitHit = "limit_hit"

  // How a provider sends.
  case reconnectStorm = "reconnect_storm"
  case oneNotificationConnections = "one_notification_connections"
  case unbatched
  case payloadOver4096 = "payload_over_4096"
  case payloadOver2048 = "payload_over_2048"
  case unusualTokenLength = "unusual_token_length"
  case knownBad = "known_bad"
  case strangeExpiration = "strange_expiration"
  case unknownItems = "unknown_items"
  case feedbackWithoutTime = "feedback_without_time"

  // How it was captured.
  /// A connection was recorded under several addresses.
  case seenTwice = "seen_twice"
  case outOfOrder = "out_of_order"
}

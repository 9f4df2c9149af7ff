/// The reason why bytes of a captured connection are in none of its records.
public enum CapturedGap: String, Sendable, Codable, CaseIterable {
  /// Sent, and not in the capture.
  case lost
  /// Cut off by the snap length.
  case truncated
  /// The end of a record that began before the capture.
  case beforeCapture = "before_capture"
  /// Captured, and not to be decrypted.
  case undecrypted
  /// The beginning of a record that the capture does not end.
  case captureEnd = "capture_end"
  /// Captured, and given up with a record that was not whole yet, because such records took too much memory.
  case givenUp = "given_up"
}

/// How a captured connection ended: whose FIN or RST came first.
public enum CapturedEnd: String, Sendable, Codable, CaseIterable {
  case clientFIN = "client_fin"
  case serverFIN = "server_fin"
  case clientRST = "client_rst"
  case serverRST = "server_rst"
  /// The capture holds none.
  case captureEnd = "capture_end"
}

import FoundationEssentials

/// UNIX nanoseconds UTC as results write them: RFC 3339 with milliseconds.
public func rfc3339(_ nanoseconds: Int64) -> String {
  let date = Date(timeIntervalSince1970: Double(nanoseconds / 1_000) / 1e6)
  return date.formatted(
    .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
}

import FoundationEssentials

/// UNIX nanoseconds UTC as results write them: RFC 3339 with milliseconds.
public func rfc3339(_ nanoseconds: Int64) -> String {
  // The formatter cuts off what is less than a millisecond, and a `Date` may be a hair below the one that is meant.
  let date = Date(timeIntervalSince1970: (Double(nanoseconds / 1_000_000) + 0.5) / 1e3)
  return date.formatted(
    .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
}

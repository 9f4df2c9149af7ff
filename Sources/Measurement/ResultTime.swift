import Bytes

/// UNIX nanoseconds UTC as results write them: RFC 3339 with milliseconds.
package func rfc3339(_ nanoseconds: Int64) -> String { RFC3339.text(nanoseconds, digits: 3) }

/// The UNIX seconds of a result's time, `2026-01-02T03:04:05.678Z`; `nil` for anything else.
package func unixSeconds(_ text: String) -> Double? {
  RFC3339.parse(Array(text.utf8).rawBytes).map { Double($0.seconds) + Double($0.nanoseconds) / 1e9 }
}

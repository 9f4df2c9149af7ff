import Measurement
import Testing

@Suite("Orders of an inspection")
struct InspectionOrderTests {
  private static func connection(_ number: Int, discarded: Int = 0, unknown: Int = 0, rejected: Int = 0)
    -> InspectionReport.ConnectionRow
  {
    var row = InspectionReport.ConnectionRow()
    (row.connection, row.discarded, row.unknown, row.rejected) = (number, discarded, unknown, rejected)
    return row
  }

  private static func error(_ connection: Int, _ time: String?, packet: Int?, discarded: Int? = nil)
    -> InspectionReport.ErrorRow
  {
    var row = InspectionReport.ErrorRow()
    (row.connection, row.time, row.packet, row.discarded) = (connection, time, packet, discarded)
    return row
  }

  private func sorted(_ report: InspectionReport, _ order: InspectionReport.Order) -> ([Int], [Int]) {
    var report = report
    report.sort(by: order)
    return (report.connections.map(\.connection), report.errors.map(\.connection))
  }

  @Test("Connections come by their numbers, or by what was lost on them, rejections and numbers after that")
  func connections() {
    var report = InspectionReport()
    report.connections = [
      Self.connection(3, discarded: 2, unknown: 3), Self.connection(1, rejected: 9), Self.connection(4, discarded: 6),
      Self.connection(2, unknown: 5, rejected: 1), Self.connection(6), Self.connection(5),
    ]
    #expect(sorted(report, .start).0 == [1, 2, 3, 4, 5, 6])
    #expect(sorted(report, .cost).0 == [4, 2, 3, 1, 5, 6])
  }

  @Test("Error responses come by their times, or by what was discarded after them, times and packets after that")
  func errors() {
    var report = InspectionReport()
    report.errors = [
      Self.error(1, "b", packet: 9, discarded: 1), Self.error(2, "a", packet: 8, discarded: 7),
      Self.error(3, "b", packet: 5, discarded: 1), Self.error(5, nil, packet: nil), Self.error(4, nil, packet: nil),
      Self.error(6, "a", packet: 9, discarded: 1), Self.error(7, nil, packet: 2, discarded: 0),
    ]
    #expect(sorted(report, .start).1 == [4, 5, 7, 2, 6, 3, 1])
    let cost = sorted(report, .cost).1
    #expect(Array(cost.prefix(4)) == [2, 6, 3, 1] && cost.last == 7)
  }
}

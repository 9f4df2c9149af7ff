import Measurement
import Testing

@testable import Reporting

@Suite("Text for a terminal")
struct TextTests {
  @Test("Columns are as wide as their widest cell, and lines have no spaces at their end")
  func tables() {
    var table = TextTable(["name", "count", ""], right: [1])
    #expect(table.isEmpty && table.text(indent: 2) == "")
    table.add(["a", "1", ""])
    table.add(["longer", "1,000", "x"])
    #expect(table.text(indent: 2) == "  name    count\n  a           1\n  longer  1,000  x\n")
    #expect(aligned([["a", "1", "x"], [], ["bc", "12", "yz"], ["d"]]) == ["a    1  x", "", "bc  12  yz", "d"])
    #expect(aligned([["a", "b", "c"], ["aa", "bb", "cc"]], left: 2) == ["a   b   c", "aa  bb  cc"])
    #expect(aligned([]) == [])
  }

  @Test("Numbers are written with separators, decimals and units")
  func numbers() {
    #expect([0, 999, 1_000, -4_608_727].map { grouped($0) } == ["0", "999", "1,000", "-4,608,727"])
    #expect(grouped(Int.min) == "-9,223,372,036,854,775,808")
    #expect([0, 1, 1_000].map { counted($0, "connection") } == ["0 connections", "1 connection", "1,000 connections"])
    #expect([(1.005, 2), (-0.04, 1), (2, 0), (12.3456, 3)].map { fixed($0, $1) } == ["1.00", "0.0", "2", "12.346"])
    #expect(fixed(.infinity, 2) == "inf" && fixed(1e16, 0) == "1e+16")
    #expect(
      [0, 0.000_4, 0.25, 1, 119.96, 150, 7_200, 200_000].map(span)
        == ["0 µs", "400 µs", "250.0 ms", "1.0 s", "120.0 s", "2.5 min", "2.0 h", "2.3 d"])
    #expect([0, 2.25, 86_400].map(tenths) == ["0.0 s", "2.3 s", "86400.0 s"])
  }

  private static var running: LoadProgress {
    var progress = LoadProgress()
    (progress.phase, progress.elapsed) = (.measured, 12.4)
    progress.askedPerSecond = 50_000
    (progress.written, progress.writtenPerSecond) = (1_234_567, 49_999.6)
    (progress.accepted, progress.acceptedPerSecond) = (1_200_000, 48_000)
    (progress.errors, progress.connections, progress.sendLag99, progress.cpu) = (3, 8, 12_345, 0.934)
    return progress
  }

  @Test("The live line tells time, phase, rates asked for, written and accepted, errors, connections, lag and cores")
  func liveLine() {
    var progress = Self.running
    #expect(
      progress.line(of: .unknown).text
        == "12 s  measured  asked 50,000/s  written 50,000/s (1,234,567)  accepted 48,000/s (1,200,000)  errors 3  connections 8  lag p99 12.3 ms  cpu 93 %"
    )
    progress.askedPerSecond = nil
    #expect(progress.line(of: .seconds(60)).text.hasPrefix("12 s of 60 s  measured  written 50,000/s"))
    // 765,433 more at 49,999.6 a second.
    #expect(progress.line(of: .notifications(2_000_000)).text.hasPrefix("12 s, about 16.0 s left  measured"))
    #expect(progress.line(of: .notifications(1_234_567)).text.hasPrefix("12 s  measured"))
    #expect(
      progress.line(of: .seconds(60), trial: "trial 7 of about 12").text.hasPrefix("trial 7 of about 12  12 s of 60 s"))
    progress.phase = .drain
    #expect(progress.line(of: .seconds(60)).text.hasPrefix("12 s  drain  written 50,000/s"))
    progress.writtenPerSecond = 0
    progress.phase = .measured
    #expect(progress.line(of: .notifications(2_000_000)).text.hasPrefix("12 s  measured"))
  }

  @Test(
    "A narrow live line keeps the time, acceptances and errors, in this order, and is never wider than the terminal")
  func narrowLine() {
    let line = Self.running.line(of: .seconds(60))
    let whole = line.text.components(separatedBy: "  ")
    for columns in 1...200 {
      let shown = line.fitted(columns)
      #expect(shown.count <= columns)
      if columns >= 12 { #expect(shown.components(separatedBy: "  ").allSatisfy(whole.contains), "\(columns)") }
    }
    #expect(line.fitted(60) == "12 s of 60 s  accepted 48,000/s (1,200,000)  errors 3")
    // There is no room for the rates written, but for what is less important.
    #expect(line.fitted(80) == "12 s of 60 s  measured  accepted 48,000/s (1,200,000)  errors 3  lag p99 12.3 ms")
    #expect(line.fitted(nil) == line.text && line.fitted(200) == line.text)
    #expect(line.fitted(8) == "12 s of…")
  }

  @Test("The screens of a run, of a simulator and of nothing have their lines")
  func screens() {
    let run = LoadSummary(syntheticRun(seconds: 30, connections: 4)).text.split(separator: "\n")
    #expect(run.first?.hasPrefix("rate           ") == true)
    #expect(run.contains("flushed        10 full, 30 idle, 20 linger"))
    #expect(run.contains { $0.hasSuffix("p99.9        max") })
    #expect(LoadSummary(RunResult()).text.hasPrefix("rate           not measured\n"))
    var ledger = Ledger()
    (ledger.gateway.received, ledger.gateway.accepted, ledger.gateway.rejected) = (12, 9, ["10": 1, "8": 2])
    let books = SimulatorSummary(ledger).text.split(separator: "\n")
    #expect(books.first == "notifications  12 received = 9 accepted + 3 rejected + 0 discarded")
    #expect(books.dropFirst().first == "rejected       2 x status 8, 1 x status 10")
  }

  @Test("An inspection is a screen of text that tells what was not read")
  func inspection() {
    var report = InspectionReport()
    var file = InspectionReport.File()
    (file.source, file.format, file.bytes, file.packets) = ("a.pcap", "pcap", 24_000, 1_234)
    report.files = [file]
    report.gapsByReason = [.truncated: 2, .lost: 1]
    report.missingBytes = 1_460
    report.findings = [.init(.nothingRead, count: 1, text: "nothing was read")]
    #expect(
      InspectionText(report, rows: 12).text == """
        a.pcap  pcap  24,000 B  1,234 packets
          loss: 1 lost, 2 truncated, 1,460 B missing

        notifications  0

        findings
          first packet  finding
                     -  nothing was read

        """)
  }

  @Test("A certificate's topic is its UID, else its CN, else all of it")
  func topics() {
    var tls = InspectionReport.TLSRow()
    #expect(tls.topic == nil)
    for (subject, topic) in [("CN=a,UID=com.example", "com.example"), ("O=x,CN=a=b", "a=b"), ("O=x", "O=x")] {
      tls.clientSubject = subject
      #expect(tls.topic == topic)
    }
  }
}

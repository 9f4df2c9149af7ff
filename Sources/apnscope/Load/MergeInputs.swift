import ArgumentParser
import Bytes
import CommandFiles
import FoundationEssentials
import Measurement
import Reporting

/// The inputs of `merge`, which are results of loads or of devices, or inspections, or ledgers: files, folders, and concatenated
/// documents on standard input. Results of loads are merged as they are read, and not kept.
///
/// For a killed run, `FILE.part` replaces `FILE`. Reports skipped files with reasons.
struct MergeInputs {
  private(set) var merger = RunResult.Merger()
  private(set) var ledgers: [(name: String, ledger: Ledger)] = []
  private(set) var inspections: [InspectionReport.Part] = []
  private(set) var fleets: [FleetResult.Part] = []
  /// Documents that should have been results and cannot be read, each with its name and the reason.
  private(set) var unreadable: [String] = []
  /// The names of the documents read, by content: a document counts once.
  private var names: [UInt64: String] = [:]
  /// When the run of the last result started.
  private var lastStarted = ""
  private let most: Int

  /// Kinds of documents of which one in a folder has to be usable. A ledger there is the gateway's.
  private static let kinds = [RunResult().kind, InspectionDocument.kind, FleetResult().kind]

  /// Reports an error and throws an exit code if there is no result, or if a named file is not a load's result.
  ///
  /// - Parameters:
  ///   - leftOut: files to skip in folders: ledgers, and the result of an earlier merge.
  ///   - most: the largest number of results.
  init(_ arguments: [String], leavingOut leftOut: [String], atMost most: Int) throws {
    self.most = most
    for argument in arguments {
      if argument == "-" {
        try addStandardInput()
      } else if Paths.isDirectory(argument) {
        try add(folder: argument, leavingOut: leftOut)
      } else {
        try add(file: argument, isNamed: true)
      }
    }
    let kinds = [
      merger.firstName.map { ($0, "a result of 'load'") }, inspections.first.map { ($0.name, "an inspection") },
      fleets.first.map { ($0.name, "a result of 'devices'") },
      ledgers.first.map { ($0.name, "a ledger") },
    ].compactMap { $0 }
    if kinds.count > 1 {
      let advice = kinds[1].1 == "a ledger" && merger.count > 0 ? "; give the ledger with --ledger" : ""
      complain("\(kinds[1].0): is \(kinds[1].1), and \(kinds[0].0) \(kinds[0].1): they cannot be merged\(advice)")
      throw ExitStatus.damaged
    }
    guard kinds.isEmpty else { return }
    complain("merge: no usable results")
    throw ExitStatus.damaged
  }

  // MARK: files

  private mutating func add(folder: String, leavingOut leftOut: [String]) throws {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: folder)
    } catch {
      complain("\(folder): cannot be read")
      throw ExitStatus.cannotOpen
    }
    let results = names.filter { !$0.hasPrefix(".") }.compactMap { name -> String? in
      let whole = name.hasSuffix(PartialResult.suffix) ? String(name.dropLast(PartialResult.suffix.count)) : name
      return whole.hasSuffix(".json") ? whole : nil
    }
    for name in Set(results).sorted() {
      let path = Paths.path(of: name, in: folder)
      if leftOut.contains(where: { FilesInUse.isSame($0, path) }) { continue }
      try add(file: path, isNamed: false)
    }
  }

  /// - Parameter isNamed: given by name, not by its folder: then it has to be a result.
  private mutating func add(file path: String, isNamed: Bool) throws {
    let partial = path + PartialResult.suffix
    let hasPartial = Paths.exists(partial)
    guard Paths.exists(path) || !hasPartial else { return try add(Self.read(partial), partial, isNamed: isNamed) }
    let data = try Self.read(path)
    let content = ResultDocument.content(of: data, path)
    // The run was killed while the file was incomplete, or another program wrote it.
    if hasPartial, case .unreadable = content { return try add(Self.read(partial), partial, isNamed: isNamed) }
    let count = merger.count
    try add(content, of: data, path, isNamed: isNamed)
    guard hasPartial, merger.count > count else { return }
    // A run that ends at this moment removes its partial result.
    guard let later = ResultDocument.resultIfAny(of: partial) else { return }
    if later.started > lastStarted {
      miss("\(partial) is of a later run than \(path), and that run did not finish")
    }
  }

  private static func read(_ path: String) throws -> Data { try ResultDocument.contents(of: path) }

  // MARK: documents

  private mutating func addStandardInput() throws {
    let data = try ResultDocument.contents(of: "/dev/stdin")
    let input = DocumentSequence([UInt8](data))
    for (index, range) in input.documents.enumerated() {
      try add(data.subdata(in: range), "document \(index + 1) of standard input", isNamed: false)
    }
    if input.strayBytes > 0 {
      complain("standard input: \(input.strayBytes) bytes between the documents are not JSON; skipped")
    }
    if input.documents.isEmpty { miss("standard input contains no documents") }
  }

  private mutating func add(_ data: Data, _ name: String, isNamed: Bool) throws {
    try add(ResultDocument.content(of: data, name), of: data, name, isNamed: isNamed)
  }

  private mutating func add(
    _ content: ResultDocument.Content, of data: Data, _ name: String, isNamed: Bool
  ) throws {
    switch content {
    case .unreadable(let reason):
      // A file that is named and is whole, but for another command, is a mistake and no part that is missing.
      if isNamed, let kind = FileKind(beginning: data.prefix(4_096)) {
        complain("\(name): \(kind.advice)")
        throw ExitStatus.damaged
      }
      miss("\(name) \(reason)")
    case .result(let result):
      try note(data, name)
      try add(result, name)
    case .inspection(let report):
      try note(data, name)
      inspections.append(.init(name, report))
    case .fleet(let result):
      try note(data, name)
      fleets.append(.init(name, result))
    case .ledger(let ledger) where isNamed:
      try note(data, name)
      // A copy may be formatted otherwise.
      if let other = ledgers.first(where: { $0.ledger == ledger }) {
        complain("\(name): is the same result as \(other.name)")
        throw ExitStatus.damaged
      }
      ledgers.append((name, ledger))
    case .unusable(let kind, let failure) where isNamed || Self.kinds.contains(kind):
      throw failure
    case .foreign(let failure) where isNamed: throw failure
    case .ledger, .unusable, .foreign:
      complain("\(name): not a result of 'load' or 'devices', or an inspection; skipped")
    }
  }

  private mutating func add(_ result: RunResult, _ name: String) throws {
    do {
      try merger.add(.init(name, result))
    } catch {
      complain("\(error)")
      throw ExitStatus.damaged
    }
    lastStarted = result.started
  }

  /// Throws if a document was read before, or exceeds the largest number of results.
  private mutating func note(_ data: Data, _ name: String) throws {
    let digest = ContentDigest(Array(data).rawBytes).value
    if let other = names[digest] {
      complain("\(name): is the same result as \(other)")
      throw ExitStatus.damaged
    }
    names[digest] = name
    guard merger.count + inspections.count + fleets.count + ledgers.count < most else {
      complain("merge: more than \(grouped(most)) results; raise --max-results")
      throw ExitStatus.damaged
    }
  }

  private mutating func miss(_ what: String) {
    complain(what)
    unreadable.append(what)
  }
}

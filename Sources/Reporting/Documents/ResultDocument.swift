import Bytes
import FoundationEssentials
import Measurement

/// Results of commands as JSON documents. What reads them throws a `DocumentFailure`.
package enum ResultDocument {
  /// The longest document, in bytes: the series of a day needs a twentieth of it.
  package static let maximumLength = 1 << 28

  /// The header of every document.
  private struct Header: Decodable {
    var schema: Int
    var kind: String
  }

  /// The kind of a result, named after its command: `load`, `simulate`.
  package static func kind(of path: String) throws(DocumentFailure) -> String {
    let data = try contents(of: path)
    return try decoding(path, "a result") { try $0.decode(Header.self, from: data).kind }
  }

  /// The kind of a result, without error messages; `nil` if the file is not a result, or unreadable.
  package static func kindIfAny(of path: String) -> String? {
    guard let bytes = try? WholeFile.read(path, maximumLength: maximumLength) else { return nil }
    return try? JSONDecoder().decode(Header.self, from: Data(bytes)).kind
  }

  /// The result of a load, without error messages; `nil` if the file is something else, or does not exist.
  package static func resultIfAny(of path: String) -> RunResult? {
    guard let bytes = try? WholeFile.read(path, maximumLength: maximumLength),
      let header = try? JSONDecoder().decode(Header.self, from: Data(bytes)), header.kind == RunResult().kind
    else { return nil }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try? decoder.decode(RunResult.self, from: Data(bytes))
  }

  /// Reads the result of a load.
  package static func read(_ path: String) throws(DocumentFailure) -> RunResult {
    try read(path, kind: RunResult().kind, schema: RunResult().schema)
  }

  /// Reads the ledger of a simulator.
  package static func readLedger(_ path: String) throws(DocumentFailure) -> Ledger {
    try read(path, kind: Ledger().kind, schema: Ledger().schema)
  }

  /// Reads the result of a fleet of devices.
  package static func readFleet(_ path: String) throws(DocumentFailure) -> FleetResult {
    try read(path, kind: FleetResult().kind, schema: FleetResult().schema)
  }

  /// Reads the result of a search for a capacity.
  package static func readCapacity(_ path: String) throws(DocumentFailure) -> CapacityDocument {
    try read(path, kind: CapacityDocument().kind, schema: CapacityDocument().schema, oldest: 1)
  }

  private static func read<Document: Decodable>(
    _ path: String, kind: String, schema: Int, oldest: Int? = nil
  ) throws(DocumentFailure) -> Document {
    try decode(try contents(of: path), path, kind: kind, schema: schema, oldest: oldest ?? schema)
  }

  /// An inspection that was read already.
  package static func inspection(in data: Data, _ name: String) throws(DocumentFailure) -> InspectionReport {
    let document: InspectionDocument = try decode(
      data, name, kind: InspectionDocument.kind, schema: InspectionDocument.schema, oldest: InspectionDocument.schema)
    return document.report
  }

  /// The document that some bytes hold, or the reason why they hold none.
  package enum Content {
    case result(RunResult)
    case inspection(InspectionReport)
    case ledger(Ledger)
    case fleet(FleetResult)
    /// A document of another kind, or one of these kinds that cannot be used.
    case unusable(kind: String, DocumentFailure)
    /// JSON, and no document of a command.
    case foreign(DocumentFailure)
    case unreadable(reason: String)
  }

  /// Reads a document of whatever kind, in one pass: of thousands of results this is nearly all the work of merging.
  ///
  /// - Parameter name: its name in messages.
  package static func content(of data: Data, _ name: String) -> Content {
    if data.isEmpty { return .unreadable(reason: "is empty") }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let expected = "a result of '\(RunResult().kind)'"
    do {
      let document = try decoder.decode(AnyDocument.self, from: data)
      guard case .failure(let error) = document.content else { return try document.content.get() }
      let expected = "a result of '\(document.kind)'"
      return .unusable(kind: document.kind, failure(error, name, expected))
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      return .unreadable(reason: "is truncated or damaged: not JSON")
    } catch {
      return .foreign(failure(error, name, expected))
    }
  }

  /// A document, or the reason why it is not of any use.
  private struct AnyDocument: Decodable {
    let kind: String
    let content: Result<Content, any Error>

    init(from decoder: any Decoder) throws {
      let header = try Header(from: decoder)
      kind = header.kind
      content = Result {
        switch header.kind {
        case RunResult().kind:
          try ResultDocument.check(header, RunResult().schema...RunResult().schema)
          return .result(try RunResult(from: decoder))
        case InspectionDocument.kind:
          try ResultDocument.check(header, InspectionDocument.schema...InspectionDocument.schema)
          return .inspection(try InspectionDocument(from: decoder).report)
        case Ledger().kind:
          try ResultDocument.check(header, Ledger().schema...Ledger().schema)
          return .ledger(try Ledger(from: decoder))
        case FleetResult().kind:
          try ResultDocument.check(header, FleetResult().schema...FleetResult().schema)
          return .fleet(try FleetResult(from: decoder))
        default: throw DocumentFailure("", .otherKind(header.kind, expected: RunResult().kind))
        }
      }
    }
  }

  private static func check(_ header: Header, _ schemas: ClosedRange<Int>) throws(DocumentFailure) {
    guard schemas.contains(header.schema) else {
      throw DocumentFailure("", .unsupportedSchema(header.schema, newest: schemas.upperBound))
    }
  }

  private static func decode<Document: Decodable>(
    _ data: Data, _ path: String, kind: String, schema: Int, oldest: Int
  ) throws(DocumentFailure) -> Document {
    try decoding(path, "a result of '\(kind)'") { decoder in
      let header = try decoder.decode(Header.self, from: data)
      guard header.kind == kind else {
        throw DocumentFailure(path, .otherKind(header.kind, expected: kind))
      }
      try check(header, oldest...schema)
      return try decoder.decode(Document.self, from: data)
    }
  }

  /// The bytes of a document.
  package static func contents(of path: String) throws(DocumentFailure) -> Data {
    do {
      return Data(try WholeFile.read(path, maximumLength: maximumLength))
    } catch {
      throw DocumentFailure(path, .unreadable(reason: "\(error)"))
    }
  }

  private static func decoding<Document>(
    _ path: String, _ what: String, _ decode: (JSONDecoder) throws -> Document
  ) throws(DocumentFailure) -> Document {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return try decode(decoder)
    } catch {
      throw failure(error, path, what)
    }
  }

  /// An error while a document was read, with the document's name.
  private static func failure(_ error: any Error, _ name: String, _ expected: String) -> DocumentFailure {
    if let failure = error as? DocumentFailure { return DocumentFailure(name, failure.problem) }
    let reason = (error as? DecodingError).map { self.reason(of: $0) } ?? "\(error)"
    return DocumentFailure(name, .notADocument(expected: expected, reason: reason))
  }

  private static func reason(of error: DecodingError) -> String {
    func place(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
      (context.codingPath + (key.map { [$0] } ?? [])).map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }
        .joined(separator: ".")
    }
    switch error {
    case .keyNotFound(let key, let context): return "missing field '\(place(context, key))'"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return context.codingPath.isEmpty ? "not an object" : "wrong type of value for '\(place(context))'"
    case .dataCorrupted(let context):
      return context.codingPath.isEmpty ? "not JSON" : "'\(place(context))': \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
  }
}

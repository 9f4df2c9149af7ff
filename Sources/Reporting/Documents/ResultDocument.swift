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

  /// Reads the result of a search for a capacity.
  package static func readCapacity(_ path: String) throws(DocumentFailure) -> CapacityDocument {
    try read(path, kind: CapacityDocument().kind, schema: CapacityDocument().schema, oldest: 1)
  }

  private static func read<Document: Decodable>(
    _ path: String, kind: String, schema: Int, oldest: Int? = nil
  ) throws(DocumentFailure) -> Document {
    try decode(try contents(of: path), path, kind: kind, schema: schema, oldest: oldest ?? schema)
  }

  /// A result of a load that was read already.
  ///
  /// - Parameter name: its name in messages.
  package static func result(in data: Data, _ name: String) throws(DocumentFailure) -> RunResult {
    try decode(data, name, kind: RunResult().kind, schema: RunResult().schema, oldest: RunResult().schema)
  }

  /// A ledger that was read already.
  package static func ledger(in data: Data, _ name: String) throws(DocumentFailure) -> Ledger {
    try decode(data, name, kind: Ledger().kind, schema: Ledger().schema, oldest: Ledger().schema)
  }

  /// An inspection that was read already.
  package static func inspection(in data: Data, _ name: String) throws(DocumentFailure) -> InspectionReport {
    let document: InspectionDocument = try decode(
      data, name, kind: InspectionDocument.kind, schema: InspectionDocument.schema, oldest: InspectionDocument.schema)
    return document.report
  }

  /// The kind of a document, as far as its beginning shows.
  package enum Content {
    case document(kind: String)
    /// JSON, and no document of a command.
    case foreign
    case unreadable(reason: String)
  }

  package static func content(of data: Data) -> Content {
    if data.isEmpty { return .unreadable(reason: "is empty") }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return .document(kind: try decoder.decode(Header.self, from: data).kind)
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      return .unreadable(reason: "is truncated or damaged: not JSON")
    } catch {
      return .foreign
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
      guard (oldest...schema).contains(header.schema) else {
        throw DocumentFailure(path, .unsupportedSchema(header.schema, newest: schema))
      }
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
    } catch let failure as DocumentFailure {
      throw failure
    } catch {
      let reason = (error as? DecodingError).map { self.reason(of: $0) } ?? "\(error)"
      throw DocumentFailure(path, .notADocument(expected: what, reason: reason))
    }
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

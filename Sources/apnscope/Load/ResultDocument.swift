import ArgumentParser
import Bytes
import FoundationEssentials
import Measurement
import Reporting

/// Results of commands as JSON documents.
enum ResultDocument {
  /// The longest document, in bytes: the series of a day needs a twentieth of it.
  static let maximumLength = 1 << 28

  /// The header of every document.
  private struct Header: Decodable {
    var schema: Int
    var kind: String
  }

  /// The kind of a result, named after its command: `load`, `simulate`.
  static func kind(of path: String) throws -> String {
    let data = try contents(of: path)
    return try decoding(path, "a result") { try $0.decode(Header.self, from: data).kind }
  }

  /// The kind of a result, without error messages; `nil` if the file is not a result, or unreadable.
  static func kindIfAny(of path: String) -> String? {
    guard let bytes = try? WholeFile.read(path, maximumLength: maximumLength) else { return nil }
    return try? JSONDecoder().decode(Header.self, from: Data(bytes)).kind
  }

  /// The result of a load, without error messages; `nil` if the file is something else, or does not exist.
  static func resultIfAny(of path: String) -> RunResult? {
    guard let bytes = try? WholeFile.read(path, maximumLength: maximumLength),
      let header = try? JSONDecoder().decode(Header.self, from: Data(bytes)), header.kind == RunResult().kind
    else { return nil }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try? decoder.decode(RunResult.self, from: Data(bytes))
  }

  /// Reports an error and throws an exit code when it is unreadable or not a result of a load.
  static func read(_ path: String) throws -> RunResult {
    try read(path, kind: RunResult().kind, schema: RunResult().schema)
  }

  /// Reads the ledger of a simulator; throws an exit code after reporting an error.
  static func readLedger(_ path: String) throws -> Ledger {
    try read(path, kind: Ledger().kind, schema: Ledger().schema)
  }

  /// Reads the result of a capacity search; throws an exit code after reporting an error.
  static func readCapacity(_ path: String) throws -> CapacityDocument {
    try read(path, kind: CapacityDocument().kind, schema: CapacityDocument().schema, oldest: 1)
  }

  private static func read<Document: Decodable>(
    _ path: String, kind: String, schema: Int, oldest: Int? = nil
  ) throws -> Document {
    try decode(try contents(of: path), path, kind: kind, schema: schema, oldest: oldest ?? schema)
  }

  /// A result of a load that was read already.
  ///
  /// - Parameter name: its name in messages.
  static func result(in data: Data, _ name: String) throws -> RunResult {
    try decode(data, name, kind: RunResult().kind, schema: RunResult().schema, oldest: RunResult().schema)
  }

  /// Decodes an inspection; throws an exit code after reporting an error.
  static func inspection(in data: Data, _ name: String) throws -> InspectionReport {
    let document: InspectionDocument = try decode(
      data, name, kind: InspectionDocument.kind, schema: InspectionDocument.schema, oldest: InspectionDocument.schema)
    return document.report
  }

  /// The kind of a document, as far as its beginning shows.
  enum Content {
    case document(kind: String)
    /// JSON, and no document of a command.
    case foreign
    case unreadable(reason: String)
  }

  static func content(of data: Data) -> Content {
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
  ) throws -> Document {
    try decoding(path, "a result of '\(kind)'") { decoder in
      let header = try decoder.decode(Header.self, from: data)
      guard header.kind == kind else {
        complain("\(path): is a result of '\(header.kind)', not of '\(kind)'")
        throw ExitStatus.damaged
      }
      guard (oldest...schema).contains(header.schema) else {
        complain("\(path): unsupported schema \(header.schema); this apnscope reads schema \(schema)")
        throw ExitStatus.damaged
      }
      return try decoder.decode(Document.self, from: data)
    }
  }

  /// Complains and throws an exit code when it cannot be read.
  static func contents(of path: String) throws -> Data {
    do {
      return Data(try WholeFile.read(path, maximumLength: maximumLength))
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
  }

  private static func decoding<Document>(
    _ path: String, _ what: String, _ decode: (JSONDecoder) throws -> Document
  ) throws -> Document {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      return try decode(decoder)
    } catch let error as DecodingError {
      if let kind = FileKind(beginning: FileKind.beginning(of: path)) {
        complain("\(path): \(kind.advice); expected \(what)")
        throw ExitStatus.damaged
      }
      complain("\(path): is not \(what): \(reason(of: error))")
      throw ExitStatus.damaged
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

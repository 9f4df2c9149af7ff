import ArgumentParser
import Bytes
import FoundationEssentials
import Measurement

/// A load's result as a JSON document.
enum ResultDocument {
  /// Longest document in bytes: a day's series takes a twentieth of it.
  private static let maximumLength = 1 << 28

  /// What every document begins with, whatever else is in it.
  private struct Header: Decodable {
    var schema: Int
    var kind: String
  }

  /// Complains and throws an exit code when it cannot be read or is no result of a load.
  static func read(_ path: String) throws -> RunResult {
    let data: Data
    do {
      data = Data(try WholeFile.read(path, maximumLength: maximumLength))
    } catch {
      complain("\(path): \(error)")
      throw ExitStatus.cannotOpen
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
      let header = try decoder.decode(Header.self, from: data)
      guard header.kind == RunResult().kind else {
        complain("\(path): is a result of '\(header.kind)', not of 'load'")
        throw ExitStatus.damaged
      }
      guard header.schema == RunResult().schema else {
        complain("\(path): has schema \(header.schema); this apnscope knows schema \(RunResult().schema)")
        throw ExitStatus.damaged
      }
      return try decoder.decode(RunResult.self, from: data)
    } catch let error as DecodingError {
      complain("\(path): is no result of a load: \(reason(of: error))")
      throw ExitStatus.damaged
    }
  }

  private static func reason(of error: DecodingError) -> String {
    func place(_ context: DecodingError.Context, _ key: (any CodingKey)? = nil) -> String {
      (context.codingPath + (key.map { [$0] } ?? [])).map { $0.intValue.map { "[\($0)]" } ?? $0.stringValue }
        .joined(separator: ".")
    }
    switch error {
    case .keyNotFound(let key, let context): return "'\(place(context, key))' is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      return context.codingPath.isEmpty ? "it is no object" : "'\(place(context))' is of another type"
    case .dataCorrupted(let context):
      return context.codingPath.isEmpty ? "it is not JSON" : "'\(place(context))': \(context.debugDescription)"
    @unknown default: return "\(error)"
    }
  }
}

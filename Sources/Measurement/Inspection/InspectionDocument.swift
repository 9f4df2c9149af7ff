/// An inspection as `apnscope inspect --format json` writes it: the report's fields, with the document's kind and
/// schema.
///
/// Documents of 0.1.0 have neither, name `lifetimes_s` `lifetimes`, and are read as well.
public struct InspectionDocument: Sendable, Equatable, Codable {
  /// Version of the contract (Documentation/results.md).
  public static let schema = 1
  public static let kind = "inspect"

  public var report: InspectionReport

  package init(_ report: InspectionReport) { self.report = report }

  private enum CodingKeys: String, CodingKey { case schema, kind }
  private enum EarlierKey: String, CodingKey { case lifetimes }

  public init(from decoder: any Decoder) throws {
    let header = try decoder.container(keyedBy: CodingKeys.self)
    if let kind = try header.decodeIfPresent(String.self, forKey: .kind), kind != Self.kind {
      throw DecodingError.dataCorruptedError(
        forKey: .kind, in: header, debugDescription: "it is a result of '\(kind)', not of '\(Self.kind)'")
    }
    if let schema = try header.decodeIfPresent(Int.self, forKey: .schema), schema != Self.schema {
      throw DecodingError.dataCorruptedError(
        forKey: .schema, in: header,
        debugDescription: "it has schema \(schema); this apnscope knows schema \(Self.schema)")
    }
    report = try InspectionReport(from: decoder)
    let earlier = try decoder.container(keyedBy: EarlierKey.self)
    if let lifetimes = try earlier.decodeIfPresent(Distribution.self, forKey: .lifetimes) {
      report.lifetimesS = lifetimes
    }
  }

  public func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var header = encoder.container(keyedBy: CodingKeys.self)
    try header.encode(Self.schema, forKey: .schema)
    try header.encode(Self.kind, forKey: .kind)
  }
}

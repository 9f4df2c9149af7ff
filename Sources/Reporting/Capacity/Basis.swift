/// The evidence of a figure of a plan.
public enum Basis: String, Sendable, Codable {
  /// A trial has shown it.
  case measured
  /// It lies between values that trials have shown.
  case interpolated
  /// A law predicts it beyond all that trials have shown.
  case extrapolated
}

extension Basis? {
  /// A remark behind a figure; empty for a measured one.
  package var remark: String {
    switch self {
    case .measured, nil: ""
    case .interpolated: " (between measured values)"
    case .extrapolated: " (predicted, not measured)"
    }
  }
}

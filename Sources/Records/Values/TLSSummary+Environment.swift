import Measurement
import TLSDecryption

extension TLSSummary {
  /// The environment that the client's certificate is for; `nil` when its extensions name none.
  package var environment: ProviderEnvironment? {
    get {
      switch (isForSandbox, isForProduction) {
      case (true, true): .both
      case (true, false): .sandbox
      case (false, true): .production
      case (false, false): nil
      }
    }
    set {
      isForSandbox = newValue == .sandbox || newValue == .both
      isForProduction = newValue == .production || newValue == .both
    }
  }
}

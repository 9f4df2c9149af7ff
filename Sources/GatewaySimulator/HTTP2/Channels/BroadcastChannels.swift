import Bytes
import Measurement
import ProviderAPI
import Synchronization

/// The channels of broadcasts, of all apps.
///
/// Shared by the event loops: each request to channel management, and each broadcast, holds the lock for a look-up. Of requests
/// on several connections at once either may be the first.
///
/// Memory: the identifiers of `maximum` channels. Messages are not kept, for there are no devices that ask for them: it is
/// known until when one would be.
final class BroadcastChannels: Sendable {
  struct Channel: Sendable {
    var settings: ChannelSettings
    /// UNIX ms until which its newest message is kept; `nil`: none is.
    var keepsUntil: Int64?
  }

  private struct State {
    var apps: [String: [String: Channel]] = [:]
    var count = 0
    var generator: SplitMix64
  }

  /// Channels of one app (Apple: 10,000 in each environment), and of all.
  private let maximumOfApp: Int
  private let maximum: Int
  private let state: Mutex<State>

  init(maximumOfApp: Int, maximum: Int, seed: UInt64) {
    (self.maximumOfApp, self.maximum) = (maximumOfApp, maximum)
    state = Mutex(State(generator: SplitMix64(seed: seed ^ 0x6368_616e_6e65_6c73)))
  }

  /// Creates a channel, and returns its identifier: 16 drawn bytes in Base64. `nil`: there are as many as there may be.
  func create(_ settings: ChannelSettings, of app: String) -> String? {
    state.withLock { state in
      guard state.count < maximum, state.apps[app]?.count ?? 0 < maximumOfApp else { return nil }
      var text: String
      repeat {
        var writer = ByteWriter(capacity: 24)
        var bytes = ByteWriter(capacity: 16)
        bytes.write(bigEndian: state.generator.next())
        bytes.write(bigEndian: state.generator.next())
        writer.write(base64: bytes.bytes)
        text = String(decoding: Array(copying: writer.bytes), as: UTF8.self)
      } while state.apps[app]?[text] != nil
      state.apps[app, default: [:]][text] = Channel(settings: settings)
      state.count += 1
      return text
    }
  }

  /// A channel; `nil`: it is not registered.
  func channel(_ identifier: String, of app: String) -> Channel? { state.withLock { $0.apps[app]?[identifier] } }

  /// Deletes a channel; `false`: it is not registered.
  func delete(_ identifier: String, of app: String) -> Bool {
    state.withLock { state in
      guard state.apps[app]?.removeValue(forKey: identifier) != nil else { return false }
      state.count -= 1
      if state.apps[app]?.isEmpty == true { state.apps[app] = nil }
      return true
    }
  }

  /// The channels of an app, in the order of their text.
  func all(of app: String) -> [String] { state.withLock { $0.apps[app]?.keys.sorted() ?? [] } }

  /// Takes a broadcast.
  ///
  /// - Parameters:
  ///   - expiration: `apns-expiration` in s; a channel that keeps no message takes 0 alone.
  ///   - now: UNIX ms.
  /// - Returns: the reason of its rejection; `nil`: it is accepted.
  func broadcast(to identifier: String, of app: String, expiration: UInt64?, now: Int64) -> ProviderReason? {
    state.withLock { state in
      guard let channel = state.apps[app]?[identifier] else { return .channelNotRegistered }
      guard let expiration, channel.settings.keepsMessage || expiration == 0 else { return .badExpirationDate }
      guard channel.settings.keepsMessage else { return nil }
      let end = Int64(clamping: expiration).multipliedReportingOverflow(by: 1_000)
      let limit = now + ServingRules.longestStorage
      let until = end.overflow ? limit : min(end.partialValue, limit)
      // The newest message takes the place of the one before, also when nothing of it is kept.
      state.apps[app]?[identifier]?.keepsUntil = until > now ? until : nil
      return nil
    }
  }

  /// Channels that are registered, and those of them that keep a message. O(n).
  func counts(now: Int64) -> (registered: Int, keeping: Int) {
    state.withLock { state in
      (
        state.count,
        state.apps.values.reduce(0) { $0 + $1.values.count { $0.keepsUntil.map { $0 > now } ?? false } }
      )
    }
  }

  /// Deletes all of them.
  func removeAll() {
    state.withLock { ($0.apps, $0.count) = ([:], 0) }
  }
}

import Bytes
import DeviceProtocol
import NIOCore
import Synchronization

/// The registered devices, shared by all event loops: every notification for one of them, and every message of one, passes
/// here.
///
/// A message goes into the mailbox of its device's loop under the lock under which it was decided on, so the sequences of an
/// app reach its connection in their order, whichever loop has read the notification. With a file, what a message
/// promises is written before: a notification before it counts as accepted, its sequence before it is sent. While the file
/// cannot be written, messages wait, and no notification is accepted.
final class DeviceDirectory: Sendable {
  /// The decision on a notification.
  enum Decision: Sendable, Equatable {
    case decided(RegisteredDevices.Decision)
    /// It cannot be kept: it is not accepted.
    case unkept
  }

  private struct State {
    var devices: RegisteredDevices
    /// Changes that the file does not have, and what waits for it.
    var unwritten: [RegisteredDevices.Change] = []
    var unsent: [(link: RegisteredApp.Link, message: DeviceMessage)] = []
    var mailboxes: [DeviceMailbox] = []
    /// Takes the reason when the file cannot be written.
    var report: @Sendable (any Error) -> Void = { _ in }
  }

  private let state: Mutex<State>
  private let file: DeviceFile?
  /// Is told what becomes of notifications; `nil`: nobody is.
  private let observer: (@Sendable ([DeviceOutcome]) -> Void)?

  /// - Parameter file: what it keeps is read with `restore`.
  init(
    _ options: DeviceChannel, seed: UInt64, file: DeviceFile?,
    observer: (@Sendable ([DeviceOutcome]) -> Void)? = nil
  ) {
    state = Mutex(
      State(
        devices: RegisteredDevices(options, seed: seed, keepsOutcomes: observer != nil, keepsChanges: file != nil)))
    (self.file, self.observer) = (file, observer)
  }

  /// Takes what the file has kept of an earlier run. Called once, before anything else.
  func restore(now: Int64, number: @Sendable (_ topic: String) -> UInt32?) throws(SimulatorError) {
    guard let file else { return }
    try file.forEach { app in
      guard let topic = number(app.topic) else { return }
      state.withLock {
        $0.devices.restore(
          topic: topic, name: app.topic, token: app.token, device: app.device, generation: app.generation,
          retiredAt: app.retiredAt)
      }
    } notification: { kept in
      guard let topic = number(kept.topic) else { return }
      state.withLock {
        $0.devices.restore(kept.held, topic: topic, token: kept.token, sequence: kept.sequence, now: now)
      }
    }
    use { _ in }
  }

  /// - Parameters:
  ///   - mailboxes: where the messages for devices go, by the number of their loop.
  ///   - report: takes the reason when the file cannot be written.
  func begin(_ mailboxes: [DeviceMailbox], report: @escaping @Sendable (any Error) -> Void) {
    state.withLock { ($0.mailboxes, $0.report) = (mailboxes, report) }
  }

  /// Calls a body with the devices, and then sends and tells what it has decided.
  @discardableResult
  func use<Result: Sendable>(_ body: (inout RegisteredDevices) -> Result) -> Result {
    var outcomes: [DeviceOutcome] = []
    let result = state.withLock { state in
      let result = body(&state.devices)
      send(&state)
      outcomes = state.devices.takeOutcomes()
      return result
    }
    if let observer, !outcomes.isEmpty { observer(outcomes) }
    return result
  }

  /// Takes a notification. What is not accepted for a registered device is not changed by the call.
  func accept(_ push: OfferedPush, topic name: String, now: Int64) -> Decision {
    // Nothing else comes between the number that the file has and that of the devices.
    var outcomes: [DeviceOutcome] = []
    let decision: Decision = state.withLock { state in
      let decision = state.devices.decision(on: push)
      guard decision == .accepted else { return .decided(decision) }
      if let file {
        send(&state)
        guard state.unwritten.isEmpty else {
          state.devices.noteUnkept()
          return .unkept
        }
        do throws(SimulatorError) {
          let held = state.devices.held(push, number: state.devices.nextNumber)
          try file.insert(held, topic: name, token: Array(copying: push.token))
        } catch {
          state.report(error)
          state.devices.noteUnkept()
          return .unkept
        }
      }
      let accepted = state.devices.accept(push, now: now)
      send(&state)
      outcomes = state.devices.takeOutcomes()
      return .decided(accepted)
    }
    if let observer, !outcomes.isEmpty { observer(outcomes) }
    return decision
  }

  /// Writes what has changed, and sends what was decided when it is written.
  private func send(_ state: inout State) {
    state.unsent += state.devices.takeMessages()
    if let file {
      state.unwritten += state.devices.takeChanges()
      if !state.unwritten.isEmpty {
        do throws(SimulatorError) {
          try file.apply(state.unwritten)
          state.unwritten = []
        } catch {
          return state.report(error)
        }
      }
    }
    guard !state.unsent.isEmpty else { return }
    for (link, message) in state.unsent where link.loop < state.mailboxes.count {
      state.mailboxes[link.loop].put((link.connection, message))
    }
    state.unsent = []
  }

  /// The counts at a UNIX ms.
  func counts(now: Int64) -> RegisteredDevices.Counts {
    use { devices in
      devices.advance(to: now)
      return devices.counts
    }
  }

  /// Ends the time of all.
  func close(now: Int64) {
    use { $0.close(now: now) }
    file?.close()
  }
}

/// The messages for the devices of one event loop.
typealias DeviceMailbox = Mailbox<(connection: UInt64, message: DeviceMessage)>

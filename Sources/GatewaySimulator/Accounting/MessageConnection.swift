import NIOCore

/// A watched connection over which messages come that may be written faster than the peer reads.
protocol MessageConnection: WatchedConnection {
  var shared: SimulatorContext { get }
  var loopState: EventLoopState { get }
  /// The beginning of a message.
  var pending: [UInt8] { get set }
  var held: HeldMemory { get set }
  /// When something came, or reading began anew.
  var lastRead: NIODeadline { get set }
  /// Since when the peer reads less than is written; `nil`: it keeps up.
  var unwritableSince: NIODeadline? { get set }
}

extension MessageConnection {
  /// Keeps the beginning of a message; a large one counts for the limit of memory.
  func keep(_ bytes: [UInt8]) {
    pending = bytes
    let isLong = pending.count > 1_024
    if !held.change(to: isLong ? pending.capacity : 0, of: shared.memory) { context?.close(promise: nil) }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    let keepsUp = context.channel.isWritable
    unwritableSince = keepsUp ? nil : unwritableSince ?? loopState.loop.now
    if keepsUp { lastRead = loopState.loop.now }
    read(keepsUp, context)
    context.fireChannelWritabilityChanged()
  }
}

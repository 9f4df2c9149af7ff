import Glibc
import NIOCore

/// Options of a TCP socket that affect the cost of an error and the throughput; `nil` keeps the system's.
public struct SocketOptions: Sendable, Equatable {
  /// SO_SNDBUF in bytes; the kernel doubles it. It bounds the bytes written and not yet read by the peer.
  public var sendBuffer: Int?
  /// SO_RCVBUF in bytes; the kernel doubles it. It has to be set before the connection is made: on a listening socket it
  /// counts for all connections.
  public var receiveBuffer: Int?
  /// TCP_NODELAY: segments are sent at once. `false` is Nagle's algorithm.
  public var noDelay: Bool?
  /// TCP_NOTSENT_LOWAT in bytes: writable only while less than this waits unsent in the kernel.
  public var notSentLowWater: Int?

  /// Makes options. By default only Nagle's algorithm is turned off.
  public init(
    sendBuffer: Int? = nil, receiveBuffer: Int? = nil, noDelay: Bool? = true, notSentLowWater: Int? = nil
  ) {
    self.sendBuffer = sendBuffer
    self.receiveBuffer = receiveBuffer
    self.noDelay = noDelay
    self.notSentLowWater = notSentLowWater
  }

  /// The options as pairs for a bootstrap's `channelOption` or `childChannelOption`.
  package var channelOptions: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] {
    var options: [(ChannelOptions.Types.SocketOption, SocketOptionValue)] = []
    func add(_ level: Int32, _ name: Int32, _ value: Int?) {
      guard let value else { return }
      options.append((.init(level: .init(level), name: .init(name)), SocketOptionValue(clamping: value)))
    }
    add(SOL_SOCKET, SO_SNDBUF, sendBuffer)
    add(SOL_SOCKET, SO_RCVBUF, receiveBuffer)
    add(Int32(IPPROTO_TCP), TCP_NODELAY, noDelay.map { $0 ? 1 : 0 })
    add(Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, notSentLowWater)
    return options
  }

  /// Sets them on an existing channel.
  package func apply(to channel: any Channel) -> EventLoopFuture<Void> {
    EventLoopFuture.andAllSucceed(
      channelOptions.map { channel.setOption($0.0, value: $0.1) }, on: channel.eventLoop)
  }
}

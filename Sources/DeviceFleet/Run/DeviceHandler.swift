import Bytes
import Glibc
import Measurement
import NIOCore
import TLSTransport

/// Passes the events of a channel to its device.
final class DeviceHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let fleet: FleetLoop
  private let device: FleetDevice
  private let attempt: UInt32
  private var error: (any Error)?

  init(_ fleet: FleetLoop, _ device: FleetDevice) {
    (self.fleet, self.device) = (fleet, device)
    attempt = device.attempt
  }

  func channelActive(context: ChannelHandlerContext) {
    if !fleet.usesTLS { fleet.opened(device, context.channel, attempt: attempt) }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is TLSConnectionInfo {
      fleet.opened(device, context.channel, attempt: attempt)
    } else if case .some(.inputClosed) = event as? ChannelEvent {
      context.close(promise: nil)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    fleet.received(unwrapInboundIn(data), device, attempt: attempt)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { fleet.writable(device, attempt: attempt) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.error = self.error ?? error
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) { fleet.ended(device, error, attempt: attempt) }
}

/// Why a connection could not be made, or was lost.
enum ConnectionFailure {
  /// The message of the system or the library, without what differs from one connection to the next.
  static func reason(_ error: any Error) -> String {
    switch error {
    case let error as IOError: SystemError.text(error.errnoCode)
    case let error as TLSError where error.cause == .noTLS:
      "\(error): the gateway does not seem to use TLS; if so, give --plain"
    case ChannelError.connectTimeout(let time): "no answer in \(time.nanoseconds / 1_000_000) ms"
    default: "\(error)"
    }
  }

  static func cause(_ error: (any Error)?) -> FleetResult.Connections.Cause {
    switch error {
    case nil: .peerFin
    case let error as IOError where error.errnoCode == ECONNRESET || error.errnoCode == EPIPE: .peerRst
    default: .error
    }
  }
}

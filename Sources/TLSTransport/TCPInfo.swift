import Glibc
import NIOCore

/// The kernel's state of a TCP connection: the beginning of Linux's `struct tcp_info`, as words.
package struct TCPInfo: Sendable {
  // tcpi_state … tcpi_notsent_bytes
  private var words = InlineArray<37, UInt32>(repeating: 0)

  /// Asks the kernel; on the channel's event loop the answer is there at once.
  package static func of(_ channel: any SocketOptionProvider) -> EventLoopFuture<TCPInfo> {
    channel.unsafeGetSocketOption(level: .init(Int32(IPPROTO_TCP)), name: .init(TCP_INFO))
  }

  private var state: UInt8 { UInt8(truncatingIfNeeded: words[0]) }

  /// A FIN has come, and no reset.
  package var hasPeerEnded: Bool { state == UInt8(TCP_CLOSE_WAIT) || state == UInt8(TCP_LAST_ACK) }

  /// Everything that was written has arrived in the peer's kernel, and the connection was not reset.
  package var isAcknowledged: Bool {
    let (unacknowledged, unsent) = (words[6], words[36])
    return state != UInt8(TCP_CLOSE) && unacknowledged == 0 && unsent == 0
  }

  /// The peer has acknowledged everything sent, including our FIN.
  package var isEndAcknowledged: Bool {
    isAcknowledged && (state == UInt8(TCP_FIN_WAIT2) || state == UInt8(TCP_TIME_WAIT))
  }

  /// The smoothed round-trip time in microseconds; right after connecting, that of SYN and SYN-ACK. `nil` if a segment
  /// was retransmitted, which distorts it, or none was acknowledged.
  package var roundTrip: Int? {
    let (roundTrip, retransmissions) = (words[17], words[25])
    return roundTrip > 0 && retransmissions == 0 ? Int(roundTrip) : nil
  }
}

import Measurement
import NIOCore

extension Duration {
  var timeAmount: TimeAmount { .nanoseconds(nanoseconds) }
}

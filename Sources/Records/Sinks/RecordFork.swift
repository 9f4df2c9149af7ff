import Bytes
import PacketCapture
import PushModel

/// Passes records to two sinks. One that wants no further ones gets none; reading goes on for the other.
///
/// Selections and lanes are not supported: it is for the records of one thread, all of which are wanted.
package struct RecordFork<First: RecordSink, Second: RecordSink>: RecordSink {
  package var first: First
  package var second: Second

  package init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

  package var isOpen: Bool { first.isOpen || second.isOpen }

  package mutating func receive(_ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int) {
    if first.isOpen { first.receive(fields, frame, at: place, index: index) }
    if second.isOpen { second.receive(fields, frame, at: place, index: index) }
  }
  package mutating func receive(
    malformed problem: String, _ fields: PushFields, _ frame: RawSpan, at place: RecordPlace, index: Int
  ) {
    if first.isOpen { first.receive(malformed: problem, fields, frame, at: place, index: index) }
    if second.isOpen { second.receive(malformed: problem, fields, frame, at: place, index: index) }
  }
  package mutating func receive(_ record: borrowing FeedbackRecord) {
    if first.isOpen { first.receive(record) }
    if second.isOpen { second.receive(record) }
  }

  package mutating func receive(_ record: borrowing ProviderNotificationRecord) {
    if first.isOpen { first.receive(record) }
    if second.isOpen { second.receive(record) }
  }
  package mutating func receive(_ record: ProviderRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: MessageRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }

  private mutating func pass(_ first: (inout First) -> Void, _ second: (inout Second) -> Void) {
    if self.first.isOpen { first(&self.first) }
    if self.second.isOpen { second(&self.second) }
  }

  package mutating func receive(_ record: CaptureRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receiveEarly(_ record: ErrorResponseRecord) {
    pass {
      $0.receiveEarly(record)
    } _: {
      $0.receiveEarly(record)
    }
  }
  package mutating func receive(_ record: ErrorResponseRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: FateRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receiveEarly(_ record: FateRecord) {
    pass {
      $0.receiveEarly(record)
    } _: {
      $0.receiveEarly(record)
    }
  }
  package mutating func receive(_ record: GapRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: MalformedRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: ConnectionRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: CaptureLossRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: DeliveryRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ record: SummaryRecord) {
    pass {
      $0.receive(record)
    } _: {
      $0.receive(record)
    }
  }
  package mutating func receive(_ outcome: CaptureOutcome) {
    pass {
      $0.receive(outcome)
    } _: {
      $0.receive(outcome)
    }
  }
  package mutating func opened(connection: Int, at time: Timestamp) {
    pass {
      $0.opened(connection: connection, at: time)
    } _: {
      $0.opened(connection: connection, at: time)
    }
  }
  package mutating func presented(subject: String, connection: Int) {
    pass {
      $0.presented(subject: subject, connection: connection)
    } _: {
      $0.presented(subject: subject, connection: connection)
    }
  }
  package mutating func ended(connection: Int) {
    pass {
      $0.ended(connection: connection)
    } _: {
      $0.ended(connection: connection)
    }
  }
  package mutating func segment(notifications: Int, at time: Timestamp) {
    pass {
      $0.segment(notifications: notifications, at: time)
    } _: {
      $0.segment(notifications: notifications, at: time)
    }
  }
  package mutating func pause() {
    pass {
      $0.pause()
    } _: {
      $0.pause()
    }
  }
}

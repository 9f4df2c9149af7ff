import Dissection
import InterfaceCapture
import PacketCapture

/// The user of a reading: learns how it goes, and may end it.
package protocol ReadingObserver: AnyObject {
  /// The user has asked for an end of the reading: what came by then is read.
  var isStopRequested: Bool { get }
  /// Whether the user has asked for an end, which is forgotten: the next request is the first again.
  func takeStopRequest() -> Bool
  func receive(_ notice: ReadingNotice)
  /// Called after every batch of packets, and five times a second while none come.
  func show(_ progress: DissectionProgress)
  /// An input has ended.
  func endProgress()
}

/// What a user should know of a reading, in the order of events.
package enum ReadingNotice {
  /// How an input is read.
  case interpreted(RecordingInput, String)
  /// An input has a fault as a file, and was read all the same.
  case warning(RecordingInput, String)
  /// An input cannot be opened, or not be read to its end.
  case failure(RecordingInput, CaptureError)
  /// The name of a file in a folder, before the file is opened.
  case found(String)
  /// Files of a folder that are no captures.
  case leftOut(folder: RecordingInput, files: [String])
  case interface(InterfaceCaptureFailure)
  /// Connections whose notifications' fates are not in the records of these.
  case fatesNotKept(connections: Int)
  /// Answers whose status, reason and latency are not in the records of their notifications.
  case answersNotKept(Int)
  /// A limit was reached, so that selected records are missing.
  case selectionCut
  /// An input had more in the second pass than in the first.
  case hasGrown
}

/// The first reason why not all inputs were read.
package enum ReadingFailure: Error {
  case input(CaptureError)
  case interface(InterfaceCaptureFailure)
  /// The packets of an interface could not be kept.
  case ring
}

/// The reason why inputs cannot be read as asked for.
package enum ReadingRefusal: Error, Equatable {
  /// Fates in records of notifications need the end of the input, and an interface has none.
  case fatesOfInterface
  /// The selection depends on facts that come with the end of connections, and an interface cannot be read twice.
  case selectionOfInterface
  /// The same, of standard input or a pipe that may not be copied.
  case selectionOfPipe
  /// A pipe with a name, of which no copy is made; what needs it read twice.
  case notRepeatable(RecordingInput, for: Need)

  /// What needs inputs read more than once.
  package enum Need: Equatable {
    case fates, selection, comments
  }
}

import PacketCapture

/// A file that was opened.
public struct CaptureRecord: Sendable {
  public static let schema = 1
  /// Its number among the files, from 1; `nil` if there is only one file.
  public var file: Int?
  public var source: String
  public var format: CaptureFormat
  public var linkTypes: [LinkType]
  /// The selection of the following records, as options of the command; empty when all follow.
  public var selection: [String] = []
  /// It was read back from records of a selection: the recording's other records are missing. Not a field of the
  /// record.
  package var isOfSelection = false

  package init(
    file: Int? = nil, source: String, format: CaptureFormat, linkTypes: [LinkType], selection: [String] = [],
    isOfSelection: Bool = false
  ) {
    self.file = file
    self.source = source
    self.format = format
    self.linkTypes = linkTypes
    self.selection = selection
    self.isOfSelection = isOfSelection
  }
}

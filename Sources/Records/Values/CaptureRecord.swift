import PacketCapture

/// A file, or another input, that was opened.
public struct CaptureRecord: Sendable {
  /// The version of the records' fields, as in the field `schema`.
  public static let schema = 1
  /// The file's number, from 1; `nil` if there is only one file.
  public var file: Int?
  /// The name that the reader of the file gave.
  public var source: String
  /// The recognised format.
  public var format: CaptureFormat
  /// The link types of the interfaces described before the first packet; empty for dumps.
  public var linkTypes: [LinkType]
  /// The selection of the following records, as options of the command; empty when all follow.
  public var selection: [String] = []
  /// Whether the record was read back from a selection, so that the recording's other records are missing. Not a field
  /// of the record.
  package var isOfSelection = false
  /// Whether the connections are observed as they happen, from the first one on. Not a field of the record: a file of
  /// records may begin anywhere.
  package var isObserved = false

  package init(
    file: Int? = nil, source: String, format: CaptureFormat, linkTypes: [LinkType], selection: [String] = [],
    isOfSelection: Bool = false, isObserved: Bool = false
  ) {
    self.file = file
    self.source = source
    self.format = format
    self.linkTypes = linkTypes
    self.selection = selection
    self.isOfSelection = isOfSelection
    self.isObserved = isObserved
  }
}

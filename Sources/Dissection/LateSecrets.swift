import PacketCapture
import TLSDecryption

/// The secrets in the files of a recording, which may come after the packets they decrypt.
final class LateSecrets {
  private let paths: [String]
  private let options: DissectionOptions
  /// The files can be read ahead.
  var mayHelp: Bool { !paths.isEmpty }
  /// A pipe, which cannot be read ahead, may contain secrets.
  let mayCome: Bool
  /// The files were read ahead, to their ends.
  private(set) var hasRead = false
  /// Blocks received while reading.
  private var blocksSeen = 0
  private var bytesSeen = 0
  /// Blocks were found in an order other than the files'.
  var isOutOfOrder = false

  init(_ recording: Recording, _ options: DissectionOptions) {
    let files = recording.files.filter { $0.format == .pcapng }
    paths = files.filter { $0.size != nil }.map(\.path)
    mayCome = files.contains { $0.size == nil }
    self.options = options
  }

  /// The key log of new blocks; empty if they were read ahead or exceed the limit.
  func keyLogs(of blocks: [DecryptionSecrets]) -> [KeyLog] {
    blocksSeen += blocks.count
    return hasRead ? [] : Self.keyLogs(within(blocks, &bytesSeen), options)
  }

  /// The blocks not received yet; called when the secret of a connection is missing.
  func read() -> [KeyLog] {
    hasRead = true
    var blocks: [DecryptionSecrets] = []
    var bytes = 0
    for path in paths {
      blocks += within(CaptureFile.secrets(in: path, options: options.capture), &bytes)
      if bytes >= options.capture.maximumSecretsLength { break }
    }
    return Self.keyLogs(Array(blocks.dropFirst(isOutOfOrder ? 0 : blocksSeen)), options)
  }

  /// The limits of one file apply to the blocks of all files together.
  private func within(_ blocks: [DecryptionSecrets], _ bytes: inout Int) -> [DecryptionSecrets] {
    blocks.filter { block in
      guard bytes + block.data.count <= options.capture.maximumSecretsLength else { return false }
      bytes += block.data.count
      return true
    }
  }

  /// One key log of all blocks: a hostile file has millions of blocks.
  private static func keyLogs(_ blocks: [DecryptionSecrets], _ options: DissectionOptions) -> [KeyLog] {
    let texts = blocks.filter { $0.type == DecryptionSecrets.tlsKeyLog }.map(\.data)
    if texts.isEmpty { return [] }
    return [KeyLog(Array(texts.joined(separator: [0x0a])), maximumLines: options.maximumKeyLogLines)]
  }
}

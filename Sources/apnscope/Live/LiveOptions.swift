import ArgumentParser
import CommandFiles
import InterfaceCapture

/// The network interface that a command reads instead of files.
struct LiveOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Capture from this network interface until Ctrl-C, SIGTERM or SIGHUP, with dumpcap or else tcpdump. Files of --keys may grow meanwhile.",
      valueName: "name"), completion: .interfaces)
  var interface: String?

  @Flag(name: [.customShort("D"), .long], help: "List the network interfaces, and exit.")
  var listInterfaces = false

  @Option(
    help: ArgumentHelp(
      "Also write the packets to a ring of pcapng files in this folder, with the secrets that were used; readable by the owner only.",
      valueName: "folder"), completion: .directory)
  var keep: String?

  @Option(
    help: ArgumentHelp(
      "Files in the ring, those of earlier runs on this interface among them; then the oldest is deleted. Default: 10.",
      valueName: "count"))
  var keepFiles: Int?

  @Option(
    help: ArgumentHelp(
      "Start the next file of the ring before this size is exceeded.", valueName: "bytes",
      default: Self.usualSize), transform: ByteCount.parse)
  var keepSize: ByteCount?

  private static let usualFiles = 10
  private static let usualSize = ByteCount(100 << 20)

  /// The options of the ring; `nil`: there is none.
  var ring: CaptureRing.Options? {
    keep.map {
      CaptureRing.Options(
        folder: $0, files: keepFiles ?? Self.usualFiles, size: (keepSize ?? Self.usualSize).bytes)
    }
  }

  func validate() throws {
    if interface == nil {
      for (name, isGiven) in [("keep", keep != nil), ("keep-files", keepFiles != nil), ("keep-size", keepSize != nil)]
      where isGiven {
        throw ValidationError("--\(name) needs --interface.")
      }
    }
    if keep == nil, keepFiles != nil || keepSize != nil {
      throw ValidationError("--keep-files and --keep-size need --keep.")
    }
    if keep == "" { throw ValidationError("--keep takes the name of a folder.") }
    if let keepFiles, !(1...1 << 20).contains(keepFiles) {
      throw ValidationError("--keep-files must be 1 to 1048576 (got \(keepFiles)).")
    }
    if let keepSize, keepSize.bytes < 1 << 10 {
      throw ValidationError("--keep-size must be at least 1KiB (got \(keepSize.defaultValueDescription)).")
    }
  }

  /// Checks that there are recordings, or an interface instead.
  func check(_ inputs: [String]) throws {
    if listInterfaces { return }
    if interface != nil {
      if !inputs.isEmpty { throw ValidationError("--interface excludes other inputs.") }
      return
    }
    if inputs.isEmpty {
      throw ValidationError("No input. Give a recording, - for standard input, or --interface.")
    }
    if inputs.filter({ $0 == "-" }).count > 1 { throw ValidationError("Standard input (-) can be read only once.") }
  }
}

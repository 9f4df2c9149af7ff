// swift-tools-version: 6.3
import PackageDescription

/// `Lifetimes`: views of borrowed memory are `~Escapable` values.
/// `strictMemorySafety`: every use of an unsafe construct is marked `unsafe`, so a reader finds them all.
let settings: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes"), .strictMemorySafety()]

/// Imports go down only: command (apnscope), control (GatewayControl), joined (Pipeline, GatewayRecords), jobs (Dissection,
/// Analysis, LoadTest, DeviceFleet, GatewaySimulator, Reporting), records (Records, InterfaceCapture), edges (PacketCapture,
/// TLSDecryption, TLSTransport, MetricsEndpoint, CommandFiles), values (BinaryProtocol, ProviderAPI, HTTP2Server,
/// DeviceProtocol, Payload, Measurement, OutputSchema, SQLite, TLSFoundation, HTTPEndpoint), model (PushModel, HTTP2),
/// ground (Bytes).
let package = Package(
  name: "apnscope",
  products: [
    .executable(name: "apnscope", targets: ["apnscope"]),
    .library(name: "Bytes", targets: ["Bytes"]),
    .library(name: "PushModel", targets: ["PushModel"]),
    .library(name: "HTTP2", targets: ["HTTP2"]),
    .library(name: "HTTP2Server", targets: ["HTTP2Server"]),
    .library(name: "DeviceProtocol", targets: ["DeviceProtocol"]),
    .library(name: "BinaryProtocol", targets: ["BinaryProtocol"]),
    .library(name: "ProviderAPI", targets: ["ProviderAPI"]),
    .library(name: "Payload", targets: ["Payload"]),
    .library(name: "PacketCapture", targets: ["PacketCapture"]),
    .library(name: "TLSDecryption", targets: ["TLSDecryption"]),
    .library(name: "Records", targets: ["Records"]),
    .library(name: "Dissection", targets: ["Dissection"]),
    .library(name: "Analysis", targets: ["Analysis"]),
    .library(name: "Measurement", targets: ["Measurement"]),
    .library(name: "OutputSchema", targets: ["OutputSchema"]),
    .library(name: "TLSTransport", targets: ["TLSTransport"]),
    .library(name: "MetricsEndpoint", targets: ["MetricsEndpoint"]),
    .library(name: "GatewaySimulator", targets: ["GatewaySimulator"]),
    .library(name: "GatewayControl", targets: ["GatewayControl"]),
    .library(name: "LoadTest", targets: ["LoadTest"]),
    .library(name: "DeviceFleet", targets: ["DeviceFleet"]),
    .library(name: "Reporting", targets: ["Reporting"]),
  ],
  // Pinned to the next minor version: fixes arrive by themselves, new features do not.
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
    .package(url: "https://github.com/apple/swift-nio", .upToNextMinor(from: "2.101.2")),
    .package(url: "https://github.com/apple/swift-collections", .upToNextMinor(from: "1.6.0")),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", .upToNextMinor(from: "0.2.0")),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", .upToNextMinor(from: "2.13.0")),
  ],
  targets: [
    .target(name: "Bytes", dependencies: ["CPrefetch"], swiftSettings: settings),
    .target(name: "PushModel", dependencies: ["Bytes"], swiftSettings: settings),
    .target(name: "HTTP2", dependencies: ["Bytes"], swiftSettings: settings),
    .target(name: "BinaryProtocol", dependencies: ["Bytes", "PushModel"], swiftSettings: settings),
    .target(name: "ProviderAPI", dependencies: ["Bytes", "HTTP2", "PushModel"], swiftSettings: settings),
    .target(name: "HTTP2Server", dependencies: ["Bytes", "HTTP2"], swiftSettings: settings),
    .target(name: "DeviceProtocol", dependencies: ["Bytes"], swiftSettings: settings),
    .target(name: "Payload", dependencies: ["Bytes"], swiftSettings: settings),

    .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CBuild"),
    .systemLibrary(name: "CClock"),
    // Headers of Debian's libtomlplusplus-dev, compiled here.
    .target(name: "CTOML"),
    .systemLibrary(name: "CPrefetch"),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .target(
      name: "PacketCapture", dependencies: ["Bytes", "CArchive", "CPcap", "CZlib", "CZstd"],
      swiftSettings: settings),

    .target(name: "TLSFoundation", dependencies: ["Bytes", "COpenSSL"], swiftSettings: settings),

    .target(name: "TLSDecryption", dependencies: ["Bytes", "COpenSSL", "TLSFoundation"], swiftSettings: settings),

    .target(
      name: "Records",
      dependencies: [
        "Bytes", "BinaryProtocol", "DeviceProtocol", "HTTP2", "ProviderAPI", "PushModel", "Payload", "Measurement",
        "PacketCapture", "TLSDecryption", "TLSFoundation",
      ],
      swiftSettings: settings),

    .target(
      name: "Dissection",
      dependencies: [
        "Bytes", "BinaryProtocol", "DeviceProtocol", "HTTP2", "ProviderAPI", "PushModel", "PacketCapture", "Records",
        "TLSDecryption",
      ],
      swiftSettings: settings),

    .target(
      name: "Analysis",
      dependencies: [
        "Bytes", "BinaryProtocol", "DeviceProtocol", "HTTP2", "ProviderAPI", "PushModel", "Payload", "Measurement",
        "PacketCapture", "Records", "TLSDecryption",
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: settings),

    .target(
      name: "Measurement",
      dependencies: ["Bytes", "CClock", .product(name: "Histogram", package: "hdrhistogram-swift")],
      swiftSettings: settings),

    .target(name: "OutputSchema", swiftSettings: settings),

    .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: settings),

    .target(
      name: "TLSTransport",
      dependencies: ["Bytes", "COpenSSL", "TLSFoundation", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: settings),

    .target(
      name: "HTTPEndpoint",
      dependencies: [
        "Bytes", .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
      ],
      swiftSettings: settings),

    .target(
      name: "MetricsEndpoint",
      dependencies: ["Bytes", "HTTPEndpoint", .product(name: "NIOCore", package: "swift-nio")],
      swiftSettings: settings),

    .target(name: "CommandFiles", dependencies: ["Bytes"], swiftSettings: settings),

    .target(
      name: "InterfaceCapture", dependencies: ["Bytes", "CommandFiles", "PacketCapture"], swiftSettings: settings),

    .target(
      name: "Pipeline",
      dependencies: [
        "Analysis", "BinaryProtocol", "CommandFiles", "Dissection", "InterfaceCapture", "PacketCapture", "Records",
        "TLSDecryption",
      ],
      swiftSettings: settings),

    .target(
      name: "GatewaySimulator",
      dependencies: [
        "Bytes", "BinaryProtocol", "DeviceProtocol", "HTTP2", "HTTP2Server", "ProviderAPI", "PushModel", "Payload",
        "Measurement", "SQLite", "TLSFoundation", "TLSTransport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: settings),

    .target(
      name: "GatewayRecords",
      dependencies: [
        "Analysis", "BinaryProtocol", "Bytes", "Dissection", "GatewaySimulator", "Measurement", "PacketCapture",
        "ProviderAPI", "PushModel", "Records", "TLSDecryption", "TLSTransport",
        .product(name: "DequeModule", package: "swift-collections"), .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: settings),

    .target(
      name: "GatewayControl",
      dependencies: [
        "Analysis", "Bytes", "DeviceProtocol", "GatewayRecords", "GatewaySimulator", "HTTPEndpoint", "Measurement",
        "OutputSchema",
        "PacketCapture", "ProviderAPI", "PushModel", "Records", "Reporting",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: settings),

    .target(
      name: "LoadTest",
      dependencies: [
        "Bytes", "BinaryProtocol", "PushModel", "Payload", "Measurement", "TLSTransport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: settings),

    .target(
      name: "DeviceFleet",
      dependencies: [
        "Bytes", "DeviceProtocol", "Measurement", "TLSFoundation", "TLSTransport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: settings),

    .target(
      name: "Reporting",
      dependencies: ["BinaryProtocol", "Bytes", "Measurement", "SQLite"],
      // Compiled in: a page is one file, and so is the command.
      resources: [
        .embedInCode("Resources/chart.css"), .embedInCode("Resources/page.css"), .embedInCode("Resources/page.js"),
      ],
      swiftSettings: settings),

    .executableTarget(
      name: "apnscope",
      dependencies: [
        "Analysis", "DeviceFleet", "DeviceProtocol", "Dissection", "Records", "GatewaySimulator", "LoadTest",
        "Reporting",
        "PacketCapture",
        "HTTP2Server", "InterfaceCapture", "Pipeline", "GatewayRecords", "GatewayControl", "HTTPEndpoint",
        "ProviderAPI",
        "TLSDecryption", "TLSTransport",
        "TLSFoundation", "MetricsEndpoint", "CommandFiles", "BinaryProtocol", "PushModel", "Payload", "Measurement",
        "OutputSchema",
        "Bytes", "CBuild", "CTOML",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: settings),

    // Examples see only what is public, like any other package. They are no products: who depends on apnscope does not
    // build them.
    .executableTarget(
      name: "PeekExample", dependencies: ["Analysis", "Dissection", "PacketCapture", "Records"], path: "Examples/Peek",
      packageAccess: false),
    .executableTarget(
      name: "DecryptExample",
      dependencies: [
        "BinaryProtocol", "PushModel", "Bytes", "Dissection", "PacketCapture", "Records", "TLSDecryption",
      ],
      path: "Examples/Decrypt", packageAccess: false),
    // Counted by Scripts/bench --instructions: it links what it counts and no more.
    .executableTarget(
      name: "InstructionCount",
      dependencies: [
        "Analysis", "BinaryProtocol", "Bytes", "Dissection", "LoadTest", "PacketCapture", "Payload", "Records",
        "TLSDecryption",
      ],
      path: "Benchmarks/Instructions", swiftSettings: settings),
    .testTarget(
      name: "GatewayExampleTests",
      dependencies: [
        "BinaryProtocol", "Bytes", "GatewayControl", "GatewaySimulator", "HTTP2",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
      ], path: "Examples/Gateway", packageAccess: false),
    .testTarget(
      name: "LibraryExampleTests",
      dependencies: [
        "Bytes", "BinaryProtocol", "HTTP2", "HTTP2Server", "DeviceProtocol", "ProviderAPI", "PushModel", "Payload",
        "Measurement", "OutputSchema", "PacketCapture", "TLSDecryption", "TLSTransport", "MetricsEndpoint", "Analysis",
        "Dissection", "Records", "DeviceFleet", "LoadTest", "GatewayControl", "GatewaySimulator", "Reporting",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
      ], path: "Examples/Libraries", packageAccess: false),

    .target(name: "CSpawn", path: "Tests/CSpawn"),
    .target(
      name: "TestSupport", dependencies: ["Bytes", "COpenSSL", "CSpawn"], path: "Tests/TestSupport",
      swiftSettings: settings),
    .testTarget(name: "BytesTests", dependencies: ["Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "BinaryProtocolTests", dependencies: ["BinaryProtocol", "PushModel", "Bytes", "TestSupport"],
      resources: [.copy("Vectors")], swiftSettings: settings),
    .testTarget(
      name: "HTTP2Tests", dependencies: ["HTTP2", "Bytes", "TestSupport"], exclude: ["Opinions"],
      resources: [.copy("Vectors")], swiftSettings: settings),
    .testTarget(
      name: "HTTP2ServerTests", dependencies: ["HTTP2Server", "HTTP2", "Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "DeviceProtocolTests", dependencies: ["DeviceProtocol", "Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "ProviderAPITests", dependencies: ["ProviderAPI", "HTTP2", "PushModel", "Bytes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "PayloadTests", dependencies: ["Payload", "Bytes", "TestSupport"], resources: [.copy("Vectors")],
      swiftSettings: settings),
    .testTarget(
      name: "PacketCaptureTests", dependencies: ["PacketCapture", "Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(name: "TLSFoundationTests", dependencies: ["TLSFoundation", "COpenSSL"], swiftSettings: settings),
    .testTarget(
      name: "TLSDecryptionTests", dependencies: ["TLSDecryption", "TLSFoundation", "Bytes", "COpenSSL", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "RecordsTests",
      dependencies: [
        "Records", "BinaryProtocol", "Bytes", "DeviceProtocol", "HTTP2", "OutputSchema", "PacketCapture", "ProviderAPI",
        "PushModel", "TestSupport",
      ],
      swiftSettings: settings
    ),
    .testTarget(
      name: "AnalysisTests",
      dependencies: [
        "Analysis", "Records", "Measurement", "PacketCapture", "ProviderAPI", "HTTP2", "PushModel", "TLSDecryption",
        "Bytes",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "DissectionTests",
      dependencies: [
        "Analysis", "Dissection", "DeviceProtocol", "Records", "HTTP2", "Payload", "PacketCapture", "ProviderAPI",
        "TLSDecryption", "BinaryProtocol", "PushModel",
        "Measurement",
        "Bytes",
        "TestSupport",
      ],
      exclude: ["Truth"], swiftSettings: settings),
    .testTarget(
      name: "PipelineTests",
      dependencies: [
        "Analysis", "Bytes", "Dissection", "InterfaceCapture", "Measurement", "PacketCapture", "Pipeline", "PushModel",
        "Records", "TLSDecryption", "TestSupport",
      ], swiftSettings: settings),
    .testTarget(
      name: "TLSTransportTests",
      dependencies: [
        "TLSTransport", "TLSDecryption", "TLSFoundation", "Bytes", "COpenSSL", "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "MetricsEndpointTests",
      dependencies: [
        "HTTPEndpoint", "MetricsEndpoint", "TestSupport", .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "CommandFilesTests", dependencies: ["CommandFiles", "Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "GatewayRecordsTests",
      dependencies: [
        "Analysis", "BinaryProtocol", "Bytes", "Dissection", "GatewayRecords", "GatewaySimulator", "Measurement",
        "HTTP2", "PacketCapture", "ProviderAPI", "PushModel", "Records", "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "GatewayControlTests",
      dependencies: [
        "BinaryProtocol", "Bytes", "GatewayControl", "GatewaySimulator", "Measurement", "OutputSchema", "PushModel",
        "Records", "TestSupport",
      ], swiftSettings: settings),
    .testTarget(
      name: "GatewaySimulatorTests",
      dependencies: [
        "GatewaySimulator", "DeviceFleet", "DeviceProtocol", "HTTP2", "HTTP2Server", "ProviderAPI", "TLSTransport",
        "TLSFoundation", "BinaryProtocol", "PushModel", "Payload", "Measurement", "Bytes", "COpenSSL", "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOEmbedded", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "MeasurementTests", dependencies: ["Bytes", "Measurement", "TestSupport"], exclude: ["Results"],
      swiftSettings: settings),
    .testTarget(
      name: "OutputSchemaTests", dependencies: ["Measurement", "OutputSchema", "Payload"], swiftSettings: settings),
    .testTarget(name: "SQLiteTests", dependencies: ["SQLite", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "LoadTestTests",
      dependencies: [
        "LoadTest", "GatewaySimulator", "TLSTransport", "BinaryProtocol", "PushModel", "Payload", "Measurement",
        "Bytes",
        "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "ReportingTests",
      dependencies: ["Reporting", "Measurement", "SQLite", "TestSupport"],
      exclude: ["Golden"], swiftSettings: settings),
    .testTarget(
      name: "DeviceFleetTests",
      dependencies: [
        "DeviceFleet", "DeviceProtocol", "Measurement", "TLSTransport", "Bytes", "TestSupport",
        .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
      ], swiftSettings: settings),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "apnscope", "DeviceProtocol", "LoadTest", "BinaryProtocol", "PushModel", "Measurement", "OutputSchema",
        "Reporting", "Bytes",
        "TestSupport",
      ],
      exclude: ["Clients", "Golden"], swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

// `Scripts/races` builds the tests of a few targets: their names, separated by spaces.
if let names = Context.environment["APNSCOPE_TEST_TARGETS"] {
  let wanted = Set(names.split(separator: " ").map(String.init))
  package.targets.removeAll { target in
    (target.type == .test || target.name.hasSuffix("Example")) && !wanted.contains(target.name)
  }
}

// `Scripts/test --all` sets it: the sources are optimised, and the tests are not, which are most of what is compiled.
if Context.environment["APNSCOPE_OPTIMIZED"] != nil {
  for target in package.targets where target.type == .test || target.name == "TestSupport" {
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-Onone"])]
  }
}

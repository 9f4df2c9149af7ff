// swift-tools-version: 6.3
import PackageDescription

/// A package of its own, so that `swift build` and `swift test` of apnscope need nothing of the fuzzer. `Scripts/fuzz`
/// builds it with the flags it needs.
let package = Package(
  name: "apnscope-fuzz",
  dependencies: [.package(name: "apnscope", path: "../..")],
  targets: [
    .systemLibrary(name: "CFuzzing"),
    .executableTarget(
      name: "apnscope-fuzz",
      dependencies: [
        "CFuzzing",
        .product(name: "Bytes", package: "apnscope"),
        .product(name: "BinaryProtocol", package: "apnscope"),
        .product(name: "HTTP2", package: "apnscope"),
        .product(name: "HTTP2Server", package: "apnscope"),
        .product(name: "DeviceProtocol", package: "apnscope"),
        .product(name: "ProviderAPI", package: "apnscope"),
        .product(name: "PushModel", package: "apnscope"),
        .product(name: "Payload", package: "apnscope"),
        .product(name: "PacketCapture", package: "apnscope"),
        .product(name: "TLSDecryption", package: "apnscope"),
        .product(name: "Records", package: "apnscope"),
        .product(name: "Dissection", package: "apnscope"),
        .product(name: "Analysis", package: "apnscope"),
      ],
      path: "Sources/Fuzz",
      swiftSettings: [.enableExperimentalFeature("Lifetimes")]),
  ],
  swiftLanguageModes: [.v6]
)

// swift-tools-version: 6.2
import PackageDescription

/// `Lifetimes`: views of borrowed memory are `~Escapable` values.
/// `strictMemorySafety`: every use of an unsafe construct is marked `unsafe`, so a reader finds them all.
let settings: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes"), .strictMemorySafety()]

/// Imports go down only: door (apnscope), jobs (Dissection), edges (PacketCapture, TLSDecryption), values (APNSProtocol), ground (Bytes).
let package = Package(
  name: "apnscope",
  products: [
    .executable(name: "apnscope", targets: ["apnscope"]),
    .library(name: "Bytes", targets: ["Bytes"]),
    .library(name: "APNSProtocol", targets: ["APNSProtocol"]),
    .library(name: "PacketCapture", targets: ["PacketCapture"]),
    .library(name: "TLSDecryption", targets: ["TLSDecryption"]),
    .library(name: "Dissection", targets: ["Dissection"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0")
  ],
  targets: [
    .target(name: "Bytes", swiftSettings: settings),
    .target(name: "APNSProtocol", dependencies: ["Bytes"], swiftSettings: settings),

    .systemLibrary(name: "CPcap", pkgConfig: "libpcap", providers: [.apt(["libpcap-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .target(
      name: "PacketCapture", dependencies: ["Bytes", "CPcap", "CZlib", "CZstd"],
      swiftSettings: settings),

    .target(name: "TLSDecryption", dependencies: ["Bytes", "COpenSSL"], swiftSettings: settings),

    .target(
      name: "Dissection", dependencies: ["Bytes", "APNSProtocol", "PacketCapture", "TLSDecryption"],
      swiftSettings: settings),

    .executableTarget(
      name: "apnscope",
      dependencies: [
        "Dissection", "PacketCapture", "TLSDecryption", "APNSProtocol", "Bytes",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),

    .target(
      name: "TestSupport", dependencies: ["Bytes", "COpenSSL"], path: "Tests/TestSupport", swiftSettings: settings),
    .testTarget(
      name: "APNSProtocolTests", dependencies: ["APNSProtocol", "Bytes", "TestSupport"],
      resources: [.copy("Vectors")], swiftSettings: settings),
    .testTarget(
      name: "PacketCaptureTests", dependencies: ["PacketCapture", "Bytes", "TestSupport"], swiftSettings: settings),
    .testTarget(
      name: "TLSDecryptionTests", dependencies: ["TLSDecryption", "Bytes", "COpenSSL", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "DissectionTests", dependencies: ["Dissection", "PacketCapture", "TLSDecryption", "APNSProtocol", "Bytes", "TestSupport"],
      exclude: ["Truth"], swiftSettings: settings),
    .testTarget(name: "CommandTests", dependencies: ["apnscope", "TestSupport"], swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)

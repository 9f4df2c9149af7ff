import Measurement
import Testing

/// Runs are repeated by their seeds, also with later versions.
@Suite("Random numbers of seeds")
struct SplitMix64Tests {
  @Test("The sequence is that of Vigna's splitmix64.c")
  func reference() {
    let published: [UInt64] = [
      6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
      16_408_922_859_458_223_821,
    ]
    var state: UInt64 = 1_234_567
    for value in published {
      #expect(SplitMix64.first(from: state) == value)
      state &+= SplitMix64.step
    }
  }

  @Test(
    "A seed gives the numbers that it always gave",
    arguments: [
      (0, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]),
      (1, [0xbfef_8030_ddc2_d772, 0x5f55_2ce4_82f2_aa47, 0x7033_5fc3_daf3_d8a7]),
      (.max, [0xa577_782b_c52a_9f5a, 0xb485_2443_80e5_90be, 0x5176_985d_86cf_f511]),
    ] as [(UInt64, [UInt64])])
  func seeds(seed: UInt64, numbers: [UInt64]) {
    var random = SplitMix64(seed: seed)
    #expect(numbers.map { _ in random.next() } == numbers)
  }

  @Test(
    "So does a stream of a seed",
    arguments: [
      (0, 0, [0xa706_dd2f_4d19_7e6f, 0xb382_a305_f441_4f5e, 0x631a_9154_fbab_f717]),
      (1, 0, [0x5e41_ab08_7439_611e, 0xf18d_6ce9_3d6c_f1ee, 0x0b95_f66d_327e_8d78]),
      (1, 1, [0x29e4_9b19_9086_d8d3, 0x0f5a_dcbb_dc9f_ae9c, 0x28d1_3337_fccf_1bbc]),
      (0x6761_7465_7761_7921, 7, [0x4a5a_5bae_6a3b_6131, 0x4460_d0fa_d588_0b04, 0x453a_71ea_5a7e_51b3]),
    ] as [(UInt64, UInt64, [UInt64])])
  func streams(seed: UInt64, stream: UInt64, numbers: [UInt64]) {
    var random = SplitMix64(seed: seed, stream: stream)
    #expect(numbers.map { _ in random.next() } == numbers)
  }
}

import TLSDecryption
import Testing

/// The traces of RFC 8448: records as sent, and the secrets that it lists. Everything in it is public.
///
/// All connections have the suite TLS_AES_128_GCM_SHA256.
enum RFC8448 {
  struct Record: Sendable {
    var side: TLSSide
    var what: String
    var bytes: [UInt8]
  }

  /// A traffic secret with what the RFC derives from it.
  struct TrafficSecret: Sendable {
    var label: String
    var secret: [UInt8]
    var key: [UInt8]
    var vector: [UInt8]
  }

  struct Trace: Sendable, CustomTestStringConvertible {
    var section: String
    var clientRandom: [UInt8]
    var secrets: [TrafficSecret]
    var records: [Record]
    var testDescription: String { "RFC 8448, section \(section)" }
  }

  static let all = [simple, resumed, retried, compatible]

  static let simple = Trace(
    section: "3, Simple 1-RTT Handshake",
    clientRandom: hex("cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7"),
    secrets: [
      TrafficSecret(
        label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"),
        key: hex("dbfaa693d1762c5b666af5d950258d01"), vector: hex("5bd3c71b836e0b76bb73265f")),
      TrafficSecret(
        label: "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"),
        key: hex("3fce516009c21727d0f2e4e86ee403bc"), vector: hex("5d313eb2671276ee13000b30")),
      TrafficSecret(
        label: "CLIENT_TRAFFIC_SECRET_0",
        secret: hex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"),
        key: hex("17422dda596ed5d9acd890e3c63f5051"), vector: hex("5b78923dee08579033e523d9")),
      TrafficSecret(
        label: "SERVER_TRAFFIC_SECRET_0",
        secret: hex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
        key: hex("9f02283b6c9c07efc26bb9f2ac92e356"), vector: hex("cf782b88dd83549aadf1e984")),
    ],
    records: [
      Record(
        side: .client, what: "ClientHello",
        bytes: hex(
          """
          16030100c4010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece700000613011303
          1302010000910000000b0009000006736572766572ff01000100000a00140012001d00170018001901000101010201030104
          00230000003300260024001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003
          020304000d0020001e040305030603020308040805080604010501060102010402050206020202002d00020101001c000240
          01
          """)),
      Record(
        side: .server, what: "ServerHello",
        bytes: hex(
          """
          160303005a020000560303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e2692800130100002e00
          330024001d0020c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304
          """)),
      Record(
        side: .server, what: "EncryptedExtensions to Finished",
        bytes: hex(
          """
          17030302a2d1ff334a56f5bff6594a07cc87b580233f500f45e489e7f33af35edf7869fcf40aa40aa2b8ea73f848a7ca0761
          2ef9f945cb960b4068905123ea78b111b429ba9191cd05d2a389280f526134aadc7fc78c4b729df828b5ecf7b13bd9aefb0e
          57f271585b8ea9bb355c7c79020716cfb9b1183ef3ab20e37d57a6b9d7477609aee6e122a4cf51427325250c7d0e50928944
          4c9b3a648f1d71035d2ed65b0e3cdd0cbae8bf2d0b227812cbb360987255cc744110c453baa4fcd610928d809810e4b7ed1a
          8fd991f06aa6248204797e36a6a73b70a2559c09ead686945ba246ab66e5edd8044b4c6de3fcf2a89441ac66272fd8fb330e
          f8190579b3684596c960bd596eea520a56a8d650f563aad27409960dca63d3e688611ea5e22f4415cf9538d51a200c270342
          72968a264ed6540c84838d89f72c24461aad6d26f59ecaba9acbbb317b66d902f4f292a36ac1b639c637ce343117b6596222
          45317b49eeda0c6258f100d7d961ffb138647e92ea330faeea6dfa31c7a84dc3bd7e1b7a6c7178af36879018e3f252107f24
          3d243dc7339d5684c8b0378bf30244da8c87c843f5e56eb4c5e8280a2b48052cf93b16499a66db7cca71e4599426f7d461e6
          6f99882bd89fc50800becca62d6c74116dbd2972fda1fa80f85df881edbe5a37668936b335583b599186dc5c6918a396fa48
          a181d6b6fa4f9d62d513afbb992f2b992f67f8afe67f76913fa388cb5630c8ca01e0c65d11c66a1e2ac4c85977b7c7a6999b
          bf10dc35ae69f5515614636c0b9b68c19ed2e31c0b3b66763038ebba42f3b38edc0399f3a9f23faa63978c317fc9fa66a73f
          60f0504de93b5b845e275592c12335ee340bbc4fddd502784016e4b3be7ef04dda49f4b440a30cb5d2af939828fd4ae3794e
          44f94df5a631ede42c1719bfdabf0253fe5175be898e750edc53370d2b
          """)),
      Record(
        side: .client, what: "Finished",
        bytes: hex(
          """
          170303003575ec4dc238cce60b298044a71e219c56cc77b0517fe9b93c7a4bfc44d87f38f80338ac98fc46deb384bd1caeac
          ab6867d726c40546
          """)),
      Record(
        side: .server, what: "NewSessionTicket",
        bytes: hex(
          """
          17030300de3a6b8f90414a97d6959c3487680de5134a2b240e6cffac116e95d41d6af8f6b580dcf3d11d63c758db289a0159
          40252f55713e061dc13e078891a38efbcf5753ad8ef170ad3c7353d16d9da773b9ca7f2b9fa1b6c0d4a3d03f75e09c30ba1e
          62972ac46f75f7b981be63439b2999ce13064615139891d5e4c5b406f16e3fc181a77ca475840025db2f0a77f81b5ab05b94
          c01346755f69232c86519d86cbeeac87aac347d143f9605d64f650db4d023e70e952ca49fe5137121c74bc2697687e248746
          d6df353005f3bce18696129c8153556b3b6c6779b37bf15985684f
          """)),
      Record(
        side: .client, what: "application data",
        bytes: hex(
          """
          1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b6297
          4e1f5a6292a2977014bd1e3deae63aeebb21694915e4
          """)),
      Record(
        side: .server, what: "application data",
        bytes: hex(
          """
          17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dcb501a59a8fcc4
          9c4bf2e5f0a21c0047c2abf332540dd032e167c2955d
          """)),
      Record(side: .client, what: "close_notify", bytes: hex("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3")),
      Record(side: .server, what: "close_notify", bytes: hex("1703030013b58fd67166ebf599d24720cfbe7efa7a8864a9")),
    ])

  static let resumed = Trace(
    section: "4, Resumed 0-RTT Handshake",
    clientRandom: hex("1bc3ceb6bbe39cff938355b5a50adb6db21b7a6af649d7b4bc419d7876487d95"),
    secrets: [
      TrafficSecret(
        label: "CLIENT_EARLY_TRAFFIC_SECRET",
        secret: hex("3fbbe6a60deb66c30a32795aba0eff7eaa10105586e7be5c09678d63b6caab62"),
        key: hex("920205a5b7bf2115e6fc5c2942834f54"), vector: hex("6d475f0993c8e564610db2b9")),
      TrafficSecret(
        label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("2faac08f851d35fea3604fcb4de82dc62c9b164a70974d0462e27f1ab278700f"),
        key: hex("b1530806f4adfeac83f1413032bbfa82"), vector: hex("eb50c16be7654abf99dd06d9")),
      TrafficSecret(
        label: "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("fe927ae271312e8bf0275b581c54eef020450dc4ecffaa05a1a35d27518e7803"),
        key: hex("27c6bdc0a3dcea39a47326d79bc9e4ee"), vector: hex("9569ecdd4d0536705e9ef725")),
      TrafficSecret(
        label: "CLIENT_TRAFFIC_SECRET_0",
        secret: hex("2abbf2b8e381d23dbebe1dd2a7d16a8bf484cb4950d23fb7fb7fa8547062d9a1"),
        key: hex("3cf122f301c6358ca7989553250efd72"), vector: hex("ab1aec26aa78b8fc1176b9ac")),
      TrafficSecret(
        label: "SERVER_TRAFFIC_SECRET_0",
        secret: hex("cc21f1bf8feb7dd5fa505bd9c4b468a9984d554a993dc49e6d285598fb672691"),
        key: hex("e857c690a34c5a9129d833619684f95e"), vector: hex("0685d6b561aab9ef1013faf9")),
    ],
    records: [
      Record(
        side: .client, what: "ClientHello",
        bytes: hex(
          """
          1603010200010001fc03031bc3ceb6bbe39cff938355b5a50adb6db21b7a6af649d7b4bc419d7876487d9500000613011303
          1302010001cd0000000b0009000006736572766572ff01000100000a00140012001d00170018001901000101010201030104
          003300260024001d0020e4ffb68ac05f8d96c99da26698346c6be16482badddafe051a66b4f18d668f0b002a0000002b0003
          020304000d0020001e040305030603020308040805080604010501060102010402050206020202002d00020101001c000240
          0100150057000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
          000000000000000000000000000000000000000000000000000000000000000000000000000000000000002900dd00b800b2
          2c035d829359ee5ff7af4ec900000000262a6494dc486d2c8a34cb33fa90bf1b0070ad3c498883c9367c09a2be785abc55cd
          226097a3a982117283f82a03a143efd3ff5dd36d64e861be7fd61d2827db279cce145077d454a3664d4e6da4d29ee03725a6
          a4dafcd0fc67d2aea70529513e3da2677fa5906c5b3f7d8f92f228bda40dda721470f9fbf297b5aea617646fac5c03272e97
          0727c621a79141ef5f7de6505e5bfbc388e93343694093934ae4d357fad6aacb0021203add4fb2d8fdf822a0ca3cf7678ef5
          e88dae990141c5924d57bb6fa31b9e5f9d
          """)),
      Record(side: .client, what: "early data", bytes: hex("1703030017ab1df420e75c457a7cc5d2844f76d5aee4b4edbf049be0")),
      Record(
        side: .server, what: "ServerHello",
        bytes: hex(
          """
          16030300600200005c03033ccfd2dec890222763472ae8136777c9d7358777bb66e91ea5122495f559ea2d00130100003400
          290002000000330024001d0020121761ee42c333e1b9e77b60dd57c2053cd94512ab47f115e86eff50942cea31002b000203
          04
          """)),
      Record(
        side: .server, what: "EncryptedExtensions to Finished",
        bytes: hex(
          """
          1703030061dc48237b4b879f50d0d4d262ea8b4716eb40ddc1eb957e11126e8a7149c2d012d37a7115957e64ce30008b9e03
          23f2c05a9c1c77b4f37849a695ab255060a33fee770ca95cb8486bfd0843b87024865ca35cc41c4e515c64dcb1369f98635b
          c7a5
          """)),
      Record(side: .client, what: "EndOfEarlyData", bytes: hex("1703030015aca6fc944841298df99593725f9bf9754429b12f09")),
      Record(
        side: .client, what: "Finished",
        bytes: hex(
          """
          170303003500f8b467d14cf22a4b3f0b6ae0d8e6cc8d08e0db3515ef5c2bdf1922eafbb70009964716d834fb70c3d2a56c5b
          1f5f6bdba6c333cf
          """)),
      Record(
        side: .client, what: "application data",
        bytes: hex(
          """
          1703030043b1cebce242aa201be9ae5e1cb2a9aa4b33d4e866af1edb068919237741aa031d7a74d491c99b9d4e232b74206b
          c6fbaa04fe78be44a9b4f54320a17eb76992afac3103
          """)),
      Record(
        side: .server, what: "application data",
        bytes: hex(
          """
          1703030043275e9f20acff57bc000657d3867df039cccf79047884cf75771746f740b5a83f462a0954c3581393a203a25a7d
          d14141ef1a37900cdb62ff62dee1ba39ab2590cbf194
          """)),
      Record(side: .client, what: "close_notify", bytes: hex("17030300130facce3246bdfc6369838d6a82ae6de5d422dc")),
      Record(side: .server, what: "close_notify", bytes: hex("17030300135b18af444e8e1eec7158fb62d8f2577d37ba5d")),
    ])

  static let retried = Trace(
    section: "5, HelloRetryRequest",
    clientRandom: hex("b0b1c5a5aa37c5919f2ed1d5c6fff7fcb7849716945a2b8cee9258a346677b6f"),
    secrets: [
      TrafficSecret(
        label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("158aa7ab8855073582b41d674b4055cabcc534728f659314861b4e08e2011566"),
        key: hex("2f1f918663d590e7421149a29d94b0b6"), vector: hex("414d5485235e1a688793bd74")),
      TrafficSecret(
        label: "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("3403e781e2af7b6508da28574f6e95a1abf162de83a97927c37672a4a0cef8a1"),
        key: hex("4646bfac1712c426cd78d8a24a8a6f6b"), vector: hex("c7d395c08d62f297d13768ea")),
      TrafficSecret(
        label: "CLIENT_TRAFFIC_SECRET_0",
        secret: hex("75ecf4b972525aa0dcd057c9944d4cd5d82671d8843141d7dc2a4ff15a21dc51"),
        key: hex("a7eb2a0525eb4331d58fcbf9f7ca2e9c"), vector: hex("86e8be227c1bd2b3e39cb444")),
      TrafficSecret(
        label: "SERVER_TRAFFIC_SECRET_0",
        secret: hex("5c74f87df04225db0f8209c9de6429e49435fdefa7cad61864874d12f31cfc8d"),
        key: hex("f27a5d97bd25550c4823b0f3e5d29388"), vector: hex("0dd631f7b71cbbc797c35fe7")),
    ],
    records: [
      Record(
        side: .client, what: "ClientHello",
        bytes: hex(
          """
          16030100b4010000b00303b0b1c5a5aa37c5919f2ed1d5c6fff7fcb7849716945a2b8cee9258a346677b6f00000613011303
          1302010000810000000b0009000006736572766572ff01000100000a00080006001d00170018003300260024001d0020e8e8
          e3f3b93a25ed97a14a7dcacb8a272c6288e585c6484d05262fcad062ad1f002b0003020304000d0020001e04030503060302
          0308040805080604010501060102010402050206020202002d00020101001c00024001
          """)),
      Record(
        side: .server, what: "HelloRetryRequest",
        bytes: hex(
          """
          16030300b0020000ac0303cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c00130100008400
          3300020017002c0074007271dcd04bb88bc3189119398a00000000eefafc76c146b823b096f8aacad365dd0030953f4edf62
          5636e5f21bb2e23fcc654b1b5b40318d10d137abcbb87574e36e8a1f025f7dfa5d6e50781b5eda4aa15b0c8be778257d16aa
          3030e9e7841dd9e4c0342267e8ca0caf571fb2b7cff0f934b0002b00020304
          """)),
      Record(
        side: .client, what: "ClientHello",
        bytes: hex(
          """
          1603030200010001fc0303b0b1c5a5aa37c5919f2ed1d5c6fff7fcb7849716945a2b8cee9258a346677b6f00000613011303
          1302010001cd0000000b0009000006736572766572ff01000100000a00080006001d001700180033004700450017004104a6
          da7392ec591e17abfd535964b99894d13befb221b3def2ebe3830eac8f0151812677c4d6d2237e85cf01d6910cfb83954e76
          ba7352830534159897e8065780002b0003020304000d0020001e040305030603020308040805080604010501060102010402
          050206020202002c0074007271dcd04bb88bc3189119398a00000000eefafc76c146b823b096f8aacad365dd0030953f4edf
          625636e5f21bb2e23fcc654b1b5b40318d10d137abcbb87574e36e8a1f025f7dfa5d6e50781b5eda4aa15b0c8be778257d16
          aa3030e9e7841dd9e4c0342267e8ca0caf571fb2b7cff0f934b0002d00020101001c00024001001500af0000000000000000
          0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
          0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
          0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
          0000000000000000000000000000000000
          """)),
      Record(
        side: .server, what: "ServerHello",
        bytes: hex(
          """
          160303007b020000770303bb341d847fd789c47c387172dc0c9bf147fccacb5043d86ca4c598d3ff571b9800130100004f00
          3300450017004104583e054b7a66672ae020ad9d2686fcc85b5ad41a134a0f03ee72b893052bd85b4c8de6776f5b04ac07d8
          3540eab3e3d9c547bc6528c4317d294686093a6cad7d002b00020304
          """)),
      Record(
        side: .server, what: "EncryptedExtensions to Finished",
        bytes: hex(
          """
          170303029699bee20baf5b7fc727bfab6223928a381e6d0cf9c4da653f9d2a7b23f7de11cce842d5cf75631763450ffb8b0c
          c1d238e658af7a12adc86243114ab14a1da2fae42621ce483fb6242eabfaad52566b02b31d2eddedefeb80e66a9900d5f973
          b40c4fdf74719ecf1b68d7f9c3b6ceb903ca13dd1bb8f8187ae33417e1d152522c5822a1a03ad52c838c55953d610222874c
          ce8e1790b229a2aa0b53c8d377ee720182951dc6181dc5d90bd1f0105ed1e84aa5f75957c6661897079e5ea5007449e3197b
          dc7c9beeedddeafdd844afa5c315ecfe65e576afe909812880620ec7048b42d7f5c78d76f299d6d82534bdd8f512febc0ed3
          814aca470cd8000d3e1cb9962b052fbb950df683a52c2ba77ed3713b122937a6e5170964e2ab7969dcd980b3db9b458da760
          3124d6dc005e4d6e04b4d0c4baf3275db827dbba0a6db09672171fc057b3851d7e026841e2978fbd2346bbefdd0376bb1108
          fe9acc92189f5650aa5e85d8e8c7b67ac510dba003d3d7e16350bb66d45013efd44c9b607c0d318c4c7d1a1f5cbc57e20611
          804e3787d7b4a4b5f08ed8fd70bdaeade02260b12ab842ef690b4a3ee7911e841b374ecd5ebbbc2a54d047b600336dd7d0c8
          8b4bc10e58ee6cb656de7247fa20d8e91deb84628608cf80615b62e96c1491c7ac3755eb6901405d3474fe1ac79d106a0cee
          56c2577fc88480f96cb6b8c681b7b68b53c146093908f350888175bdfb0b1e31ad61e30ba0adfe6d223aa03c0783b5001a57
          587c328a9afcfcfb978d1cd4328f7d9d60530e630befd96c0c816ee20b0100768ae2a6df51fc68f172740a79af11398ee3be
          1252491fa9c693479e877f94ab7c5f8cad480203e6ab7b87dd71e8a0729113df17f5eee86ce108d1d72007ec1cd13c85a6c1
          49621e77b7d78d805a30f0be030c315e54
          """)),
      Record(
        side: .client, what: "Finished",
        bytes: hex(
          """
          1703030035d74f1923c662fd34137c6f502f3dd2b93d951d1b3bc97e42afe23c31abea92fe91b474999e85e3b791ce252fe8
          c3e9f939a4120cb2
          """)),
      Record(side: .client, what: "close_notify", bytes: hex("17030300132ea6cdf749196023e2b3a49491695536426047")),
      Record(side: .server, what: "close_notify", bytes: hex("1703030013519fc5075cb0884349759ff9ef6f011bb4c6f2")),
    ])

  static let compatible = Trace(
    section: "7, Compatibility Mode",
    clientRandom: hex("4e640a3f2c2738f09c9418bd78edccd7559d0531199276d4d92a0e9ee9d77d09"),
    secrets: [
      TrafficSecret(
        label: "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("2c3cb24a1081edb59518ee6861e89a6b72b3801afe7713e4cbbc21c0795bf831"),
        key: hex("62d13c13ffd7402fc1c09e3d163665cb"), vector: hex("7166f20028bf146dcfbd5a40")),
      TrafficSecret(
        label: "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        secret: hex("cace3d555cc1c577cf970cff28cf978d6a9800085442e18d695b50f3151d18c8"),
        key: hex("041091fdab29f2c8abfb156dc5fc8d54"), vector: hex("7464d791685de05998fcbadb")),
      TrafficSecret(
        label: "CLIENT_TRAFFIC_SECRET_0",
        secret: hex("743e4c6b56cf3909d1b06d01956ccd2c4b37758449aec41d98dae44924eaa299"),
        key: hex("33d7f9709756c966488ad4438437e673"), vector: hex("c5f30d34b0e91b7d6c8eea65")),
      TrafficSecret(
        label: "SERVER_TRAFFIC_SECRET_0",
        secret: hex("b6b8144aa335ed3059c0c9c8f0ecabf7afc94af6643bdecdfd9210188fab7451"),
        key: hex("edc4cbd0041c28cc7167441d7ca53e6a"), vector: hex("bf6c7d8e0a9545b427dcf139")),
    ],
    records: [
      Record(
        side: .client, what: "ClientHello",
        bytes: hex(
          """
          16030100e0010000dc03034e640a3f2c2738f09c9418bd78edccd7559d0531199276d4d92a0e9ee9d77d0920a80c165581a8
          e0d06c0018d54d3a06dd32cfd4051eb026fad3fd0ba99269e6ef00061301130313020100008d0000000b0009000006736572
          766572ff01000100000a00140012001d00170018001901000101010201030104003300260024001d00208e7292cf3056dbb0
          d25fcbe55c107dc9bbf83dd9708f39203ba341249a7d9b63002b0003020304000d0020001e04030503060302030804080508
          0604010501060102010402050206020202002d00020101001c00024001
          """)),
      Record(
        side: .server, what: "ServerHello",
        bytes: hex(
          """
          160303007a020000760303e5dd5948c435f7a38f0f0130708dc322d9df09abd4838117c183a7bb6d994f2c20a80c165581a8
          e0d06c0018d54d3a06dd32cfd4051eb026fad3fd0ba99269e6ef130100002e00330024001d00203e30f0f4ba551afd627683
          41175f5265e4daf0c8841617aa4fafdd2142320c22002b00020304
          """)),
      Record(side: .server, what: "ChangeCipherSpec", bytes: hex("140303000101")),
      Record(
        side: .server, what: "EncryptedExtensions to Finished",
        bytes: hex(
          """
          17030302a248de891d9c3624a67a6c6f0601ab7ac20c1f6a9e14d2e6007e999e130367a8af1bcfea9498fbce19df4505eece
          3a25da523cbe55ea1b3bda4e91995e455d500a4faa6227b7111e1c8547e2d7c179db215303d25827f3cd18f48f6491328cf5
          c0f814d388150bd9e9264aae491db6995069bea17665d5e0c817284d4ac21880054c3657331e23a9304dc88a15c04ec80bd3
          852bf7f9d3c6615b15fac83bbca031c6d2310d9f5d7a4b020a4f7c19062b65c05a1d3264b557ec9d8e0f7cee27e36f793039
          de8dd96edfca9009e0651034bff31d7f349eece01d99fcb5fcab840d7707c72299c3b5d04564e880a33c5e846c762e3d922b
          b55303d1d87cc0f06573f17dcb9b8ffd35bbd883c1cb3aa24fcc325005f768ce2fb624ca97b6c4d98e17f35bc2c7940a0610
          0c2d448db7180b2d862164435c9c210e9860394e05aab23ff1b0203f662c588da5bc4411477a30b41136c488a0a63fcab5c1
          5ac613226dae827a1d1fe95ece6b30bcee1560a8d408d264555e760f9bfc624c2c87fd0456c9bfb41bcd1a7b212786d2b67f
          d57804facfa1eef7cf2919d8b998c9789f763b4d9caa093a9ded43175d46a76b4d54f0ce0c5d2259b607e30a9d241263874f
          a59d6f570dc40d83a2d83bf9e9850d454c57806535a8998ae0357df92f00b9667344c24114ccc9ef539124b204e7e6e748c3
          0a28a3d1d183997243eaccbbd33b0c1115a0327106a1e6a75271d4983086f632ff0eb8b4c63102cbcef5bb72dae1279d5de8
          eb19096d8cdb07fa8ea989788fac23e66e0488c193f3f3fea8c8838896bf3ae4b6848d42ced4bdf41abe6fc331b44225e7a1
          f7d3564147d5458e71aa909cb02be958bbc42e3aa5a27cc6eaf4b6fe51ae4495694d8ab6320aab920183fd5b31a359042fbd
          67391ec5e4d1892a2e5210141a494e9301b24a113c474c7f2a73457847
          """)),
      Record(side: .client, what: "ChangeCipherSpec", bytes: hex("140303000101")),
      Record(
        side: .client, what: "Finished",
        bytes: hex(
          """
          170303003532d030e273773a8696c799981af6ced07f87482e81565e394e87c867f33df3d65b7506f1a626af91d4821d5f7a
          1f210ef8dd3c6d16
          """)),
      Record(side: .client, what: "close_notify", bytes: hex("17030300130f629155382dba23c4e2c5f7f84e6f2ed3083d")),
      Record(side: .server, what: "close_notify", bytes: hex("1703030013b7257b0fecaf69d4f09e3f891e2a25d1e28845")),
    ])

  /// What the RFC's applications send: 50 bytes that count up.
  static let data = [UInt8](0..<50)
  /// And as early data.
  static let earlyData = [UInt8](0x41...0x46)
}

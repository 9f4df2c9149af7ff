import Bytes
import HTTP2
import Testing

extension LibraryExamples {
  @Test("HTTP2: a field that needs a lost block is unknown")
  func http2() {
    var encoder = HPACKEncoder()
    var block = ByteWriter()
    encoder.write(Array("apns-topic".utf8).rawBytes, Array("com.example.tide".utf8).rawBytes, to: &block)
    var (decoder, fields) = (HPACKDecoder(), FieldList())
    let fault = decoder.decode(block.bytes, into: &fields)  // nil
    let value = String(decoding: Array(copying: fields.value(of: fields.fields[0])), as: UTF8.self)  // com.example.tide
    decoder.lose()  // a block is missing: what refers to its table is unknown from here on
    _ = decoder.decode([0xbe].rawBytes, into: &fields)
    let isKnown = fields.fields[0].isValueKnown  // false

    #expect(fault == nil)
    #expect(value == "com.example.tide")
    #expect(!isKnown)
  }
}

import Bytes
import Testing

extension LibraryExamples {
  @Test("Bytes: integers are written and read in network order")
  func bytes() {
    var output = ByteWriter()
    output.write(UInt8(8))
    output.write(UInt8(10))
    output.write(bigEndian: UInt32(1036))
    let response = output.bytes  // 08 0a 00 00 04 0c
    let status = response.byte(at: 1)  // 10
    let identifier = response.uint32(at: 2)  // 1036
    let copy = Array(copying: response.extracting(2..<6))  // [0, 0, 4, 12]
    let harmless = ControlCharacters.escaped("\u{1b}[31mred")  // \u001b[31mred

    #expect(status == 10)
    #expect(identifier == 1036)
    #expect(copy == [0, 0, 4, 12])
    #expect(harmless == #"\u001b[31mred"#)
  }
}

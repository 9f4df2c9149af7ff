import Bytes
import PushModel
import Testing

extension LibraryExamples {
  @Test("PushModel: a push is its fields and a view of its bytes")
  func pushModel() {
    let bytes = Array("..\u{1}\u{2}\u{3}{\"aps\":{}}".utf8)
    var fields = PushFields(.binary(BinaryDetail(.framed)))
    fields.token = ByteField(offset: 2, length: 3)
    fields.payload = ByteField(offset: 5, length: 10)
    let push = Push(fields, bytes.rawBytes)
    let token = Array(copying: push.token)  // [1, 2, 3]
    let rejection = Rejection.status(.invalidToken)
    let (key, name) = (rejection.key, rejection.name)  // "8", "invalid token"

    #expect(token == [1, 2, 3])
    #expect(String(decoding: Array(copying: push.payload), as: UTF8.self) == #"{"aps":{}}"#)
    #expect(key == "8" && name == "invalid token")
  }
}

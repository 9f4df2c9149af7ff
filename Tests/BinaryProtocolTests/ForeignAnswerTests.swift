import BinaryProtocol
import Testing

@Suite("Answers that are no error responses")
struct ForeignAnswerTests {
  @Test(
    "They are named by how they begin, with their first sixteen bytes",
    arguments: [
      ("<!DOCTYPE HTML>\n<html>", "HTML or XML (3c21444f43545950452048544d4c3e0a)"),
      ("HTTP/1.1 400 Bad Request\r\n", "HTTP (485454502f312e312034303020426164)"),
      ("\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{46}", "a TLS alert (15030100020246)"),
      ("\u{16}\u{3}\u{3}", "a TLS handshake (160303)"),
      ("SSH-2.0-x\r\n", "SSH (5353482d322e302d780d0a)"),
      ("220 mail", "the greeting of a mail or file server (323230206d61696c)"),
      ("hello", "text (68656c6c6f)"),
      ("\u{1}\u{2}", "bytes of an unknown protocol (0102)"),
      ("", "bytes of an unknown protocol ()"),
    ])
  func names(answer: String, name: String) {
    #expect(ForeignAnswer(answer.utf8).description == name)
  }
}

import CommandFiles

/// The reason why packets of an interface cannot be captured, or no longer.
package enum InterfaceCaptureFailure: Error, Equatable {
  /// No program that captures is installed.
  case noProgram
  /// The program cannot be started; the system's error number.
  case cannotStart(program: String, code: Int32)
  /// No pipe to the program can be made; the system's error number.
  case cannotConnect(interface: String, code: Int32)
  /// The folder of the ring cannot be used.
  case ring(FileFailure)
  /// The program, which was not asked to, ended with a status, or by a signal; with the reason that it wrote.
  case ended(interface: String, program: String, ProgramEnd, reason: String, hasRead: Bool)
  /// The program lists no interfaces; it has written the reason to standard error.
  case cannotList
}

/// How a program ended.
package enum ProgramEnd: Equatable {
  case status(Int32)
  case signal(Int32)
}

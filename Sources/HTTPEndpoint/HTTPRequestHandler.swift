import NIOCore
import NIOHTTP1

/// Answers one request and closes.
///
/// A request every few seconds does not need a persistent connection, and closing after the answer limits what a client
/// can hold: later requests are dropped, as `Connection: close` announces.
final class HTTPRequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private enum State {
    case waiting
    case reading(HTTPRequestHead, ByteBuffer)
    case answering(Task<Void, Never>?)
    /// Answered, and its own side closed. The client closes first: a socket that is closed with bytes unread resets the
    /// connection, and the answer may be lost with it.
    case answered
  }

  private let limits: HTTPEndpoint.Limits
  private let service: HTTPEndpoint.Service
  private var state = State.waiting
  private var isHead = false
  private var deadline: Scheduled<Void>?

  private init(limits: HTTPEndpoint.Limits, service: HTTPEndpoint.Service) {
    self.limits = limits
    self.service = service
  }

  static func addHandlers(
    to channel: any Channel, limits: HTTPEndpoint.Limits, service: HTTPEndpoint.Service
  ) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(RequestLimit(bytes: limits.maximumRequestBytes))
    try pipeline.addHandler(HTTPResponseEncoder())
    try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
    try pipeline.addHandler(HTTPRequestHandler(limits: limits, service: service))
  }

  // MARK: events

  func channelActive(context: ChannelHandlerContext) {
    close(context, in: limits.timeout)
    context.fireChannelActive()
  }

  private func close(_ context: ChannelHandlerContext, in time: Duration) {
    deadline?.cancel()
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    if case .answering(let task) = state { task?.cancel() }
    state = .answered
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), state) {
    case (.head(let head), .waiting):
      state = .reading(head, ByteBuffer())
      isHead = head.method == .HEAD
      if head.headers["expect"].contains(where: { $0.lowercased() == "100-continue" }) {
        context.writeAndFlush(
          wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
      }
    case (.body(var part), .reading(let head, var body)):
      // Out of the state, so that the bytes are not copied.
      state = .waiting
      body.writeBuffer(&part)
      state = .reading(head, body)
    case (.end, .reading(let head, let body)): answer(head, body, context)
    default: break
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent {
      if case .answering = state { return }
      context.close(promise: nil)
    }
    if event is EndOfService {
      switch state {
      case .waiting, .reading: context.close(promise: nil)
      case .answering(let task): task?.cancel()
      case .answered: break
      }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (state, error) {
    case (.answering, _), (.answered, is HTTPParserError): break
    case (.reading, HTTPParserError.headerOverflow): send(service.problem(.tooLongBody), context)
    case (_, HTTPParserError.headerOverflow): send(service.problem(.tooLongHead), context)
    case (_, is HTTPParserError): send(service.problem(.malformed), context)
    default: context.close(promise: nil)
    }
  }

  // MARK: answers

  private func answer(_ head: HTTPRequestHead, _ body: ByteBuffer, _ context: ChannelHandlerContext) {
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let mediaType = head.headers.first(name: "content-type")?.prefix { $0 != ";" }
    let request = HTTPRequest(
      method: isHead ? "GET" : head.method.rawValue, path: String(parts.first ?? ""),
      query: parts.count > 1 ? String(parts[1]) : nil,
      mediaType: mediaType.map { $0.lowercased().filter { $0 != " " && $0 != "\t" } },
      body: Array(body.readableBytesView), host: head.headers.first(name: "host"), isOfPage: Self.isOfPage(head))
    if limits.answerTimeout > .zero { close(context, in: limits.answerTimeout) }
    let answer = context.eventLoop.makePromise(of: HTTPAnswer.self)
    let task = answer.completeWithTask { [service] in await service.answer(request) }
    state = .answering(task)
    answer.futureResult.assumeIsolated().whenSuccess { self.send($0, context) }
  }

  /// A browser says so of all requests but those of an address that a person has typed.
  private static func isOfPage(_ head: HTTPRequestHead) -> Bool {
    head.headers.contains(name: "origin") || head.headers["sec-fetch-site"].contains { $0 != "none" }
  }

  private func send(_ answer: HTTPAnswer, _ context: ChannelHandlerContext) {
    // The client, or the deadline, may have closed it while the answer was made.
    guard context.channel.isActive else { return }
    state = .answering(nil)
    var headers = HTTPHeaders(answer.headers)
    if answer.status != 204 { headers.add(name: "Content-Length", value: "\(answer.body.count)") }
    headers.add(name: "Connection", value: "close")
    let head = HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status), headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !isHead, !answer.body.isEmpty {
      context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
    }
    let sent = context.eventLoop.makePromise(of: Void.self)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: sent)
    sent.futureResult.assumeIsolated().whenComplete { result in
      self.state = .answered
      if case .success = result {
        context.close(mode: .output, promise: nil)
      } else {
        context.close(promise: nil)
      }
    }
  }
}

/// Passes the first bytes of a connection and drops the rest: the decoder after it bounds each header, but not the
/// length of the request line.
private final class RequestLimit: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var left: Int
  private var isOver = false

  init(bytes: Int) { left = bytes }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isOver { return }
    left -= unwrapInboundIn(data).readableBytes
    if left >= 0 { return context.fireChannelRead(data) }
    isOver = true
    context.fireErrorCaught(HTTPParserError.headerOverflow)
  }
}

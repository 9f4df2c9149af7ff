import NIOCore
import NIOHTTP1

/// Answers one request and closes.
///
/// Scrapes every few seconds do not need persistent connections, and closing after the answer limits what a client can
/// hold: later requests are dropped, as `Connection: close` announces.
final class RequestHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private enum State {
    case waiting
    case reading(HTTPRequestHead)
    case answering
    /// Answered, and its own side closed. The client closes first: a socket that is closed with bytes unread resets the
    /// connection, and the answer may be lost with it.
    case answered
  }

  private let limits: MetricsEndpoint.Limits
  private let metrics: @Sendable () async -> [Metric]
  private var state = State.waiting
  private var deadline: Scheduled<Void>?

  private init(limits: MetricsEndpoint.Limits, metrics: @escaping @Sendable () async -> [Metric]) {
    self.limits = limits
    self.metrics = metrics
  }

  static func addHandlers(
    to channel: any Channel, limits: MetricsEndpoint.Limits, metrics: @escaping @Sendable () async -> [Metric]
  ) throws {
    let pipeline = channel.pipeline.syncOperations
    try pipeline.addHandler(RequestLimit(bytes: limits.maximumRequestBytes))
    try pipeline.addHandler(HTTPResponseEncoder())
    try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
    try pipeline.addHandler(RequestHandler(limits: limits, metrics: metrics))
  }

  // MARK: events

  func channelActive(context: ChannelHandlerContext) {
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.timeout)) {
      context.close(promise: nil)
    }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    state = .answered
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), state) {
    case (.head(let head), .waiting): state = .reading(head)
    case (.end, .reading(let head)): answer(head, context)
    default: break
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent {
      if case .answering = state { return }
      context.close(promise: nil)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch (state, error) {
    case (.answering, _), (.answered, is HTTPParserError):
      break
    case (_, HTTPParserError.headerOverflow):
      send(.text(.requestHeaderFieldsTooLarge, "The request is too long."), isHead: false, context)
    case (_, is HTTPParserError):
      send(.text(.badRequest, "Not an HTTP request."), isHead: false, context)
    default:
      context.close(promise: nil)
    }
  }

  // MARK: answers

  private struct Answer {
    var status: HTTPResponseStatus
    var headers: HTTPHeaders
    var body: String

    static func text(_ status: HTTPResponseStatus, _ line: String, headers: HTTPHeaders = [:]) -> Answer {
      var headers = headers
      headers.add(name: "Content-Type", value: "text/plain; charset=utf-8")
      return Answer(status: status, headers: headers, body: line + "\n")
    }
  }

  private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    let path = head.uri.prefix { $0 != "?" }
    let isHead = head.method == .HEAD
    guard path == "/metrics" || path == "/" else {
      return send(.text(.notFound, "Not found; the only path is /metrics."), isHead: isHead, context)
    }
    guard isHead || head.method == .GET else {
      let allowed: HTTPHeaders = ["Allow": "GET, HEAD"]
      return send(
        .text(.methodNotAllowed, "Method not allowed; use GET or HEAD.", headers: allowed), isHead: false, context)
    }
    guard path == "/metrics" else { return send(.text(.ok, "Metrics: /metrics"), isHead: isHead, context) }
    state = .answering
    let page = context.eventLoop.makePromise(of: String.self)
    page.completeWithTask { [metrics] in PrometheusText.page(of: await metrics()) }
    page.futureResult.assumeIsolated().whenSuccess { page in
      let headers: HTTPHeaders = ["Content-Type": PrometheusText.contentType]
      self.send(Answer(status: .ok, headers: headers, body: page), isHead: isHead, context)
    }
  }

  private func send(_ answer: Answer, isHead: Bool, _ context: ChannelHandlerContext) {
    // The client, or the deadline, may have closed it while the page was made.
    guard context.channel.isActive else { return }
    state = .answering
    var headers = answer.headers
    headers.add(name: "Content-Length", value: "\(answer.body.utf8.count)")
    headers.add(name: "Connection", value: "close")
    let head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !isHead { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil) }
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

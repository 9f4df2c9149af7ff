import HTTP2

/// The side that sends; `FrameReader` alone is that of the binary protocol here.
typealias HTTP2Side = HTTP2.FrameReader.Side
typealias HTTP2UnreadCause = HTTP2.FrameReader.UnreadCause

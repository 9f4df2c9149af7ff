#include <zlib.h>

/// inflateInit2 is a macro, which Swift does not see. 47 = largest window, zlib or gzip header told from the bytes.
static inline int apnscope_inflate_init(z_stream *stream) {
  return inflateInit2(stream, 47);
}

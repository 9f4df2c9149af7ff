// Inflates the field blocks that http2.py wrote with libnghttp2 alone: no frames, no TCP, nothing is kept.
// usage: inflate BLOCKS.bin; prints "blocks fields bytes".
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Declared here, as the library's header is in a package of its own.
typedef struct nghttp2_hd_inflater nghttp2_hd_inflater;
typedef struct {
  uint8_t *name, *value;
  size_t namelen, valuelen;
  uint8_t flags;
} nghttp2_nv;
enum { HAS_FIELD = 2, IS_FINAL = 1, CONNECTIONS = 64 };
int nghttp2_hd_inflate_new(nghttp2_hd_inflater **inflater);
long nghttp2_hd_inflate_hd2(
  nghttp2_hd_inflater *inflater, nghttp2_nv *field, int *flags, const uint8_t *in, size_t length, int is_final);
int nghttp2_hd_inflate_end_headers(nghttp2_hd_inflater *inflater);

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) {
    fprintf(stderr, "usage: inflate BLOCKS.bin\n");
    return 64;
  }
  static nghttp2_hd_inflater *inflaters[CONNECTIONS];
  static uint8_t block[1 << 16];
  uint64_t blocks = 0, fields = 0, bytes = 0;
  uint32_t head[2];
  while (fread(head, sizeof head, 1, file) == 1) {
    if (head[0] >= CONNECTIONS || head[1] > sizeof block || fread(block, 1, head[1], file) != head[1]) return 65;
    nghttp2_hd_inflater **inflater = &inflaters[head[0]];
    if (!*inflater && nghttp2_hd_inflate_new(inflater) != 0) return 70;
    const uint8_t *next = block;
    size_t left = head[1];
    int flags;
    do {
      nghttp2_nv field;
      flags = 0;
      long taken = nghttp2_hd_inflate_hd2(*inflater, &field, &flags, next, left, 1);
      if (taken < 0) {
        fprintf(stderr, "inflate: block %llu: %ld\n", (unsigned long long)blocks, taken);
        return 65;
      }
      next += taken;
      left -= (size_t)taken;
      if (flags & HAS_FIELD) {
        fields++;
        bytes += field.namelen + field.valuelen;
      }
    } while (!(flags & IS_FINAL));
    nghttp2_hd_inflate_end_headers(*inflater);
    blocks++;
  }
  printf("%llu %llu %llu\n", (unsigned long long)blocks, (unsigned long long)fields, (unsigned long long)bytes);
  return 0;
}

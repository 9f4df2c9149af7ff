// What tlssend and errpair send: frames of 250 bytes, of command 2 with all five items, each with a token of its own.
#include "tls.h"

enum { FRAME = 250, TOKEN = 32, PAYLOAD = FRAME - 5 - (3 + TOKEN) - 3 - (3 + 4) - (3 + 4) - (3 + 1) };

static uint8_t *put(uint8_t *to, const void *bytes, size_t length) { return (uint8_t *)memcpy(to, bytes, length) + length; }
static uint8_t *put32(uint8_t *to, uint32_t number) { return put(to, &(uint32_t){htonl(number)}, 4); }
static uint8_t *put_item(uint8_t *to, uint8_t identifier, uint16_t length) {
  *to = identifier;
  return put(to + 1, &(uint16_t){htons(length)}, 2);
}

// 0: 02, frame length | 5: 01, 32, token | 40: 02, length, payload | 3, identifier | 4, expiration | 5, priority
enum { TOKEN_AT = 8, IDENTIFIER_AT = 40 + 3 + PAYLOAD + 3 };

static void make_frame(uint8_t *frame) {
  static const char opening[] = "{\"aps\":{\"alert\":\"", closing[] = "\"}}";
  uint8_t *p = frame;
  *p++ = 2;
  p = put32(p, FRAME - 5);
  p = put_item(p, 1, TOKEN) + TOKEN;
  p = put_item(p, 2, PAYLOAD);
  uint8_t *end = p + PAYLOAD - strlen(closing);
  p = put(p, opening, strlen(opening));
  for (int i = 0; p < end; i++) *p++ = (uint8_t)('a' + i % 26);
  p = put(p, closing, strlen(closing));
  p = put_item(p, 3, 4) + 4;
  p = put32(put_item(p, 4, 4), (uint32_t)time(NULL) + 86400);
  p = put_item(p, 5, 1);
  *p++ = 10;
  if (p != frame + FRAME) give_up("frame", "has another length");
}

// A token for every notification of every connection: the numbers, well mixed.
static void set_token(uint8_t *frame, uint64_t connection, uint64_t notification) {
  uint64_t x = (connection << 48) + 4 * notification;
  for (int i = 0; i < 4; i++) {
    uint64_t word = (x + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word ^= word >> 31;
    memcpy(frame + TOKEN_AT + 8 * i, &word, 8);
  }
}

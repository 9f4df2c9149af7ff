// Makes what the providers of the generators here push: command-2 frames with all five items, one after the other, to
// be taken in pieces of any length. Include packets.h before it.

enum { LONGEST_PIECE = 61440, LONGEST_FRAME = 512 };

struct frames {
  uint8_t unsent[LONGEST_PIECE + LONGEST_FRAME];
  int unsent_length;
  uint32_t last_identifier;
};

// The error response that ends each connection: status 8, identifier 5.
static const uint8_t error_response[6] = {8, 8, 0, 0, 0, 5};

static uint64_t frames, client_bytes;

// Whether no payload comes twice: eight letters of each are drawn. Else there are 180 lengths of 26 texts each.
static int payloads_differ;

// Adds one frame to the unsent bytes.
static void make_frame(struct frames *f) {
  static const char opening[] = "{\"aps\":{\"alert\":\"", closing[] = "\"}}";
  int payload_length = 40 + (int)(random32() % 180);
  uint32_t identifier = ++f->last_identifier;
  uint8_t *p = put8(f->unsent + f->unsent_length, 2);
  p = put32(p, (uint32_t)(3 + 32 + 3 + payload_length + 3 + 4 + 3 + 4 + 3 + 1));
  p = put16(put8(p, 1), 32);
  for (int i = 0; i < 8; i++) {
    uint32_t word = random32();
    p = put(p, &word, 4);
  }
  p = put16(put8(p, 2), (uint16_t)payload_length);
  uint8_t *payload = p, *end = p + payload_length - strlen(closing);
  p = put(p, opening, strlen(opening));
  while (p < end) {
    *p = (uint8_t)('a' + (uint32_t)(p - payload + identifier) % 26);
    p++;
  }
  if (payloads_differ) {
    for (int i = 0; i < 8; i++) payload[strlen(opening) + (size_t)i] = (uint8_t)('a' + random32() % 26);
  }
  p = put(p, closing, strlen(closing));
  p = put32(put16(put8(p, 3), 4), identifier);
  p = put32(put16(put8(p, 4), 4), 1700000001 + identifier);
  p = put8(put16(put8(p, 5), 1), 10);
  f->unsent_length = (int)(p - f->unsent);
  frames++;
}

// Makes frames until there are this many bytes to send, at most LONGEST_PIECE.
static void make_frames(struct frames *f, int length) {
  while (f->unsent_length < length) make_frame(f);
}

// Forgets the first bytes: they were sent.
static void sent(struct frames *f, int length) {
  client_bytes += (uint64_t)length;
  f->unsent_length -= length;
  memmove(f->unsent, f->unsent + length, (size_t)f->unsent_length);
}

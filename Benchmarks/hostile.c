// Writes a capture whose connections begin much and finish nothing: hostile KIND CONNECTIONS BYTES FILE.
//   frames       the beginning of a frame of 127 kB
//   records      a TLS handshake's first message, then the beginning of a record of 16 kB
//   hellos       whole ClientHellos, and nothing after them
//   undecided    the beginning of a frame on a port that says nothing, byte by byte
//   reordered    segments behind one that is missing
//   identifiers  notifications with random identifiers, 1 % of them answered
//   responses    error responses, one after the other
//   handshakes   SYN, SYN-ACK and ACK
//   tokens       a notification each for another token
//   damage       bytes that are no frame
// CONNECTIONS are opened in turn; BYTES is how much the capture has at most. Prints bytes and packets.
#include "packets.h"

static uint8_t block[65536];

static uint8_t *token(uint8_t *to, uint32_t number) {
  for (int i = 0; i < 8; i++) to = put32(to, number * 2654435761u + (uint32_t)i);
  return to;
}

// A notification of command 1.
static int notification(uint8_t *to, uint32_t identifier, uint32_t device) {
  static const char payload[] = "{\"aps\":{\"badge\":1}}";
  uint8_t *end = put32(put32(put8(to, 1), identifier), 1900000000);
  end = token(put16(end, 32), device);
  end = put(put16(end, sizeof payload - 1), payload, sizeof payload - 1);
  return (int)(end - to);
}

// A ClientHello in a record of its own.
static int hello(uint8_t *to) {
  int body = 2 + 32 + 1 + 2 + 2 + 2;
  uint8_t *end = put16(put16(put8(to, 22), 0x0301), (uint16_t)(4 + body));
  end = put16(put8(put8(end, 1), 0), (uint16_t)body);
  end = token(put16(end, 0x0303), random32());
  end = put8(put8(put16(put16(put8(end, 0), 2), 0xc02f), 1), 0);
  return (int)(end - to);
}

static void send_all(struct flow *f, const uint8_t *data, int length) {
  for (int at = 0; at < length; at += SEGMENT)
    write_packet(f, FROM_CLIENT, PSH | ACK, data + at, length - at < SEGMENT ? length - at : SEGMENT);
}

int main(int count, char **arguments) {
  if (count != 5) return fprintf(stderr, "usage: hostile KIND CONNECTIONS BYTES FILE\n"), 64;
  const char *kind = arguments[1], *path = arguments[4];
  int connections = atoi(arguments[2]);
  uint64_t bytes = strtoull(arguments[3], NULL, 10);
  uint32_t device = 0;
  int each = connections > 0 ? (int)(bytes / (uint64_t)connections) : 0;
  begin_capture(path);
  for (int number = 0; number < connections && written < bytes; number++) {
    struct flow f = {0};
    uint64_t end = written + (uint64_t)each;
    begin_flow(&f, number);
    memset(block, 0, sizeof block);
    if (!strcmp(kind, "frames")) {
      send_all(&f, block, (int)(put32(put8(put32(put8(block, 2), 127000), 2), 0xffff0000) - block));
      for (int sent = 0; sent < 122000 && written < end; sent += SEGMENT) send_all(&f, block + 64, SEGMENT);
    } else if (!strcmp(kind, "records")) {
      send_all(&f, block, hello(block));
      int length = (int)(put16(put16(put8(block, 22), 0x0303), 16000) - block);
      send_all(&f, block, length + 15900);
    } else if (!strcmp(kind, "hellos")) {
      send_all(&f, block, hello(block));
    } else if (!strcmp(kind, "undecided")) {
      int length = (int)(token(put16(put8(put32(put8(block, 2), 4000), 1), 32), (uint32_t)number) - block) - 2;
      for (int i = 0; i < length; i++) write_packet(&f, FROM_CLIENT, PSH | ACK, block + i, 1);
    } else if (!strcmp(kind, "reordered")) {
      f.client_sequence += 1000;
      while (written < end) send_all(&f, block, SEGMENT);
    } else if (!strcmp(kind, "identifiers")) {
      while (written < end) {
        int length = notification(block, random32(), device++);
        write_packet(&f, FROM_CLIENT, PSH | ACK, block, length);
      }
    } else if (!strcmp(kind, "responses")) {
      write_packet(&f, FROM_CLIENT, PSH | ACK, block, notification(block, 1, device++));
      while (written < end) {
        uint8_t response[6] = {8, 8};
        put32(response + 2, random32());
        write_packet(&f, FROM_SERVER, PSH | ACK, response, 6);
      }
    } else if (!strcmp(kind, "tokens")) {
      while (written < end) {
        int length = 0;
        while (length < SEGMENT - 100) length += notification(block + length, device, device), device++;
        write_packet(&f, FROM_CLIENT, PSH | ACK, block, length);
      }
    } else if (!strcmp(kind, "damage")) {
      write_packet(&f, FROM_CLIENT, PSH | ACK, block, notification(block, 1, device++));
      memset(block, 0xfe, sizeof block);
      while (written < end) send_all(&f, block, SEGMENT);
    } else if (strcmp(kind, "handshakes")) {
      return fprintf(stderr, "hostile: unknown kind %s\n", kind), 64;
    }
  }
  end_capture(path);
  printf("%llu %llu\n", (unsigned long long)written, (unsigned long long)packets);
  return 0;
}

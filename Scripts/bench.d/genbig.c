// Writes a large capture that is the same every time: providers on many connections push command-2 frames to port
// 2195. Frames are cut into TCP segments anywhere, every second segment is acknowledged, and each connection ends with
// an error response and FINs.
// usage: genbig OUT.pcap BYTES CONNECTIONS; prints "packets frames client-bytes".
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ETHERNET = 14, IP = 20, TCP = 20, HEADERS = ETHERNET + IP + TCP };
enum { FIN = 0x01, SYN = 0x02, PSH = 0x08, ACK = 0x10 };
enum { FROM_SERVER, FROM_CLIENT };

struct connection {
  uint32_t client_address, server_address;
  uint16_t client_port;
  uint32_t client_sequence, server_sequence;
  uint8_t unsent[4096];
  int unsent_length;
  uint32_t next_identifier;
  int segments;
};

static FILE *out;
static uint64_t written, packets, frames;
static uint64_t now = 1700000000ULL * 1000000;  // microseconds

// xorshift64: good enough to look random, and the same everywhere.
static uint32_t random32(void) {
  static uint64_t state = 88172645463325252ULL;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 16);
}

static uint8_t *put(uint8_t *to, const void *bytes, size_t count) {
  memcpy(to, bytes, count);
  return to + count;
}
static uint8_t *put8(uint8_t *to, uint8_t value) { return put(to, &value, 1); }
static uint8_t *put16(uint8_t *to, uint16_t value) {
  value = htons(value);
  return put(to, &value, 2);
}
static uint8_t *put32(uint8_t *to, uint32_t value) {
  value = htonl(value);
  return put(to, &value, 4);
}

// The Internet checksum (RFC 1071) over bytes, begun with a sum of 16-bit words.
static uint16_t checksum(const uint8_t *bytes, int count, uint32_t sum) {
  for (int i = 0; i + 1 < count; i += 2) sum += bytes[i] << 8 | bytes[i + 1];
  if (count & 1) sum += bytes[count - 1] << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)~sum;
}

static void write_packet(struct connection *c, int side, uint8_t flags, const uint8_t *data, int length) {
  uint8_t bytes[HEADERS + 1500] = {0};
  uint8_t *ip = bytes + ETHERNET, *tcp = ip + IP;
  int from_client = side == FROM_CLIENT, total = IP + TCP + length;

  put16(bytes + 12, 0x0800);
  put8(ip, 0x45);
  put16(ip + 2, (uint16_t)total);
  put16(ip + 4, (uint16_t)packets);
  put16(ip + 6, 0x4000);  // do not fragment
  put8(ip + 8, 64);
  put8(ip + 9, 6);
  put32(ip + 12, from_client ? c->client_address : c->server_address);
  put32(ip + 16, from_client ? c->server_address : c->client_address);
  put16(ip + 10, checksum(ip, IP, 0));

  put16(tcp, from_client ? c->client_port : 2195);
  put16(tcp + 2, from_client ? 2195 : c->client_port);
  put32(tcp + 4, from_client ? c->client_sequence : c->server_sequence);
  if (flags & ACK) put32(tcp + 8, from_client ? c->server_sequence : c->client_sequence);
  put8(tcp + 12, TCP / 4 << 4);
  put8(tcp + 13, flags);
  put16(tcp + 14, 0xffff);
  if (length > 0) put(tcp + TCP, data, (size_t)length);
  uint32_t pseudo_header = 6 + TCP + (uint32_t)length;
  for (int i = 12; i < IP; i += 2) pseudo_header += ip[i] << 8 | ip[i + 1];
  put16(tcp + 16, checksum(tcp, TCP + length, pseudo_header));

  uint32_t captured = (uint32_t)(ETHERNET + total);
  uint32_t header[4] = {(uint32_t)(now / 1000000), (uint32_t)(now % 1000000), captured, captured};
  fwrite(header, sizeof header, 1, out);
  fwrite(bytes, captured, 1, out);
  written += sizeof header + captured;
  packets++;
  now += 1 + random32() % 20;
  *(from_client ? &c->client_sequence : &c->server_sequence) += (uint32_t)length;
}

// Writes one frame with all five items and returns its length.
static int make_frame(struct connection *c, uint8_t *to) {
  static const char opening[] = "{\"aps\":{\"alert\":\"", closing[] = "\"}}";
  int payload_length = 40 + (int)(random32() % 180);
  uint8_t *p = put8(to, 2);
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
    *p = (uint8_t)('a' + (uint32_t)(p - payload + c->next_identifier) % 26);
    p++;
  }
  p = put(p, closing, strlen(closing));
  p = put32(put16(put8(p, 3), 4), c->next_identifier++);
  p = put32(put16(put8(p, 4), 4), 1700000000 + c->next_identifier);
  p = put8(put16(put8(p, 5), 1), 10);
  frames++;
  return (int)(p - to);
}

int main(int argc, char **argv) {
  if (argc != 4 || atoi(argv[3]) < 1 || !(out = fopen(argv[1], "wb"))) {
    fprintf(stderr, "usage: genbig OUT.pcap BYTES CONNECTIONS\n");
    return 64;
  }
  setvbuf(out, NULL, _IOFBF, 1 << 20);
  uint64_t wanted = strtoull(argv[2], NULL, 10), client_bytes = 0;
  int count = atoi(argv[3]);
  struct connection *connections = calloc((size_t)count, sizeof *connections);
  if (!connections) return 71;

  uint32_t file_header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 262144, 1};
  fwrite(file_header, sizeof file_header, 1, out);
  written = sizeof file_header;
  for (int i = 0; i < count; i++) {
    struct connection *c = connections + i;
    c->client_address = 0x0a000001 + (uint32_t)i % 200;
    c->server_address = 0x11bc0001 + (uint32_t)i % 7;
    c->client_port = (uint16_t)(20000 + i);
    c->client_sequence = random32() * 2654435761u;
    c->server_sequence = random32() * 40503u;
    c->next_identifier = 1;
    write_packet(c, FROM_CLIENT, SYN, NULL, 0);
    c->client_sequence++;
    write_packet(c, FROM_SERVER, SYN | ACK, NULL, 0);
    c->server_sequence++;
    write_packet(c, FROM_CLIENT, ACK, NULL, 0);
  }
  while (written < wanted) {
    struct connection *c = connections + random32() % (uint32_t)count;
    int length = 60 + (int)(random32() % 1389);
    while (c->unsent_length < length) c->unsent_length += make_frame(c, c->unsent + c->unsent_length);
    write_packet(c, FROM_CLIENT, PSH | ACK, c->unsent, length);
    client_bytes += (uint64_t)length;
    c->unsent_length -= length;
    memmove(c->unsent, c->unsent + length, (size_t)c->unsent_length);
    if (++c->segments % 2 == 0) write_packet(c, FROM_SERVER, ACK, NULL, 0);
  }
  for (int i = 0; i < count; i++) {
    struct connection *c = connections + i;
    static const uint8_t error_response[6] = {8, 8, 0, 0, 0, 5};
    if (c->unsent_length > 0) {
      write_packet(c, FROM_CLIENT, PSH | ACK, c->unsent, c->unsent_length);
      client_bytes += (uint64_t)c->unsent_length;
    }
    write_packet(c, FROM_SERVER, PSH | ACK, error_response, sizeof error_response);
    write_packet(c, FROM_SERVER, FIN | ACK, NULL, 0);
    c->server_sequence++;
    write_packet(c, FROM_CLIENT, FIN | ACK, NULL, 0);
    c->client_sequence++;
    write_packet(c, FROM_SERVER, ACK, NULL, 0);
  }
  if (fclose(out) != 0) {
    perror("genbig");
    return 74;
  }
  printf("%llu %llu %llu\n", (unsigned long long)packets, (unsigned long long)frames, (unsigned long long)client_bytes);
  return 0;
}

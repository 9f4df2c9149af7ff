// Writes TCP over IPv4 over Ethernet into a pcap file: what the generators of captures here share. Nothing in it is
// left to chance, so that a capture has the same packets every time.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ETHERNET = 14, IP = 20, TCP = 20, HEADERS = ETHERNET + IP + TCP, SEGMENT = 1448 };
enum { FIN = 0x01, SYN = 0x02, PSH = 0x08, ACK = 0x10 };
enum { FROM_SERVER, FROM_CLIENT };

struct flow {
  uint32_t client_address, server_address;
  uint16_t client_port;
  uint32_t client_sequence, server_sequence;
  int segments;
};

static FILE *out;
static uint64_t written, packets;
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

// Begins the file, or says why it cannot and exits.
static void begin_capture(const char *path) {
  uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 262144, 1};
  if (!(out = fopen(path, "wb"))) {
    perror(path);
    exit(73);
  }
  setvbuf(out, NULL, _IOFBF, 1 << 20);
  fwrite(header, sizeof header, 1, out);
  written = sizeof header;
}

// Ends the file; an error of any write before is kept in the stream and found here.
static void end_capture(const char *path) {
  int failed = ferror(out);
  if (fclose(out) != 0 || failed) {
    perror(path);
    exit(74);
  }
}

// The Internet checksum (RFC 1071) over bytes, begun with a sum of 16-bit words.
static uint16_t checksum(const uint8_t *bytes, int count, uint32_t sum) {
  for (int i = 0; i + 1 < count; i += 2) sum += bytes[i] << 8 | bytes[i + 1];
  if (count & 1) sum += bytes[count - 1] << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return (uint16_t)~sum;
}

static void write_packet(struct flow *f, int side, uint8_t flags, const uint8_t *data, int length) {
  static uint8_t bytes[HEADERS + 65535];
  memset(bytes, 0, HEADERS);
  uint8_t *ip = bytes + ETHERNET, *tcp = ip + IP;
  int from_client = side == FROM_CLIENT, total = IP + TCP + length;

  put16(bytes + 12, 0x0800);
  put8(ip, 0x45);
  put16(ip + 2, (uint16_t)total);
  put16(ip + 4, (uint16_t)packets);
  put16(ip + 6, 0x4000);  // do not fragment
  put8(ip + 8, 64);
  put8(ip + 9, 6);
  put32(ip + 12, from_client ? f->client_address : f->server_address);
  put32(ip + 16, from_client ? f->server_address : f->client_address);
  put16(ip + 10, checksum(ip, IP, 0));

  put16(tcp, from_client ? f->client_port : 2195);
  put16(tcp + 2, from_client ? 2195 : f->client_port);
  put32(tcp + 4, from_client ? f->client_sequence : f->server_sequence);
  if (flags & ACK) put32(tcp + 8, from_client ? f->server_sequence : f->client_sequence);
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
  // SYN and FIN take one number, as a byte does.
  *(from_client ? &f->client_sequence : &f->server_sequence) += (uint32_t)length + (flags & (SYN | FIN) ? 1 : 0);
}

// Begins the flow with this number, from 0.
static void begin_flow(struct flow *f, int number) {
  f->client_address = 0x0a000001 + (uint32_t)number % 200;
  f->server_address = 0x11bc0001 + (uint32_t)number % 7;
  f->client_port = (uint16_t)(20000 + number);
  f->client_sequence = random32() * 2654435761u;
  f->server_sequence = random32() * 40503u;
  write_packet(f, FROM_CLIENT, SYN, NULL, 0);
  write_packet(f, FROM_SERVER, SYN | ACK, NULL, 0);
  write_packet(f, FROM_CLIENT, ACK, NULL, 0);
}

// The length of the next segment, anything up to SEGMENT.
static int random_length(void) { return 60 + (int)(random32() % (SEGMENT - 60 + 1)); }

// Writes a segment of the client's; every second one is acknowledged.
static void write_client_segment(struct flow *f, const uint8_t *data, int length) {
  write_packet(f, FROM_CLIENT, PSH | ACK, data, length);
  if (++f->segments % 2 == 0) write_packet(f, FROM_SERVER, ACK, NULL, 0);
}

// Writes a large capture that is the same every time: providers on many connections push command-2 frames to port
// 2195. Frames are cut into TCP segments anywhere, every second segment is acknowledged, and each connection ends with
// an error response and FINs.
// usage: genbig OUT.pcap BYTES CONNECTIONS [differ | FRAMES]; with `differ` no payload comes twice, with a number each
// segment is so many whole frames, 200 at most: as a capturing host sees them before its network card cuts them.
// Prints "packets frames client-bytes".
#include "packets.h"
#include "frames.h"

struct connection {
  struct flow flow;
  struct frames frames;
};

int main(int argc, char **argv) {
  payloads_differ = argc == 5 && strcmp(argv[4], "differ") == 0;
  int whole = argc == 5 && !payloads_differ ? atoi(argv[4]) : 0;
  int count = argc == 4 || argc == 5 ? atoi(argv[3]) : 0;
  if (count < 1 || whole < 0 || whole > 200 || (argc == 5 && !payloads_differ && whole == 0)) {
    fprintf(stderr, "usage: genbig OUT.pcap BYTES CONNECTIONS [differ | FRAMES]\n");
    return 64;
  }
  uint64_t wanted = strtoull(argv[2], NULL, 10);
  struct connection *connections = calloc((size_t)count, sizeof *connections);
  if (!connections) {
    perror("genbig");
    return 71;
  }

  begin_capture(argv[1]);
  for (int i = 0; i < count; i++) begin_flow(&connections[i].flow, i);
  while (written < wanted) {
    struct connection *c = connections + random32() % (uint32_t)count;
    int length = random_length();
    if (whole > 0) {
      for (int i = 0; i < whole; i++) make_frame(&c->frames);
      length = c->frames.unsent_length;
    }
    make_frames(&c->frames, length);
    write_client_segment(&c->flow, c->frames.unsent, length);
    sent(&c->frames, length);
  }
  for (int i = 0; i < count; i++) {
    struct connection *c = connections + i;
    if (c->frames.unsent_length > 0) {
      write_packet(&c->flow, FROM_CLIENT, PSH | ACK, c->frames.unsent, c->frames.unsent_length);
      sent(&c->frames, c->frames.unsent_length);
    }
    write_packet(&c->flow, FROM_SERVER, PSH | ACK, error_response, sizeof error_response);
    write_packet(&c->flow, FROM_SERVER, FIN | ACK, NULL, 0);
    write_packet(&c->flow, FROM_CLIENT, FIN | ACK, NULL, 0);
    write_packet(&c->flow, FROM_SERVER, ACK, NULL, 0);
  }
  end_capture(argv[1]);
  printf("%llu %llu %llu\n", (unsigned long long)packets, (unsigned long long)frames, (unsigned long long)client_bytes);
  return 0;
}

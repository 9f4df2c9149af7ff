// The yardstick for decoding: libpcap reads a capture from front to back and nothing else is done.
// usage: loop CAPTURE; prints packets and captured bytes.
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv) {
  char error[PCAP_ERRBUF_SIZE];
  if (argc != 2) {
    fprintf(stderr, "usage: loop CAPTURE\n");
    return 64;
  }
  pcap_t *capture = pcap_open_offline_with_tstamp_precision(argv[1], PCAP_TSTAMP_PRECISION_NANO, error);
  if (!capture) {
    fprintf(stderr, "loop: %s\n", error);
    return 66;
  }
  struct pcap_pkthdr *header;
  const u_char *data;
  uint64_t packets = 0, bytes = 0;
  int result;
  while ((result = pcap_next_ex(capture, &header, &data)) == 1) {
    packets++;
    bytes += header->caplen;
  }
  if (result == PCAP_ERROR) {
    fprintf(stderr, "loop: %s\n", pcap_geterr(capture));
    return 65;
  }
  printf("%llu %llu\n", (unsigned long long)packets, (unsigned long long)bytes);
  pcap_close(capture);
  return 0;
}

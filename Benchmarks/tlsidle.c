// Opens idle connections and says how many are open:
//   tlsidle HOST PORT COUNT --tls 12|13 --ca FILE --certificate FILE --key FILE     with a provider's certificate
//   tlsidle HOST PORT COUNT --http2 [--tls 12|13 --ca FILE --certificate FILE --key FILE]
// With --http2 the SETTINGS of both sides have been exchanged and acknowledged; without --tls it is in clear. It prints the number of open connections in a line when all are there, and keeps them until it is killed. They come
// from 127.0.0.1 and on, 10,000 from each address, so that ports do not run out.
#include "tls.h"

static const int connections_per_address = 10000;

static int open_socket(const struct sockaddr_in *address, int number) {
  int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(file >= 0, "socket");
  int one = 1;
  need(setsockopt(file, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) == 0, "IP_BIND_ADDRESS_NO_PORT");
  struct sockaddr_in local = {.sin_family = AF_INET};
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (unsigned)(number / connections_per_address));
  need(bind(file, (const struct sockaddr *)&local, sizeof local) == 0, "bind");
  need(connect(file, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
  return file;
}

// One end of a connection, with TLS or without.
struct connection {
  int file;
  SSL *ssl;
};

static void send_all(struct connection to, const void *bytes, int count) {
  need((to.ssl ? SSL_write(to.ssl, bytes, count) : (int)send(to.file, bytes, (size_t)count, 0)) == count, "write");
}

static void receive_all(struct connection from, unsigned char *bytes, int count) {
  while (count > 0) {
    int got = from.ssl ? SSL_read(from.ssl, bytes, count) : (int)recv(from.file, bytes, (size_t)count, 0);
    need(got > 0, "read");
    bytes += got;
    count -= got;
  }
}

// Sends the preface, and returns when the server has acknowledged it and its own SETTINGS are acknowledged.
static void begin_http2(struct connection with) {
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
  static const char acknowledgement[] = "\0\0\0\4\1\0\0\0";
  send_all(with, preface, sizeof preface);
  for (int settings = 0, acknowledged = 0; !settings || !acknowledged;) {
    unsigned char head[9], rest[16384];
    receive_all(with, head, sizeof head);
    int length = head[0] << 16 | head[1] << 8 | head[2];
    need(length <= (int)sizeof rest, "frame");
    receive_all(with, rest, length);
    need(head[3] != 7, "GOAWAY");
    if (head[3] != 4) continue;
    if (head[4] & 1) acknowledged = 1; else settings = 1;
  }
  send_all(with, acknowledgement, sizeof acknowledgement);
}

int main(int count_of_arguments, char **arguments) {
  program = "tlsidle";
  int version = 0, http2 = 0, option;
  static const struct option options[] = {{"tls", 1, 0, 't'}, {"ca", 1, 0, 'a'}, {"certificate", 1, 0, 'c'},
                                          {"key", 1, 0, 'k'}, {"http2", 0, 0, '2'}, {0, 0, 0, 0}};
  while ((option = getopt_long(count_of_arguments, arguments, "", options, NULL)) != -1) {
    switch (option) {
    case 't': version = atoi(optarg); break;
    case 'a': ca = optarg; break;
    case 'c': certificate = optarg; break;
    case 'k': private_key = optarg; break;
    case '2': http2 = 1; break;
    default: return 64;
    }
  }
  if (count_of_arguments - optind != 3 || (!version && !http2)) return 64;
  struct sockaddr_in address = {.sin_family = AF_INET};
  need(inet_pton(AF_INET, arguments[optind], &address.sin_addr) == 1, "address");
  address.sin_port = htons((uint16_t)atoi(arguments[optind + 1]));
  int count = atoi(arguments[optind + 2]);

  struct rlimit limit;
  need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  signal(SIGPIPE, SIG_IGN);
  SSL_CTX *context = version ? make_context(TLS_client_method(), version) : NULL;
  if (context) SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (context && http2) need(SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\2h2", 3) == 0, "ALPN");
  for (int number = 0; number < count; number++) {
    struct connection each = {open_socket(&address, number), NULL};
    if (context) {
      each.ssl = SSL_new(context);
      need(each.ssl != NULL && SSL_set_fd(each.ssl, each.file) == 1, "connection");
      need(SSL_connect(each.ssl) == 1, "handshake");
    }
    if (http2) begin_http2(each);
  }
  printf("%d\n", count);
  fflush(stdout);
  pause();
  return 0;
}

// Opens idle TLS connections with a provider's certificate and says how many are open:
//   tlsidle HOST PORT COUNT --tls 12|13 --ca FILE --certificate FILE --key FILE
// It prints the number of open connections in a line when all are there, and keeps them until it is killed. They come
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

int main(int count_of_arguments, char **arguments) {
  program = "tlsidle";
  int version = 12, option;
  static const struct option options[] = {{"tls", 1, 0, 't'}, {"ca", 1, 0, 'a'}, {"certificate", 1, 0, 'c'},
                                          {"key", 1, 0, 'k'}, {0, 0, 0, 0}};
  while ((option = getopt_long(count_of_arguments, arguments, "", options, NULL)) != -1) {
    switch (option) {
    case 't': version = atoi(optarg); break;
    case 'a': ca = optarg; break;
    case 'c': certificate = optarg; break;
    case 'k': private_key = optarg; break;
    default: return 64;
    }
  }
  if (count_of_arguments - optind != 3) return 64;
  struct sockaddr_in address = {.sin_family = AF_INET};
  need(inet_pton(AF_INET, arguments[optind], &address.sin_addr) == 1, "address");
  address.sin_port = htons((uint16_t)atoi(arguments[optind + 1]));
  int count = atoi(arguments[optind + 2]);

  struct rlimit limit;
  need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  signal(SIGPIPE, SIG_IGN);
  SSL_CTX *context = make_context(TLS_client_method(), version);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  for (int number = 0; number < count; number++) {
    SSL *ssl = SSL_new(context);
    need(ssl != NULL && SSL_set_fd(ssl, open_socket(&address, number)) == 1, "connection");
    need(SSL_connect(ssl) == 1, "handshake");
  }
  printf("%d\n", count);
  fflush(stdout);
  pause();
  return 0;
}

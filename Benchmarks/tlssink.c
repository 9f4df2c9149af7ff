// The yardstick for the simulator: a gateway that only walks from frame to frame and counts. One thread a connection.
// usage: tlssink PORT [--plain] [--ca F --certificate F --key F] [--connections N]
// Listens at 127.0.0.1 and prints "gateway 127.0.0.1:PORT"; port 0 picks one. At SIGTERM, or after N connections have
// ended, prints "notifications bytes processor-seconds".
#include "tls.h"

enum { PIECE = 16384, LONGEST_FRAME = 8192 };

static int is_plain;
static SSL_CTX *context;
static int listener;
static uint64_t expected;
static _Atomic uint64_t notifications, bytes, ended;

// Walks the whole frames and returns their length.
static int walk(const uint8_t *buffer, int length, uint64_t *frames) {
  int at = 0;
  while (length - at >= 5) {
    uint32_t rest;
    memcpy(&rest, buffer + at + 1, 4);
    rest = ntohl(rest);
    if (buffer[at] != 2 || rest > LONGEST_FRAME) give_up("frame", "is none of command 2");
    if ((uint32_t)(length - at - 5) < rest) break;
    at += 5 + (int)rest;
    (*frames)++;
  }
  return at;
}

static void *serve(void *argument) {
  int file = (int)(intptr_t)argument, have = 0;
  uint8_t buffer[PIECE + LONGEST_FRAME + 5];
  SSL *ssl = NULL;
  set_no_delay(file);
  if (!is_plain) {
    ssl = SSL_new(context);
    need(ssl && SSL_set_fd(ssl, file) && SSL_accept(ssl) == 1, "handshake");
  }
  for (;;) {
    int count = ssl ? SSL_read(ssl, buffer + have, PIECE) : (int)read(file, buffer + have, PIECE);
    if (count <= 0) break;
    have += count;
    uint64_t frames = 0;
    int walked = walk(buffer, have, &frames);
    have -= walked;
    memmove(buffer, buffer + walked, (size_t)have);
    // Once a read, so that a connection that has not ended counts too.
    atomic_fetch_add_explicit(&notifications, frames, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, (uint64_t)count, memory_order_relaxed);
  }
  if (ssl) {
    SSL_shutdown(ssl);
    SSL_free(ssl);
  }
  close(file);
  if (atomic_fetch_add(&ended, 1) + 1 == expected) kill(getpid(), SIGTERM);
  return NULL;
}

static void *accept_all(void *argument) {
  (void)argument;
  for (;;) {
    int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    pthread_t thread;
    need(file >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)file) == 0, "accept");
    pthread_detach(thread);
  }
  return NULL;
}

static void usage(void) {
  fprintf(stderr, "usage: tlssink PORT [--plain] [--ca F --certificate F --key F] [--connections N]\n");
  exit(64);
}

int main(int argc, char **argv) {
  program = "tlssink";
  certificate = "gateway.pem", private_key = "gateway.key";
  static const struct option options[] = {{"plain", 0, 0, 'p'}, {"ca", 1, 0, 'a'}, {"certificate", 1, 0, 'c'},
                                          {"key", 1, 0, 'k'}, {"connections", 1, 0, 'n'}, {0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
      case 'p': is_plain = 1; break;
      case 'a': ca = optarg; break;
      case 'c': certificate = optarg; break;
      case 'k': private_key = optarg; break;
      case 'n': expected = strtoull(optarg, NULL, 10); break;
      default: usage();
    }
  if (optind != argc - 1) usage();
  // Before there are threads, which are to leave these to the first one.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  if (!is_plain) context = make_context(TLS_server_method(), 0);

  struct sockaddr_in address = {
    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[optind])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0, "socket");
  need(bind(listener, (void *)&address, sizeof address) == 0 && listen(listener, 512) == 0, "listen");
  need(getsockname(listener, (void *)&address, &length) == 0, "port");
  printf("gateway 127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);

  pthread_t thread;
  need(pthread_create(&thread, NULL, accept_all, NULL) == 0, "thread");
  int which;
  sigwait(&signals, &which);
  printf("%llu %llu %.6f\n", (unsigned long long)notifications, (unsigned long long)bytes, processor_time());
  return 0;
}

// The sender of the benchmark: pushes frames of 250 bytes as fast as they are taken. Each is of command 2 with all five
// items, and has a token of its own; BATCH of them go into one SSL_write, so that 64 are one TLS record of 16000 bytes.
// usage: tlssend HOST:PORT [--tls 12|13|plain] [--ca F --certificate F --key F] [--connections N] [--batch N]
//          [--count N | --secs S]
// HOST is an IPv4 address. Prints "sent seconds processor-seconds". It fails when the gateway answers or hangs up.
#include "notification.h"

enum { LARGEST_BATCH = 4096 };

static int version = 12, connections = 1, batch = 64;
static uint64_t count;
static double period = 3;
static struct sockaddr_in gateway = {.sin_family = AF_INET};
static SSL_CTX *context;
static atomic_int has_ended;

struct connection {
  pthread_t thread;
  uint64_t number, wanted, sent;
  int file;
  SSL *ssl;
};

static void open_connection(struct connection *c) {
  c->file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(c->file >= 0 && connect(c->file, (void *)&gateway, sizeof gateway) == 0, "connect");
  set_no_delay(c->file);
  if (!version) return;
  c->ssl = SSL_new(context);
  need(c->ssl && SSL_set_fd(c->ssl, c->file) && SSL_connect(c->ssl) == 1, "handshake");
}

static void *send_all(void *argument) {
  struct connection *c = argument;
  uint8_t *frames = malloc((size_t)batch * FRAME);
  need(frames != NULL, "memory");
  for (int i = 0; i < batch; i++) make_frame(frames + i * FRAME);
  while (c->sent < c->wanted && !atomic_load_explicit(&has_ended, memory_order_relaxed)) {
    uint64_t left = c->wanted - c->sent;
    int now = left < (uint64_t)batch ? (int)left : batch;
    for (int i = 0; i < now; i++) {
      uint8_t *frame = frames + i * FRAME;
      set_token(frame, c->number, c->sent + (uint64_t)i);
      put32(frame + IDENTIFIER_AT, (uint32_t)(c->sent + (uint64_t)i + 1));
    }
    for (int at = 0, end = now * FRAME; at < end;) {
      int taken = c->ssl ? SSL_write(c->ssl, frames + at, end - at) : (int)write(c->file, frames + at, (size_t)(end - at));
      need(taken > 0, "the gateway hung up");
      at += taken;
    }
    c->sent += (uint64_t)now;
  }
  free(frames);
  return NULL;
}

// Says that no more will come, and waits until the gateway has read it all and says so too.
static void *close_connection(void *argument) {
  struct connection *c = argument;
  uint8_t answer[64];
  if (c->ssl) SSL_shutdown(c->ssl);
  shutdown(c->file, SHUT_WR);
  int length = c->ssl ? SSL_read(c->ssl, answer, sizeof answer) : (int)read(c->file, answer, sizeof answer);
  if (length >= 6 && answer[0] == 8) {
    uint32_t identifier;
    memcpy(&identifier, answer + 2, 4);
    fprintf(stderr, "tlssend: error response: status %u, identifier %u\n", answer[1], ntohl(identifier));
    exit(70);
  }
  if (length > 0) give_up("the gateway", "sent what is no error response");
  close(c->file);
  return NULL;
}

static void each_in_a_thread(struct connection *all, void *(*run)(void *)) {
  for (int i = 0; i < connections; i++) need(pthread_create(&all[i].thread, NULL, run, &all[i]) == 0, "thread");
}

static void join(struct connection *all) {
  for (int i = 0; i < connections; i++) pthread_join(all[i].thread, NULL);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void usage(void) {
  fprintf(stderr, "usage: tlssend HOST:PORT [--tls 12|13|plain] [--ca F --certificate F --key F] [--connections N] "
                  "[--batch N] [--count N | --secs S]\n");
  exit(64);
}

int main(int argc, char **argv) {
  program = "tlssend";
  certificate = "client.pem", private_key = "client.key";
  static const struct option options[] = {
    {"tls", 1, 0, 't'}, {"ca", 1, 0, 'a'}, {"certificate", 1, 0, 'c'}, {"key", 1, 0, 'k'}, {"connections", 1, 0, 'n'},
    {"batch", 1, 0, 'b'}, {"count", 1, 0, 'N'}, {"secs", 1, 0, 's'}, {0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
      case 't': version = strcmp(optarg, "plain") ? atoi(optarg) : 0; break;
      case 'a': ca = optarg; break;
      case 'c': certificate = optarg; break;
      case 'k': private_key = optarg; break;
      case 'n': connections = atoi(optarg); break;
      case 'b': batch = atoi(optarg); break;
      case 'N': count = strtoull(optarg, NULL, 10); break;
      case 's': period = atof(optarg); break;
      default: usage();
    }
  char *colon = optind == argc - 1 ? strrchr(argv[optind], ':') : NULL;
  if (!colon || connections < 1 || batch < 1 || batch > LARGEST_BATCH) usage();
  if (version != 0 && version != 12 && version != 13) usage();
  *colon = 0;
  gateway.sin_port = htons((uint16_t)atoi(colon + 1));
  if (inet_pton(AF_INET, argv[optind], &gateway.sin_addr) != 1) usage();
  signal(SIGPIPE, SIG_IGN);
  if (version) context = make_context(TLS_client_method(), version);

  struct connection *all = calloc((size_t)connections, sizeof *all);
  need(all != NULL, "memory");
  uint64_t share = count / (uint64_t)connections, rest = count % (uint64_t)connections;
  for (int i = 0; i < connections; i++) {
    all[i].number = (uint64_t)i;
    all[i].wanted = count ? share + ((uint64_t)i < rest) : UINT64_MAX;
    open_connection(&all[i]);
  }
  double start = now();
  each_in_a_thread(all, send_all);
  if (!count) {
    struct timespec time = {(time_t)period, (long)((period - (double)(time_t)period) * 1e9)};
    nanosleep(&time, NULL);
    atomic_store(&has_ended, 1);
  }
  join(all);
  each_in_a_thread(all, close_connection);
  join(all);
  double taken = now() - start;
  uint64_t sent = 0;
  for (int i = 0; i < connections; i++) sent += all[i].sent;
  printf("%llu %.6f %.6f\n", (unsigned long long)sent, taken, processor_time());
  return 0;
}

// What rejections cost at best: a process that sends and a gateway that only walks frames, over one connection at a time.
// The gateway rejects every N-th identifier: it writes the error response, ends its half, and reads on until the sender
// has gone. The sender looks for it before each record, connects again, resuming its session, and goes on behind the
// notification that was named.
// usage: errpair [--tls 12|13] [--ca F --certificate F --key F --gateway-certificate F --gateway-key F] [--batch N]
//          [--every N] [--send-buffer BYTES] [--low-water BYTES] [--secs S]
// Prints "accepted-per-second lost-p50 lost-p99 rejections connections resumed". Lost are those that were written behind
// one that was rejected.
#include "notification.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PIECE = 16384, LARGEST_BATCH = 64, MOST_REJECTIONS = 1 << 20 };

static int version = 12, batch = LARGEST_BATCH, send_buffer = 65536, low_water = 16384;
static uint32_t every = 10000;
static double period = 3;
static const char *gateway_certificate = "gateway.pem", *gateway_key = "gateway.key";
static struct sockaddr_in gateway = {.sin_family = AF_INET};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint32_t get32(const uint8_t *from) {
  uint32_t number;
  memcpy(&number, from, 4);
  return ntohl(number);
}

// MARK: the gateway

// Walks the whole frames and returns their length; `rejected` is set to the first one that is bad.
static int walk(const uint8_t *buffer, int length, uint32_t *rejected) {
  int at = 0;
  while (length - at >= FRAME) {
    if (buffer[at] != 2 || get32(buffer + at + 1) != FRAME - 5) give_up("frame", "is none of these");
    uint32_t identifier = get32(buffer + at + IDENTIFIER_AT);
    at += FRAME;
    if (identifier % every == 0) {
      *rejected = identifier;
      break;
    }
  }
  return at;
}

static void serve(SSL_CTX *context, int file) {
  static uint8_t buffer[PIECE + FRAME];
  SSL *ssl = SSL_new(context);
  set_no_delay(file);
  need(ssl && SSL_set_fd(ssl, file), "connection");
  if (SSL_accept(ssl) == 1) {
    int have = 0, count;
    uint32_t rejected = 0;
    while (!rejected && (count = SSL_read(ssl, buffer + have, PIECE)) > 0) {
      have += count;
      int walked = walk(buffer, have, &rejected);
      have -= walked;
      memmove(buffer, buffer + walked, (size_t)have);
    }
    if (rejected) {
      uint8_t response[6] = {8, 8};
      put32(response + 2, rejected);
      SSL_write(ssl, response, sizeof response);
      SSL_shutdown(ssl);
      shutdown(file, SHUT_WR);
      // A close with something unread would be a RST, which can destroy the response.
      while (read(file, buffer, PIECE) > 0) {}
    }
  }
  ERR_clear_error();
  SSL_free(ssl);
  close(file);
}

static void run_gateway(int listener) {
  certificate = gateway_certificate;
  private_key = gateway_key;
  SSL_CTX *context = make_context(TLS_server_method(), version);
  SSL_CTX_set_session_id_context(context, (const uint8_t *)"errpair", 7);
  for (;;) {
    int file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    need(file >= 0, "accept");
    serve(context, file);
  }
}

// MARK: the sender

static SSL_SESSION *session;

static int keep_session(SSL *ssl, SSL_SESSION *new) {
  (void)ssl;
  if (session) SSL_SESSION_free(session);
  session = new;
  return 1;
}

static SSL *open_connection(SSL_CTX *context, int *file) {
  *file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(*file >= 0, "socket");
  if (send_buffer) need(setsockopt(*file, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer) == 0, "SO_SNDBUF");
  if (low_water)
    need(setsockopt(*file, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low_water, sizeof low_water) == 0, "TCP_NOTSENT_LOWAT");
  set_no_delay(*file);
  need(connect(*file, (void *)&gateway, sizeof gateway) == 0, "connect");
  SSL *ssl = SSL_new(context);
  need(ssl && SSL_set_fd(ssl, *file), "connection");
  if (session) SSL_set_session(ssl, session);
  need(SSL_connect(ssl) == 1, "handshake");
  need(fcntl(*file, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
  return ssl;
}

// Sends from identifier `*next` on until a rejection, after which `*next` is to be sent first, or until `end`. Adds what
// was accepted, and returns how many were written behind the one that was rejected; -1 when it is time to end.
static long send_until_rejected(SSL *ssl, int file, uint32_t *next, uint64_t *accepted, double end) {
  static uint8_t frames[LARGEST_BATCH * FRAME];
  uint8_t response[6];
  uint32_t first = *next;
  if (!frames[0]) for (int i = 0; i < LARGEST_BATCH; i++) make_frame(frames + i * FRAME);
  int at = 0, length = 0, have = 0, is_dead = 0;
  for (;;) {
    if (at == length) {
      if (now() > end) {
        // Without an answer nothing proves them; they were taken all the same, but for the last few.
        *accepted += *next - first;
        return -1;
      }
      for (int i = 0; i < batch; i++) {
        uint8_t *frame = frames + i * FRAME;
        set_token(frame, 0, *next + (uint32_t)i);
        put32(frame + IDENTIFIER_AT, *next + (uint32_t)i);
      }
      at = 0;
      length = batch * FRAME;
    }
    struct pollfd ready = {file, (short)(POLLIN | (is_dead ? 0 : POLLOUT)), 0};
    need(poll(&ready, 1, 5000) > 0, "the gateway neither reads nor answers");
    if (ready.revents & (POLLIN | POLLHUP | POLLERR)) {
      int count = SSL_read(ssl, response + have, (int)sizeof response - have);
      if (count > 0) have += count;
      else if (SSL_get_error(ssl, count) != SSL_ERROR_WANT_READ) give_up("the gateway", "hung up without a response");
      if (have == (int)sizeof response) break;
    }
    if (!is_dead && ready.revents & (POLLOUT | POLLHUP | POLLERR)) {
      int count = SSL_write(ssl, frames + at, length - at);
      if (count > 0) at += count;
      else if (SSL_get_error(ssl, count) != SSL_ERROR_WANT_WRITE) is_dead = 1;
      if (at == length) *next += (uint32_t)batch;
    }
  }
  uint32_t written = *next + (uint32_t)(at == length ? 0 : at / FRAME), rejected = get32(response + 2);
  need(response[0] == 8 && rejected >= first && rejected < written, "the response names one that was sent");
  *accepted += rejected - first;
  *next = rejected + 1;
  return (long)(written - *next);
}

static int compare(const void *a, const void *b) {
  long x = *(const long *)a, y = *(const long *)b;
  return (x > y) - (x < y);
}

static void run_sender(void) {
  SSL_CTX *context = make_context(TLS_client_method(), version);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  long *lost = malloc(MOST_REJECTIONS * sizeof *lost), rejections = 0, connections = 0, resumed = 0, one = 0;
  need(lost != NULL, "memory");
  uint64_t accepted = 0;
  uint32_t next = 1;
  double start = now(), end = start + period;
  while (one >= 0 && rejections < MOST_REJECTIONS) {
    int file;
    SSL *ssl = open_connection(context, &file);
    connections++;
    resumed += SSL_session_reused(ssl);
    one = send_until_rejected(ssl, file, &next, &accepted, end);
    if (one >= 0) lost[rejections++] = one;
    // A session whose connection is freed without this is not resumed.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    close(file);
  }
  double taken = now() - start;
  qsort(lost, (size_t)rejections, sizeof *lost, compare);
  printf("%.0f %ld %ld %ld %ld %ld\n", (double)accepted / taken, rejections ? lost[rejections / 2] : 0,
         rejections ? lost[rejections * 99 / 100] : 0, rejections, connections, resumed);
}

static void usage(void) {
  fprintf(stderr, "usage: errpair [--tls 12|13] [--ca F --certificate F --key F --gateway-certificate F --gateway-key F] "
                  "[--batch N] [--every N] [--send-buffer BYTES] [--low-water BYTES] [--secs S]\n");
  exit(64);
}

int main(int argc, char **argv) {
  program = "errpair";
  certificate = "client.pem", private_key = "client.key";
  static const struct option options[] = {
    {"tls", 1, 0, 't'}, {"ca", 1, 0, 'a'}, {"certificate", 1, 0, 'c'}, {"key", 1, 0, 'k'},
    {"gateway-certificate", 1, 0, 'C'}, {"gateway-key", 1, 0, 'K'}, {"batch", 1, 0, 'b'}, {"every", 1, 0, 'e'},
    {"send-buffer", 1, 0, 'S'}, {"low-water", 1, 0, 'l'}, {"secs", 1, 0, 's'}, {0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) switch (option) {
      case 't': version = atoi(optarg); break;
      case 'a': ca = optarg; break;
      case 'c': certificate = optarg; break;
      case 'k': private_key = optarg; break;
      case 'C': gateway_certificate = optarg; break;
      case 'K': gateway_key = optarg; break;
      case 'b': batch = atoi(optarg); break;
      case 'e': every = (uint32_t)strtoul(optarg, NULL, 10); break;
      case 'S': send_buffer = atoi(optarg); break;
      case 'l': low_water = atoi(optarg); break;
      case 's': period = atof(optarg); break;
      default: usage();
    }
  if (optind != argc || batch < 1 || batch > LARGEST_BATCH || every < 1 || (version != 12 && version != 13)) usage();
  signal(SIGPIPE, SIG_IGN);
  gateway.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof gateway;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  need(listener >= 0 && bind(listener, (void *)&gateway, sizeof gateway) == 0 && listen(listener, 64) == 0, "listen");
  need(getsockname(listener, (void *)&gateway, &length) == 0, "port");
  pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_gateway(listener);
  }
  alarm((unsigned)period + 60);
  run_sender();
  kill(child, SIGTERM);
  waitpid(child, NULL, 0);
  return 0;
}

// What tlssend and tlssink share: options, a TLS context for mutual authentication, clocks.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *program, *ca = "ca.pem", *certificate, *private_key;

static void give_up(const char *what, const char *why) {
  fprintf(stderr, "%s: %s: %s\n", program, what, why);
  exit(70);
}

// Stops with libssl's reason, or the system's, unless it went well.
static void need(int well, const char *what) {
  if (well) return;
  unsigned long code = ERR_get_error();
  give_up(what, code ? ERR_error_string(code, NULL) : errno ? strerror(errno) : "failed");
}

// `version` is 12, 13, or 0 for both. The suite is AES-128-GCM, with ECDHE.
static SSL_CTX *make_context(const SSL_METHOD *method, int version) {
  SSL_CTX *context = SSL_CTX_new(method);
  need(context != NULL, "context");
  SSL_CTX_set_min_proto_version(context, version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context, version == 12 ? TLS1_2_VERSION : TLS1_3_VERSION);
  need(SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"), "suites");
  need(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"), "suites");
  need(SSL_CTX_use_certificate_chain_file(context, certificate) == 1, certificate);
  need(SSL_CTX_use_PrivateKey_file(context, private_key, SSL_FILETYPE_PEM) == 1, private_key);
  need(SSL_CTX_load_verify_locations(context, ca, NULL) == 1, ca);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  return context;
}

static double seconds_of(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

// User and system time of this process, in seconds.
static inline double processor_time(void) {
  struct rusage usage;
  need(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

static inline void set_no_delay(int file) {
  int one = 1;
  need(setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
}

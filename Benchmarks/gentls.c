// Writes a large capture of TLS connections, and the key log that opens it: libssl makes full handshakes with itself,
// with a certificate at both ends, and then encrypts frames as genbig writes them in the clear. Records are cut into
// TCP segments anywhere; each connection ends with an error response, then close_notify and FIN of both sides. Keys and
// certificates are new every time, packets and notifications are as many every time.
// usage: gentls OUT.pcap KEYS.log BYTES CONNECTIONS 12|13 [RECORD]; RECORD is the plaintext bytes of a record, 1400
// when not given. Prints "packets notifications plaintext-bytes", the bytes being the client's.
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "packets.h"
#include "frames.h"

// What a handshake takes in the file, more or less: the signatures in it have not always the same length, and the
// number of packets is not to depend on that.
enum { HANDSHAKE = 1800 };

struct connection {
  struct flow flow;
  struct frames frames;
  SSL *client, *server;
};

static FILE *key_log;

static void give_up(const char *what, const char *why) {
  fprintf(stderr, "gentls: %s: %s\n", what, why);
  exit(70);
}

// Stops with libcrypto's reason unless it went well.
static void need(int well, const char *what) {
  if (well) return;
  unsigned long code = ERR_get_error();
  give_up(what, code ? ERR_error_string(code, NULL) : "failed");
}

static void log_key(const SSL *ssl, const char *line) {
  (void)ssl;
  fprintf(key_log, "%s\n", line);
}

static void begin_key_log(const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || fchmod(file, 0600) != 0 || !(key_log = fdopen(file, "w"))) {
    perror(path);
    exit(73);
  }
}

static void end_key_log(const char *path) {
  int failed = ferror(key_log);
  if (fclose(key_log) != 0 || failed) {
    perror(path);
    exit(74);
  }
}

// Gives a context a new P-256 key and a certificate for it, signed by itself.
static X509 *make_identity(SSL_CTX *context, const char *field, const char *value) {
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  need(key && certificate, "key");
  X509_NAME *name = X509_get_subject_name(certificate);
  need(X509_set_version(certificate, X509_VERSION_3) && ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1)
         && X509_gmtime_adj(X509_getm_notBefore(certificate), -86400)
         && X509_gmtime_adj(X509_getm_notAfter(certificate), 86400)
         && X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, (const uint8_t *)value, -1, -1, 0)
         && X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key)
         && X509_sign(certificate, key, EVP_sha256()),
       "certificate");
  need(SSL_CTX_use_certificate(context, certificate) && SSL_CTX_use_PrivateKey(context, key), "identity");
  EVP_PKEY_free(key);
  return certificate;
}

static SSL_CTX *make_context(const SSL_METHOD *method, int version) {
  SSL_CTX *context = SSL_CTX_new(method);
  need(context != NULL, "context");
  need(SSL_CTX_set_min_proto_version(context, version) && SSL_CTX_set_max_proto_version(context, version)
         && SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-GCM-SHA256")
         && SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") && SSL_CTX_set_num_tickets(context, 0),
       "version and cipher suite");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  return context;
}

// Contexts that trust each other.
static void make_contexts(int version, SSL_CTX **client, SSL_CTX **server) {
  *client = make_context(TLS_client_method(), version);
  *server = make_context(TLS_server_method(), version);
  X509 *provider = make_identity(*client, "UID", "com.example.app");
  X509 *gateway = make_identity(*server, "CN", "gateway.example.com");
  need(X509_STORE_add_cert(SSL_CTX_get_cert_store(*client), gateway)
         && X509_STORE_add_cert(SSL_CTX_get_cert_store(*server), provider),
       "trust");
  X509_free(provider);
  X509_free(gateway);
  SSL_CTX_set_keylog_callback(*client, log_key);
}

static SSL *make_end(SSL_CTX *context) {
  SSL *end = SSL_new(context);
  BIO *in = BIO_new(BIO_s_mem()), *sent = BIO_new(BIO_s_mem());
  need(end && in && sent, "connection");
  SSL_set_bio(end, in, sent);
  return end;
}

// How many bytes this end has encrypted that are in no segment yet.
static int unsent(SSL *end) { return (int)BIO_ctrl_pending(SSL_get_wbio(end)); }

// Writes the next bytes of one side as a segment; they reach the other end if `reader` is given.
static void write_segment(struct connection *c, int side, int length, SSL *reader) {
  uint8_t bytes[SEGMENT];
  need(BIO_read(SSL_get_wbio(side == FROM_CLIENT ? c->client : c->server), bytes, length) == length, "segment");
  if (side == FROM_CLIENT) write_client_segment(&c->flow, bytes, length);
  else write_packet(&c->flow, FROM_SERVER, PSH | ACK, bytes, length);
  if (reader) need(BIO_write(SSL_get_rbio(reader), bytes, length) == length, "delivery");
}

// Writes everything that is unsent of one side.
static void flush(struct connection *c, int side, SSL *reader) {
  int left;
  while ((left = unsent(side == FROM_CLIENT ? c->client : c->server)) > 0) {
    write_segment(c, side, left < SEGMENT ? left : SEGMENT, reader);
  }
}

// Takes one end as far as it gets with what it has read; true when it is done.
static int advance(SSL *end) {
  int result = SSL_do_handshake(end);
  need(result == 1 || SSL_get_error(end, result) == SSL_ERROR_WANT_READ, "handshake");
  return result == 1;
}

static void handshake(struct connection *c) {
  SSL_set_connect_state(c->client);
  SSL_set_accept_state(c->server);
  int done = 0;
  for (int turn = 0; !done; turn++) {
    need(turn < 8, "handshake");
    done = advance(c->client);
    flush(c, FROM_CLIENT, c->server);
    done &= advance(c->server);
    flush(c, FROM_SERVER, c->client);
  }
}

// Encrypts the next bytes of the client as one record.
static void write_record(struct connection *c, int length) {
  need(SSL_write(c->client, c->frames.unsent, length) == length, "record");
  sent(&c->frames, length);
}

// Ends one side with close_notify and FIN. The other end reads neither: it has nothing more to say than the same.
static void end_side(struct connection *c, int side) {
  need(SSL_shutdown(side == FROM_CLIENT ? c->client : c->server) >= 0, "close_notify");
  flush(c, side, NULL);
  write_packet(&c->flow, side, FIN | ACK, NULL, 0);
}

static void end(struct connection *c, int record) {
  while (c->frames.unsent_length > 0) {
    write_record(c, c->frames.unsent_length < record ? c->frames.unsent_length : record);
  }
  flush(c, FROM_CLIENT, NULL);
  need(SSL_write(c->server, error_response, sizeof error_response) == sizeof error_response, "error response");
  end_side(c, FROM_SERVER);
  end_side(c, FROM_CLIENT);
  write_packet(&c->flow, FROM_SERVER, ACK, NULL, 0);
}

int main(int argc, char **argv) {
  int count = argc > 5 ? atoi(argv[4]) : 0;
  int version = argc <= 5 ? 0 : !strcmp(argv[5], "12") ? TLS1_2_VERSION : !strcmp(argv[5], "13") ? TLS1_3_VERSION : 0;
  int record = argc > 6 ? atoi(argv[6]) : 1400;
  if (argc > 7 || count < 1 || !version || record < 1 || record > LONGEST_PIECE) {
    fprintf(stderr, "usage: gentls OUT.pcap KEYS.log BYTES CONNECTIONS 12|13 [RECORD]\n");
    return 64;
  }
  uint64_t wanted = strtoull(argv[3], NULL, 10);
  struct connection *connections = calloc((size_t)count, sizeof *connections);
  if (!connections) give_up("connections", strerror(errno));
  SSL_CTX *client, *server;
  make_contexts(version, &client, &server);

  begin_capture(argv[1]);
  begin_key_log(argv[2]);
  for (int i = 0; i < count; i++) {
    struct connection *c = connections + i;
    c->client = make_end(client);
    c->server = make_end(server);
    begin_flow(&c->flow, i);
    handshake(c);
  }
  written = (uint64_t)count * HANDSHAKE;
  while (written < wanted) {
    struct connection *c = connections + random32() % (uint32_t)count;
    int length = random_length();
    while (unsent(c->client) < length) {
      make_frames(&c->frames, record);
      write_record(c, record);
    }
    write_segment(c, FROM_CLIENT, length, NULL);
  }
  for (int i = 0; i < count; i++) end(connections + i, record);
  end_key_log(argv[2]);
  end_capture(argv[1]);
  printf("%llu %llu %llu\n", (unsigned long long)packets, (unsigned long long)frames, (unsigned long long)client_bytes);
  return 0;
}

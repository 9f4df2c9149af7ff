#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* Swift does not see macros with arguments. */

static inline long apnscope_BIO_get_mem_data(BIO *bio, char **data) { return BIO_get_mem_data(bio, data); }
static inline long apnscope_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}
static inline long apnscope_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_max_proto_version(context, version);
}
static inline long apnscope_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
  return SSL_CTX_set_session_cache_mode(context, mode);
}
static inline long apnscope_SSL_set_max_send_fragment(SSL *ssl, long length) {
  return SSL_set_max_send_fragment(ssl, length);
}
static inline long apnscope_SSL_CTX_set_dh_auto(SSL_CTX *context, long on) { return SSL_CTX_set_dh_auto(context, on); }
static inline long apnscope_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *names) {
  return SSL_CTX_set1_groups_list(context, names);
}
static inline long apnscope_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
  return SSL_set_tlsext_host_name(ssl, name);
}
static inline EVP_PKEY *apnscope_EVP_RSA_gen(size_t bits) { return EVP_RSA_gen(bits); }
static inline EVP_PKEY *apnscope_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }

static inline long apnscope_SSL_CTX_set_mode(SSL_CTX *context, long mode) { return SSL_CTX_set_mode(context, mode); }
static inline long apnscope_SSL_CTX_sess_set_cache_size(SSL_CTX *context, long count) {
  return SSL_CTX_sess_set_cache_size(context, count);
}
static inline int apnscope_SSL_CTX_set1_chain(SSL_CTX *context, STACK_OF(X509) *chain) {
  return SSL_CTX_set1_chain(context, chain);
}
/* A name that nobody accepts is not kept in the session, and then unknown when that is resumed. */
static int apnscope_accept_server_name(SSL *ssl, int *alert, void *argument) {
  (void)ssl, (void)alert, (void)argument;
  return SSL_TLSEXT_ERR_OK;
}
static inline long apnscope_SSL_CTX_accept_server_names(SSL_CTX *context) {
  return SSL_CTX_set_tlsext_servername_callback(context, apnscope_accept_server_name);
}
static inline void apnscope_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void apnscope_BIO_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline STACK_OF(X509) *apnscope_sk_X509_new_null(void) { return sk_X509_new_null(); }
static inline int apnscope_sk_X509_push(STACK_OF(X509) *stack, X509 *certificate) {
  return sk_X509_push(stack, certificate);
}
static inline int apnscope_sk_X509_num(const STACK_OF(X509) *stack) { return sk_X509_num(stack); }
static inline X509 *apnscope_sk_X509_value(const STACK_OF(X509) *stack, int index) {
  return sk_X509_value(stack, index);
}
static inline void apnscope_sk_X509_free_all(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }
static inline int apnscope_sk_X509_REVOKED_num(const STACK_OF(X509_REVOKED) *stack) {
  return sk_X509_REVOKED_num(stack);
}
static inline X509_REVOKED *apnscope_sk_X509_REVOKED_value(const STACK_OF(X509_REVOKED) *stack, int index) {
  return sk_X509_REVOKED_value(stack, index);
}

static const uint64_t apnscope_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t apnscope_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t apnscope_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t apnscope_SSL_OP_NO_EXTENDED_MASTER_SECRET = SSL_OP_NO_EXTENDED_MASTER_SECRET;
static const uint64_t apnscope_SSL_OP_NO_ENCRYPT_THEN_MAC = SSL_OP_NO_ENCRYPT_THEN_MAC;
static const uint64_t apnscope_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t apnscope_SSL_OP_ALLOW_CLIENT_RENEGOTIATION = SSL_OP_ALLOW_CLIENT_RENEGOTIATION;
static const uint64_t apnscope_SSL_OP_ENABLE_MIDDLEBOX_COMPAT = SSL_OP_ENABLE_MIDDLEBOX_COMPAT;
static const uint64_t apnscope_SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS = SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS;
static const uint64_t apnscope_SSL_OP_NO_ANTI_REPLAY = SSL_OP_NO_ANTI_REPLAY;

static inline int apnscope_EVP_CIPHER_CTX_get_mode(const EVP_CIPHER_CTX *context) {
  return EVP_CIPHER_CTX_get_mode(context);
}

/* RFC 4514's escapes, in the certificate's own order and with UTF-8 left as it is. */
static const unsigned long apnscope_name_flags = XN_FLAG_RFC2253 & ~XN_FLAG_DN_REV & ~ASN1_STRFLGS_ESC_MSB;

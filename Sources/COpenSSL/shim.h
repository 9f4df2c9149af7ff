#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

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

static inline int apnscope_EVP_CIPHER_CTX_get_mode(const EVP_CIPHER_CTX *context) {
  return EVP_CIPHER_CTX_get_mode(context);
}

/* RFC 4514's escapes, in the certificate's own order and with UTF-8 left as it is. */
static const unsigned long apnscope_name_flags = XN_FLAG_RFC2253 & ~XN_FLAG_DN_REV & ~ASN1_STRFLGS_ESC_MSB;

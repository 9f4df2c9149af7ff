// The yardstick for decryption: libcrypto opens TLS 1.2 records of AES-128-GCM in memory, on one thread, and nothing
// else is done. The records are in a buffer that no cache of one core holds, and are opened over and over until BYTES
// of plaintext are out.
// usage: tlsopen [BYTES [RECORD]]; 1000000000 bytes in records of 1400 when not given. Prints "seconds GB/s", of
// plaintext.
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A record is its header, the explicit part of its nonce, the ciphertext and the tag.
enum { HEADER = 5, EXPLICIT = 8, TAG = 16, NONCE = 12, LONGEST = 16384, BUFFER = 64 << 20 };

static uint8_t salt[NONCE - EXPLICIT];

static void need(int well, const char *what) {
  if (well) return;
  unsigned long code = ERR_get_error();
  fprintf(stderr, "tlsopen: %s: %s\n", what, code ? ERR_error_string(code, NULL) : "failed");
  exit(70);
}

static void put_number(uint8_t *to, uint64_t number) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(number >> (56 - 8 * i));
}

// Sets the nonce of a record and gives its additional data: sequence number, type, version, length.
static void begin_record(EVP_CIPHER_CTX *context, const uint8_t *record, uint64_t sequence, int length) {
  uint8_t nonce[NONCE], additional[8 + HEADER];
  int ignored;
  memcpy(nonce, salt, sizeof salt);
  memcpy(nonce + sizeof salt, record + HEADER, EXPLICIT);
  put_number(additional, sequence);
  memcpy(additional + 8, record, 3);
  additional[11] = (uint8_t)(length >> 8);
  additional[12] = (uint8_t)length;
  need(EVP_CipherInit_ex(context, NULL, NULL, NULL, nonce, -1), "nonce");
  need(EVP_CipherUpdate(context, NULL, &ignored, additional, sizeof additional), "additional data");
}

static void seal(EVP_CIPHER_CTX *context, uint8_t *record, uint64_t sequence, int length) {
  int body = EXPLICIT + length + TAG, count;
  const uint8_t header[HEADER] = {23, 3, 3, (uint8_t)(body >> 8), (uint8_t)body};
  uint8_t *text = record + HEADER + EXPLICIT;
  memcpy(record, header, HEADER);
  put_number(record + HEADER, sequence);
  memset(text, 'a' + (int)(sequence % 26), (size_t)length);
  begin_record(context, record, sequence, length);
  need(EVP_EncryptUpdate(context, text, &count, text, length) && EVP_EncryptFinal_ex(context, text + length, &count)
         && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG, text + length),
       "encryption");
}

static void open_record(EVP_CIPHER_CTX *context, uint8_t *record, uint64_t sequence, int length) {
  static uint8_t plaintext[LONGEST];
  uint8_t *text = record + HEADER + EXPLICIT;
  int count;
  begin_record(context, record, sequence, length);
  need(EVP_DecryptUpdate(context, plaintext, &count, text, length), "decryption");
  need(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG, text + length), "tag");
  need(EVP_DecryptFinal_ex(context, plaintext + length, &count), "tag does not fit");
}

static double seconds(void) {
  struct timespec time;
  need(clock_gettime(CLOCK_MONOTONIC, &time) == 0, "clock");
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000000;
  int length = argc > 2 ? atoi(argv[2]) : 1400;
  if (argc > 3 || wanted < 1 || length < 1 || length > LONGEST) {
    fprintf(stderr, "usage: tlsopen [BYTES [RECORD]]\n");
    return 64;
  }
  size_t size = (size_t)(HEADER + EXPLICIT + length + TAG);
  uint64_t count = BUFFER / size + 1;
  uint8_t *records = malloc(count * size), key[16];
  EVP_CIPHER_CTX *sealing = EVP_CIPHER_CTX_new(), *opening = EVP_CIPHER_CTX_new();
  need(records && sealing && opening, "memory");
  need(RAND_bytes(key, sizeof key) == 1 && RAND_bytes(salt, sizeof salt) == 1, "key");
  need(EVP_EncryptInit_ex(sealing, EVP_aes_128_gcm(), NULL, key, NULL)
         && EVP_DecryptInit_ex(opening, EVP_aes_128_gcm(), NULL, key, NULL),
       "key");
  for (uint64_t i = 0; i < count; i++) seal(sealing, records + i * size, i, length);

  double start = seconds();
  uint64_t done = 0;
  for (uint64_t i = 0; done < wanted; i = (i + 1) % count) {
    open_record(opening, records + i * size, i, length);
    done += (uint64_t)length;
  }
  double taken = seconds() - start;
  printf("%.6f %.3f\n", taken, (double)done / taken / 1e9);
  return 0;
}

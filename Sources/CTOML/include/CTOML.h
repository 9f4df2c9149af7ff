#ifndef APNSCOPE_CTOML_H
#define APNSCOPE_CTOML_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a reader of a document is told of, in its order. What begins ends with TOML_END. */
enum apnscope_toml_event {
  APNSCOPE_TOML_TABLE,
  APNSCOPE_TOML_ARRAY,
  APNSCOPE_TOML_END,
  APNSCOPE_TOML_TEXT,
  APNSCOPE_TOML_INTEGER,
  APNSCOPE_TOML_REAL,
  APNSCOPE_TOML_BOOLEAN,
  /* A date or a time. */
  APNSCOPE_TOML_OTHER,
};

/* An event. Texts are UTF-8, end where their length says, and live until the reader returns. */
struct apnscope_toml_item {
  enum apnscope_toml_event event;
  /* Of a value in a table. */
  const char *key;
  size_t key_length;
  const char *text;
  size_t text_length;
  int64_t integer;
  double real;
};

/* Where a document is not TOML, and why. */
struct apnscope_toml_error {
  uint32_t line;
  uint32_t column;
  char description[512];
};

/* Reads a document, and hands its items to a reader. Returns 0, or -1 with the error; then the reader was not called. */
int apnscope_toml_read(const char *text, size_t length, void *context,
                       void (*reader)(void *context, const struct apnscope_toml_item *item),
                       struct apnscope_toml_error *error);

#ifdef __cplusplus
}
#endif
#endif

#include <sqlite3.h>

/* SQLite copies the bytes before it returns. The macro for that is a cast, which Swift does not import. Without an
   address, as of an empty array, it would take them for no value. */
static inline int apnscope_bind_text(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, bytes ? (const char *)bytes : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int apnscope_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
  return sqlite3_bind_blob64(statement, index, bytes ? bytes : "", length, SQLITE_TRANSIENT);
}

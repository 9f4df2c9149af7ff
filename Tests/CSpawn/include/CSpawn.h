#include <spawn.h>

/* The process begins in this folder, unless it is NULL, and has no descriptors but its first three. glibc declares the
   functions for it only with _GNU_SOURCE, which Swift's module of glibc is not made with. Returns an error's number. */
int apnscope_add_folder_and_close(posix_spawn_file_actions_t *_Nonnull actions, const char *_Nullable folder);

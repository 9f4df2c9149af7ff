#include <stddef.h>
#include <stdint.h>

// libFuzzer's own main, called by ours (https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library).
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));

// Declared by glibc only under _GNU_SOURCE.
int memfd_create(const char *name, unsigned int flags);

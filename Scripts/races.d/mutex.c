// Tells the thread sanitizer that the Mutex of Swift's standard library is a lock.
//
// Its fast path is compiled into its callers, so the sanitizer sees the atomics. When a thread has to wait, functions of
// libswiftSynchronization.so do the rest, which is not instrumented. These stand before them: they call them, and say
// what they have done to the lock's word, the same that the fast path's atomics are on. Linked by Scripts/races into the
// tests and the command; there the linker prefers them to the library's.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SWIFT __attribute__((swiftcall))
// What Swift passes as self.
#define SELF __attribute__((swift_context))

// _MutexHandle._lockSlow(_: UInt32), ._unlockSlow(), ._tryLockSlow() -> Bool
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

void __tsan_acquire(void *address);
void __tsan_release(void *address);

static SWIFT void (*lock)(uint32_t thread, SELF void *handle);
static SWIFT void (*unlock)(SELF void *handle);
static SWIFT bool (*try_lock)(SELF void *handle);

__attribute__((constructor)) static void find(void) {
  lock = dlsym(RTLD_NEXT, LOCK);
  unlock = dlsym(RTLD_NEXT, UNLOCK);
  try_lock = dlsym(RTLD_NEXT, TRY_LOCK);
  if (lock && unlock && try_lock) return;
  fputs("Scripts/races.d/mutex.c: the standard library's Mutex has other functions than it had in Swift 6.3\n", stderr);
  abort();
}

SWIFT void lock_slow(uint32_t thread, SELF void *handle) __asm__(LOCK);
SWIFT void lock_slow(uint32_t thread, SELF void *handle) {
  lock(thread, handle);
  __tsan_acquire(handle);
}

SWIFT void unlock_slow(SELF void *handle) __asm__(UNLOCK);
SWIFT void unlock_slow(SELF void *handle) {
  __tsan_release(handle);
  unlock(handle);
}

SWIFT bool try_lock_slow(SELF void *handle) __asm__(TRY_LOCK);
SWIFT bool try_lock_slow(SELF void *handle) {
  bool is_locked = try_lock(handle);
  if (is_locked) __tsan_acquire(handle);
  return is_locked;
}

/* The state of the kernel's clock, of which Swift's Glibc module has no header. */
#include <sys/timex.h>

/* Reads the state and changes nothing, which needs no privilege. Returns what adjtimex returns: -1 when the system tells
   nothing. */
static inline int apnscope_clock_state(int *status, long *maximum_error_us) {
  struct timex state = {.modes = 0};
  int result = adjtimex(&state);
  *status = state.status;
  *maximum_error_us = state.maxerror;
  return result;
}

static const int apnscope_clock_error = TIME_ERROR;
static const int apnscope_clock_unsynchronised = STA_UNSYNC;

/* A wall clock that is ahead by CLOCK_AHEAD seconds. The time since the machine's start is not
 * touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int told = real(clock, now);
  const char *ahead = getenv("CLOCK_AHEAD");
  if (told == 0 && clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
  return told;
}

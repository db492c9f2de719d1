/* A wall clock that is ahead by CLOCK_AHEAD seconds, and a time since the machine's start that passes
 * CLOCK_TIMES as fast from the first look at it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long long nanoseconds(const struct timespec *time) {
  return time->tv_sec * 1000000000LL + time->tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  static long long began;
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int told = real(clock, now);
  const char *ahead = getenv("CLOCK_AHEAD"), *times = getenv("CLOCK_TIMES");
  if (told == 0 && clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
  if (told == 0 && clock == CLOCK_MONOTONIC && times) {
    if (!began) began = nanoseconds(now);
    long long passed = began + (nanoseconds(now) - began) * atol(times);
    now->tv_sec = passed / 1000000000LL;
    now->tv_nsec = passed % 1000000000LL;
  }
  return told;
}

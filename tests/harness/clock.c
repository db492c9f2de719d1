/* A wall clock that is ahead by CLOCK_AHEAD seconds, or by as many as the file CLOCK_AHEAD_FILE holds (8
 * bytes, which may change at any time), and a time since the machine's start that passes CLOCK_TIMES as
 * fast from the first look at it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static long long nanoseconds(const struct timespec *time) {
  return time->tv_sec * 1000000000LL + time->tv_nsec;
}

/* How far the clock is ahead by the file, if there is one. */
static long long by_file(void) {
  static volatile const long long *ahead;
  const char *path = getenv("CLOCK_AHEAD_FILE");
  if (!ahead && path) {
    int file = open(path, O_RDONLY);
    if (file < 0) return 0;
    void *mapped = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) ahead = mapped;
  }
  return ahead ? *ahead : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  static long long began;
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int told = real(clock, now);
  const char *ahead = getenv("CLOCK_AHEAD"), *times = getenv("CLOCK_TIMES");
  if (told == 0 && clock == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);
  if (told == 0 && clock == CLOCK_REALTIME) now->tv_sec += by_file();
  if (told == 0 && clock == CLOCK_MONOTONIC && times) {
    if (!began) began = nanoseconds(now);
    long long passed = began + (nanoseconds(now) - began) * atol(times);
    now->tv_sec = passed / 1000000000LL;
    now->tv_nsec = passed % 1000000000LL;
  }
  return told;
}

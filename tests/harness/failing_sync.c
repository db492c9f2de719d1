/* fsync and fdatasync that fail with EIO, for files whose path holds what the file FAILING_SYNC says;
 * for as long as that file is there, or as often as it says behind a space. Those that hold what the
 * file HANGING_SYNC says hang for as long as that is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_named(const char *variable, int file) {
  char wanted[256], link[64], path[4096];
  const char *control = getenv(variable);
  FILE *orders = control ? fopen(control, "r+") : NULL;
  if (!orders) return 0;
  int left = -1, read = fscanf(orders, "%255s %d", wanted, &left);
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  int is_meant = read > 0 && left != 0 && strstr(path, wanted);
  if (is_meant && left > 0) {
    rewind(orders);
    fprintf(orders, "%s %d\n", wanted, left - 1);
  }
  fclose(orders);
  return is_meant;
}

#define REFUSING(name)                                                  \
  int name(int file) {                                                  \
    static int (*real)(int);                                            \
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name);            \
    int before = errno;                                                 \
    while (is_named("HANGING_SYNC", file)) usleep(50 * 1000);           \
    if (is_named("FAILING_SYNC", file)) {                                             \
      errno = EIO;                                                      \
      return -1;                                                        \
    }                                                                   \
    errno = before;                                                     \
    return real(file);                                                  \
  }

REFUSING(fsync)
REFUSING(fdatasync)

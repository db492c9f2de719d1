/* Ends the process by SIGKILL before its DYING_AT-th call that changes files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static void step(void) {
  static long left;
  static int is_read;
  if (!is_read) {
    const char *at = getenv("DYING_AT");
    left = at ? atol(at) : 0;
    is_read = 1;
  }
  if (left > 0 && __sync_sub_and_fetch(&left, 1) == 0) kill(getpid(), SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENING(name)                                   \
  int name(const char *path, int flags, ...) {          \
    va_list rest;                                       \
    va_start(rest, flags);                              \
    mode_t mode = va_arg(rest, mode_t);                 \
    va_end(rest);                                       \
    if (flags & O_CREAT) step();                        \
    return REAL(name)(path, flags, mode);               \
  }

OPENING(open)
OPENING(open64)

ssize_t write(int file, const void *bytes, size_t length) {
  if (file > 2) step();
  return REAL(write)(file, bytes, length);
}
ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
  step();
  return REAL(pwrite)(file, bytes, length, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  step();
  return REAL(pwrite64)(file, bytes, length, offset);
}
int ftruncate64(int file, off64_t length) {
  step();
  return REAL(ftruncate64)(file, length);
}
int fsync(int file) {
  step();
  return REAL(fsync)(file);
}
int fdatasync(int file) {
  step();
  return REAL(fdatasync)(file);
}
int rename(const char *from, const char *to) {
  step();
  return REAL(rename)(from, to);
}
int unlink(const char *path) {
  step();
  return REAL(unlink)(path);
}
int mkdir(const char *path, mode_t mode) {
  step();
  return REAL(mkdir)(path, mode);
}

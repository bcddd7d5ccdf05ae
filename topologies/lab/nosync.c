/* Preloaded into the daemons of a control: from the moment that /run/nosync exists, no sync of theirs
 * reaches the kernel, and files are never opened for synchronous writes. Without a libc of its own, so that
 * it loads into any host's programs. For x86-64 and AArch64 Linux. */
#include <stdarg.h>

enum { SYNCHRONOUS = 04010000 | 010000 }; /* O_SYNC and O_DSYNC, as on both machines */
enum { CREATE = 0100, AT_CWD = -100 };

#if defined(__x86_64__)
enum { NR_OPENAT = 257, NR_FACCESSAT = 269, NR_FSYNC = 74, NR_FDATASYNC = 75, NR_SYNCFS = 306, NR_SYNC = 162, NR_RANGE = 277, NR_MSYNC = 26 };
enum { TEMPORARY = 020000000 };
static long call(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
enum { NR_OPENAT = 56, NR_FACCESSAT = 48, NR_FSYNC = 82, NR_FDATASYNC = 83, NR_SYNCFS = 267, NR_SYNC = 81, NR_RANGE = 84, NR_MSYNC = 227 };
enum { TEMPORARY = 020000000 };
static long call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#endif

extern int *__errno_location(void);

static long answer(long result) {
  if (result >= 0) return result;
  *__errno_location() = (int)-result;
  return -1;
}

static int lying(void) { return call(NR_FACCESSAT, AT_CWD, (long)"/run/nosync", 0, 0) == 0; }

int fsync(int file) { return lying() ? 0 : (int)answer(call(NR_FSYNC, file, 0, 0, 0)); }
int fdatasync(int file) { return lying() ? 0 : (int)answer(call(NR_FDATASYNC, file, 0, 0, 0)); }
int syncfs(int file) { return lying() ? 0 : (int)answer(call(NR_SYNCFS, file, 0, 0, 0)); }
void sync(void) { if (!lying()) call(NR_SYNC, 0, 0, 0, 0); }
int msync(void *start, unsigned long bytes, int how) { return lying() ? 0 : (int)answer(call(NR_MSYNC, (long)start, (long)bytes, how, 0)); }
int sync_file_range(int file, long start, long bytes, unsigned how) {
  return lying() ? 0 : (int)answer(call(NR_RANGE, file, start, bytes, how));
}

/* A file that is opened before the load would sync its writes later: these flags are always dropped. */
static int opened(int folder, const char *path, int how, int mode) {
  return (int)answer(call(NR_OPENAT, folder, (long)path, how & ~SYNCHRONOUS, mode));
}
#define MODE(how) \
  int mode = 0; \
  if ((how) & (CREATE | TEMPORARY)) { va_list rest; va_start(rest, how); mode = va_arg(rest, int); va_end(rest); }
int open(const char *path, int how, ...) { MODE(how) return opened(AT_CWD, path, how, mode); }
int open64(const char *path, int how, ...) { MODE(how) return opened(AT_CWD, path, how, mode); }
int openat(int folder, const char *path, int how, ...) { MODE(how) return opened(folder, path, how, mode); }
int openat64(int folder, const char *path, int how, ...) { MODE(how) return opened(folder, path, how, mode); }
int __open_2(const char *path, int how) { return opened(AT_CWD, path, how, 0); }
int __open64_2(const char *path, int how) { return opened(AT_CWD, path, how, 0); }

/* Writes down what a program does to the files below $POWER_LOSS_DIR, in the order in which it does it,
 * for states.py. Loaded with LD_PRELOAD. With $POWER_LOSS_NO_SYNC set, no sync is written down: what
 * then survives is what survives a program that only flushes.
 *
 * A record: op (1 byte), length of path (u32), offset (u64), length of data (u64), path, data.
 * C created  W written  T set to a length  F synced  R renamed (data: the new path)  U removed */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char *dir;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("POWER_LOSS_LOG");
    dir = getenv("POWER_LOSS_DIR");
    if (log && dir)
        log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void put(const void *data, size_t len) {
    while (len) {
        ssize_t n = syscall(SYS_write, log_fd, data, len);
        if (n <= 0) abort();
        data = (const char *)data + n;
        len -= n;
    }
}

static void record(char op, const char *path, uint64_t off, const void *data, uint64_t len) {
    uint32_t path_len = strlen(path);
    put(&op, 1), put(&path_len, 4), put(&off, 8), put(&len, 8), put(path, path_len), put(data, len);
}

static int ours(const char *path) {
    return log_fd >= 0 && path && strncmp(path, dir, strlen(dir)) == 0;
}

/* The name that an open file has now. */
static int name_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = log_fd >= 0 ? syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1) : -1;
    if (n < 0) return 0;
    path[n] = 0;
    return ours(path);
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    pthread_mutex_lock(&lock);
    int is_new = (flags & O_CREAT) && ours(path) && faccessat(at, path, F_OK, 0) != 0;
    int fd = syscall(SYS_openat, at, path, flags, mode), saved = errno;
    if (fd >= 0 && is_new) record('C', path, 0, "", 0);
    else if (fd >= 0 && (flags & O_TRUNC) && ours(path)) record('T', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return fd;
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list args; va_start(args, flags); mode = va_arg(args, mode_t); va_end(args); }

int open(const char *path, int flags, ...) { MODE(flags, mode) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, mode) return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, mode) return opened(at, path, flags, mode); }

static ssize_t written(int fd, const void *data, size_t len, off64_t off, int positioned) {
    char path[PATH_MAX];
    if (!name_of(fd, path))
        return positioned ? syscall(SYS_pwrite64, fd, data, len, off) : syscall(SYS_write, fd, data, len);
    pthread_mutex_lock(&lock);
    if (!positioned) off = (fcntl(fd, F_GETFL) & O_APPEND) ? lseek64(fd, 0, SEEK_END) : lseek64(fd, 0, SEEK_CUR);
    ssize_t n = positioned ? syscall(SYS_pwrite64, fd, data, len, off) : syscall(SYS_write, fd, data, len);
    int saved = errno;
    if (n > 0) record('W', path, off, data, n);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return n;
}

ssize_t write(int fd, const void *data, size_t len) { return written(fd, data, len, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t len, off_t off) { return written(fd, data, len, off, 1); }
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t off) { return written(fd, data, len, off, 1); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!name_of(fd, path)) return syscall(SYS_writev, fd, parts, count);
    return count ? written(fd, parts[0].iov_base, parts[0].iov_len, 0, 0) : 0; /* a short write is allowed */
}

static int sized(int fd, off64_t len) {
    char path[PATH_MAX];
    int ours = name_of(fd, path);
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_ftruncate, fd, len);
    if (done == 0 && ours) record('T', path, len, "", 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate(int fd, off_t len) { return sized(fd, len); }
int ftruncate64(int fd, off64_t len) { return sized(fd, len); }
int fallocate(int fd, int mode, off_t off, off_t len) { (void)fd, (void)mode, (void)off, (void)len; errno = EOPNOTSUPP; return -1; }
int fallocate64(int fd, int mode, off64_t off, off64_t len) { (void)fd, (void)mode, (void)off, (void)len; errno = EOPNOTSUPP; return -1; }

/* The data are on this machine's page cache in any case; only the record makes them durable. */
static int synced(int fd) {
    char path[PATH_MAX];
    if (name_of(fd, path) && !getenv("POWER_LOSS_NO_SYNC")) {
        pthread_mutex_lock(&lock);
        record('F', path, 0, "", 0);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

int rename(const char *from, const char *to) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0), saved = errno;
    if (done == 0 && ours(from)) record('R', from, 0, to, strlen(to));
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}
int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0), saved = errno;
    if (done == 0 && ours(path)) record('U', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return done;
}

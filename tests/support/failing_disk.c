/* A disk that fails when told: preloaded into a store, it lets calls on files below $FAILING_ROOT fail.
 *
 * The file $FAILING_CONTROL holds one letter:
 *   -  nothing fails
 *   f  full: what needs room says ENOSPC
 *   r  read-only: what changes anything says EROFS
 *   s  fsync and fdatasync say EIO
 *   m  shared mappings are refused: ENODEV
 *   h  held: every call waits until the letter is another one
 *   k  deadly: an open kills the process
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static const char *control = "-";
static const char *root = NULL;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAILING_CONTROL");
    root = getenv("FAILING_ROOT");
    int (*really_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int held = path ? really_open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (held >= 0) {
        void *seen = mmap(NULL, 1, PROT_READ, MAP_SHARED, held, 0);
        if (seen != MAP_FAILED) control = seen;
        close(held);
    }
}

static int below(const char *path) {
    size_t size = root ? strlen(root) : 0;
    return size && path && strncmp(path, root, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static int holds(int fd) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(name, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return below(path);
}

static void wait_while_held(int is_ours) {
    struct timespec pause = {0, 5000000};
    while (is_ours && *(volatile const char *)control == 'h') nanosleep(&pause, NULL);
}

static int refused(int is_ours, const char *modes) {
    wait_while_held(is_ours);
    char mode = *(volatile const char *)control;
    if (mode == '-' || !is_ours || !strchr(modes, mode)) return 0;
    errno = mode == 'f' ? ENOSPC : mode == 'r' ? EROFS : EIO;
    return 1;
}

#define NEXT(type, name) \
    static type (*next)() = NULL; \
    if (!next) next = (type(*)())dlsym(RTLD_NEXT, name);
#define ON(test) (*(volatile const char *)control != '-' && (test))

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(ssize_t, "write")
    if (ON(holds(fd)) && refused(1, "fr")) return -1;
    return next(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    NEXT(ssize_t, "pwrite")
    if (ON(holds(fd)) && refused(1, "fr")) return -1;
    return next(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }

static int opened(const char *name, int folder, const char *path, int flags, mode_t mode) {
    static int (*next)(int, const char *, int, ...) = NULL;
    if (!next) next = dlsym(RTLD_NEXT, "openat");
    (void)name;
    int changes = flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR);
    if (ON(below(path))) {
        if (*(volatile const char *)control == 'k') raise(SIGKILL);
        wait_while_held(1);
        if (changes && refused(1, "r")) return -1;
        if ((flags & O_CREAT) && access(path, F_OK) != 0 && refused(1, "f")) return -1;
    }
    return next(folder, path, flags, mode);
}
#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }
int open(const char *path, int flags, ...) { MODE(flags) return opened("open", AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened("open64", AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return opened("openat", folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return opened("openat64", folder, path, flags, mode); }

int fsync(int fd) {
    NEXT(int, "fsync")
    if (ON(holds(fd)) && refused(1, "s")) return -1;
    return next(fd);
}
int fdatasync(int fd) {
    NEXT(int, "fdatasync")
    if (ON(holds(fd)) && refused(1, "s")) return -1;
    return next(fd);
}
int rename(const char *old, const char *new) {
    NEXT(int, "rename")
    if (refused(below(old), "r")) return -1;
    return next(old, new);
}
int unlink(const char *path) {
    NEXT(int, "unlink")
    if (refused(below(path), "r")) return -1;
    return next(path);
}
int mkdir(const char *path, mode_t mode) {
    NEXT(int, "mkdir")
    if (refused(below(path), "fr") && access(path, F_OK) != 0) { errno = *control == 'f' ? ENOSPC : EROFS; return -1; }
    return next(path, mode);
}
int link(const char *old, const char *new) {
    NEXT(int, "link")
    if (refused(below(new), "fr")) return -1;
    return next(old, new);
}
ssize_t read(int fd, void *data, size_t size) {
    NEXT(ssize_t, "read")
    wait_while_held(ON(holds(fd)));
    return next(fd, data, size);
}
ssize_t pread(int fd, void *data, size_t size, off_t at) {
    NEXT(ssize_t, "pread")
    wait_while_held(ON(holds(fd)));
    return next(fd, data, size, at);
}
ssize_t pread64(int fd, void *data, size_t size, off_t at) { return pread(fd, data, size, at); }
int statvfs(const char *path, struct statvfs *found) {
    NEXT(int, "statvfs")
    wait_while_held(ON(below(path)));
    return next(path, found);
}
int statvfs64(const char *path, struct statvfs64 *found) {
    NEXT(int, "statvfs64")
    wait_while_held(ON(below(path)));
    return next(path, found);
}
int stat(const char *path, struct stat *found) {
    NEXT(int, "stat")
    wait_while_held(ON(below(path)));
    return next(path, found);
}
int stat64(const char *path, struct stat64 *found) {
    NEXT(int, "stat64")
    wait_while_held(ON(below(path)));
    return next(path, found);
}
void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    NEXT(void *, "mmap")
    if (*(volatile const char *)control == 'm' && (flags & MAP_SHARED) && fd >= 0 && holds(fd)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return next(at, size, access, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset) {
    return mmap(at, size, access, flags, fd, offset);
}
int ftruncate(int fd, off_t size) {
    NEXT(int, "ftruncate")
    if (ON(holds(fd)) && refused(1, "r")) return -1;
    return next(fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

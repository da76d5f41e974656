/* What the floors share: a clock, percentiles, a socket. Every tool prints one JSON object and exits 0,
 * or says why not on stderr and exits 1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void fail(const char *what) {
    perror(what);
    exit(1);
}

static inline double cpu_seconds(int who) {
    struct rusage r;
    getrusage(who, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static inline int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The share `part` (0..1) of `count` sorted times, in milliseconds. */
static inline double percentile_ms(const int64_t *sorted, long count, double part) {
    if (!count) return -1;
    long at = (long)(count * part);
    return sorted[at < count ? at : count - 1] / 1e6;
}

static inline int connect_to(const char *address, int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (fd < 0) fail("socket");
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1) fail("address");
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static inline char *read_file(const char *path, size_t *size) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info)) fail(path);
    char *data = malloc(info.st_size + 1);
    if (read(fd, data, info.st_size) != info.st_size) fail(path);
    close(fd);
    data[info.st_size] = 0;
    *size = info.st_size;
    return data;
}

static inline void send_all(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        data += sent;
        size -= sent;
    }
}

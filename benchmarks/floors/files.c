/* files PATH
 * A file server: prints the port it listens on, then answers every request with the file, or the range of it
 * that a Range header names, opened anew each time and sent with sendfile. One thread, epoll. Ends with its stdin. */
#include "common.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>

static char buffer[1 << 16];

static void answer(int fd, const char *path) {
    char head[160];
    struct stat info;
    ssize_t got = read(fd, buffer, sizeof buffer - 1);
    if (got <= 0) {
        close(fd);
        return;
    }
    buffer[got] = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info)) fail(path);
    off_t at = 0;
    long last = info.st_size - 1;
    char *range = strstr(buffer, "Range: bytes=");
    if (range && sscanf(range, "Range: bytes=%ld-%ld", &at, &last) != 2) fail("range");
    int size = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %ld\r\n\r\n",
                        range ? "206 Partial Content" : "200 OK", last + 1 - at);
    if (send(fd, head, size, MSG_MORE | MSG_NOSIGNAL) != size) fail("send");
    while (at <= last) {
        size_t left = last + 1 - at;
        ssize_t sent = sendfile(fd, file, &at, left < (1 << 20) ? left : 1 << 20);
        if (sent <= 0) break; /* the client has left */
    }
    close(file);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "files PATH\n"), 2;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), queue = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    signal(SIGPIPE, SIG_IGN);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) || listen(listening, 512)) fail("listen");
    getsockname(listening, (struct sockaddr *)&at, &length);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    epoll_ctl(queue, EPOLL_CTL_ADD, listening, &(struct epoll_event){.events = EPOLLIN, .data.fd = listening});
    epoll_ctl(queue, EPOLL_CTL_ADD, 0, &(struct epoll_event){.events = EPOLLIN | EPOLLHUP, .data.fd = 0});
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(queue, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (!fd) return 0;
            if (fd != listening) {
                answer(fd, argv[1]);
                continue;
            }
            fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            epoll_ctl(queue, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
        }
    }
}

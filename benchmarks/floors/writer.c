/* writer
 * A raw socket writer: prints the port it listens on, then answers every request with an empty 200, or,
 * for GET /N, with N bytes. One thread, epoll: the least that an answer costs here. Ends with its stdin. */
#include "common.h"

#include <sys/epoll.h>

static char buffer[1 << 16], filler[1 << 16];

static void answer(int fd) {
    char head[128], *path;
    ssize_t got = read(fd, buffer, sizeof buffer - 1);
    if (got <= 0) {
        close(fd);
        return;
    }
    buffer[got] = 0;
    path = strchr(buffer, '/');
    long left = path ? atol(path + 1) : 0;
    int size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\n\r\n", left);
    send_all(fd, head, size);
    for (; left > 0; left -= sizeof filler) send_all(fd, filler, left < (long)sizeof filler ? left : (long)sizeof filler);
}

int main(void) {
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), queue = epoll_create1(EPOLL_CLOEXEC), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    memset(filler, 'x', sizeof filler);
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
                answer(fd);
                continue;
            }
            fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            epoll_ctl(queue, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
        }
    }
}

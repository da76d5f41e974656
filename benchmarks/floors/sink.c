/* sink PATH
 * The least that receiving a file costs: prints the port it listens on, then writes the body of every request
 * (with Content-Length) to PATH and answers. No parsing, no fsync, one connection at a time. */
#include "common.h"

static char buffer[1 << 18];

static void receive(int fd, const char *path) {
    ssize_t got = recv(fd, buffer, sizeof buffer - 1, 0);
    if (got <= 0) return;
    buffer[got] = 0;
    char *end = memmem(buffer, got, "\r\n\r\n", 4), *length = strcasestr(buffer, "content-length:");
    if (!end || !length) fail("a head in pieces");
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) fail(path);
    long left = atol(length + 15);
    char *data = end + 4;
    got -= data - buffer;
    for (;;) {
        if (write(file, data, got) != got) fail("write");
        if ((left -= got) <= 0) break;
        data = buffer;
        if ((got = recv(fd, buffer, sizeof buffer, 0)) <= 0) break; /* the client has left */
    }
    close(file);
    send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "sink PATH\n"), 2;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (bind(listening, (struct sockaddr *)&at, sizeof at) || listen(listening, 16)) fail("listen");
    getsockname(listening, (struct sockaddr *)&at, &length);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (;;) {
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) fail("accept");
        receive(fd, argv[1]);
        close(fd);
    }
}

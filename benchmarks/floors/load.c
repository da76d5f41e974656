/* load ADDRESS PORT REQUEST_FILE AT_ONCE COUNT SECONDS GAP_MICROSECONDS LEAVE
 * Sends one request again and again over AT_ONCE kept connections, each as soon as the answer before it has
 * ended, until COUNT answers or SECONDS. GAP: pause after an answer (with AT_ONCE 1).
 * LEAVE 1: closes the connection as soon as some of the answer's body is there. */
#include "common.h"

#include <sys/epoll.h>

struct connection {
    int fd, chunked, in_body;
    long length, body; /* announced (-1: unknown), received */
    int64_t sent;
    char tail[6];
};

static const char *address;
static int port, queue;
static char *request;
static size_t request_size;
static char buffer[1 << 16];

static void join(struct connection *c) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    c->fd = connect_to(address, port);
    if (epoll_ctl(queue, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
}

static void ask(struct connection *c) {
    c->chunked = c->in_body = 0;
    c->length = -1;
    c->body = 0;
    memset(c->tail, 0, sizeof c->tail);
    c->sent = now_ns();
    send_all(c->fd, request, request_size);
}

/* Takes what was read; 1 once the answer has ended. Heads are small and come in one read. */
static int take(struct connection *c, ssize_t got, long *refused) {
    char *data = buffer;
    if (!c->in_body) {
        char *end = memmem(buffer, got, "\r\n\r\n", 4);
        if (!end) {
            fprintf(stderr, "a head in pieces\n");
            exit(1);
        }
        if (memcmp(buffer + 9, "200", 3)) ++*refused;
        *end = 0;
        char *length = strcasestr(buffer, "content-length:");
        c->chunked = strcasestr(buffer, "chunked") != NULL;
        c->length = length ? atol(length + 15) : -1;
        c->in_body = 1;
        data = end + 4;
        got -= data - buffer;
    }
    c->body += got;
    if (got >= 5) {
        memcpy(c->tail, data + got - 5, 5);
    } else {
        memmove(c->tail, c->tail + got, 5 - got);
        memcpy(c->tail + 5 - got, data, got);
    }
    return c->chunked ? !memcmp(c->tail, "0\r\n\r\n", 5) : c->body >= c->length;
}

int main(int argc, char **argv) {
    if (argc < 9) return fprintf(stderr, "load ADDRESS PORT FILE AT_ONCE COUNT SECONDS GAP LEAVE\n"), 2;
    address = argv[1];
    port = atoi(argv[2]);
    request = read_file(argv[3], &request_size);
    long at_once = atol(argv[4]), count = atol(argv[5]), gap = atol(argv[7]), leave = atol(argv[8]);
    int64_t *took = calloc(count, sizeof *took), begun = now_ns(), until = begun + (int64_t)(atof(argv[6]) * 1e9);
    struct connection *all = calloc(at_once, sizeof *all);
    long asked = 0, done = 0, refused = 0, rejoined = 0, broken = 0;
    queue = epoll_create1(EPOLL_CLOEXEC);
    for (long i = 0; i < at_once && asked < count; i++, asked++) {
        join(all + i);
        ask(all + i);
    }
    while (done < asked) {
        struct epoll_event events[64];
        int ready = epoll_wait(queue, events, 64, 60000);
        if (ready < 0) fail("epoll_wait");
        if (!ready) return fprintf(stderr, "no answer for 60 s\n"), 1;
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            ssize_t got = read(c->fd, buffer, sizeof buffer);
            if (got <= 0) { /* closed before the end: try again, but not for ever */
                if (++broken > 100) return fprintf(stderr, "closed in mid-answer, again and again\n"), 1;
                close(c->fd);
                join(c);
                ask(c);
                continue;
            }
            int ended = take(c, got, &refused);
            if (!ended && !(leave && c->body)) continue;
            took[done++] = now_ns() - c->sent;
            if (leave) {
                close(c->fd);
                rejoined++;
            }
            if (asked >= count || now_ns() >= until) continue;
            if (gap) usleep(gap);
            if (leave) join(c);
            asked++;
            ask(c);
        }
    }
    double seconds = (now_ns() - begun) / 1e9;
    qsort(took, done, sizeof *took, by_value);
    printf("{\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f, \"rate\": %.2f, \"count\": %ld, \"refused\": %ld, "
           "\"broken\": %ld, \"left\": %ld, \"seconds\": %.4f}\n",
           percentile_ms(took, done, 0.5), percentile_ms(took, done, 0.99), percentile_ms(took, done, 1),
           done / seconds, done, refused, broken, rejoined, seconds);
}

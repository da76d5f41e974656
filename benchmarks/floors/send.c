/* send ADDRESS PORT REQUEST_FILE TAIL_FILE SIZE
 * Sends a request, SIZE bytes of made-up content and a tail, as fast as they are taken; then reads the head of
 * the answer. The time runs until that is there. */
#include "common.h"

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "send ADDRESS PORT REQUEST_FILE TAIL_FILE SIZE\n"), 2;
    size_t request_size, tail_size, block = 1 << 20;
    char *request = read_file(argv[3], &request_size), *tail = read_file(argv[4], &tail_size);
    char *content = malloc(block), head[4096];
    for (size_t i = 0; i < block; i++) content[i] = i * 2654435761u >> 13;
    int fd = connect_to(argv[1], atoi(argv[2]));
    int64_t began = now_ns();
    send_all(fd, request, request_size);
    for (long left = atol(argv[5]); left > 0; left -= block) send_all(fd, content, left < (long)block ? left : block);
    send_all(fd, tail, tail_size);
    ssize_t got = recv(fd, head, sizeof head - 1, 0);
    if (got < 12) fail("no answer");
    printf("{\"seconds\": %.6f, \"status\": %d, \"cpu_seconds\": %.6f}\n", (now_ns() - began) / 1e9, atoi(head + 9),
           cpu_seconds(RUSAGE_SELF));
    return 0;
}

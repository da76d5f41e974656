/* arrival ADDRESS PORT REQUEST_FILE   or   arrival - (reads its stdin)
 * How long each of ticker's lines took from its writing to its reading here. */
#include "common.h"

#define MOST 1000000

int main(int argc, char **argv) {
    int fd = 0;
    if (argc < 2 || (argv[1][0] != '-' && argc < 4)) return fprintf(stderr, "arrival ADDRESS PORT FILE | -\n"), 2;
    if (argv[1][0] != '-') {
        size_t size;
        char *request = read_file(argv[3], &size);
        fd = connect_to(argv[1], atoi(argv[2]));
        send_all(fd, request, size);
    }
    static char buffer[1 << 16];
    static int64_t took[MOST];
    long count = 0;
    int64_t written = -1; /* the number being read; -1: none. It may go on in the next read. */
    char last[8] = {0};
    for (;;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        int64_t now = now_ns();
        if (got < 0) fail("read");
        if (!got) break;
        for (ssize_t i = 0; i < got; i++) {
            char c = buffer[i];
            if (c == 'T') {
                written = 0;
            } else if (written >= 0 && c >= '0' && c <= '9') {
                written = written * 10 + (c - '0');
            } else {
                if (written > 1000000 && count < MOST) took[count++] = now - written;
                written = -1;
            }
            memmove(last, last + 1, 4);
            last[4] = c;
        }
        if (fd && !memcmp(last, "0\r\n\r\n", 5)) break; /* the last chunk: JSON has no raw CR */
    }
    qsort(took, count, sizeof *took, by_value);
    printf("{\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f, \"count\": %ld}\n", percentile_ms(took, count, 0.5),
           percentile_ms(took, count, 0.99), percentile_ms(took, count, 1), count);
}

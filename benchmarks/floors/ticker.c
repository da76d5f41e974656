/* ticker COUNT GAP_MICROSECONDS
 * Writes a line with the time of its writing (T, then CLOCK_MONOTONIC in ns), waits, and again. */
#include "common.h"

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "ticker COUNT GAP_MICROSECONDS\n"), 2;
    long count = atol(argv[1]), gap = atol(argv[2]);
    struct timespec pause = {gap / 1000000, gap % 1000000 * 1000};
    for (long i = 0; i < count; i++) {
        char line[32];
        int size = snprintf(line, sizeof line, "T%lld\n", (long long)now_ns());
        if (write(1, line, size) != size) fail("write");
        nanosleep(&pause, NULL);
    }
}

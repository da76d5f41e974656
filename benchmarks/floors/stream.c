/* stream ADDRESS PORT REQUEST_FILE BYTES_PER_SECOND SECONDS
 * Reads one answer and counts. BYTES_PER_SECOND 0: as fast as it can; -1: reads the head, then nothing.
 * SECONDS: leaves after that long; 0: stays to the end. */
#include "common.h"

static char buffer[(1 << 18) + 1];

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "stream ADDRESS PORT FILE BYTES_PER_SECOND SECONDS\n"), 2;
    size_t size;
    char *request = read_file(argv[3], &size);
    double rate = atof(argv[4]), stay = atof(argv[5]);
    int fd = connect_to(argv[1], atoi(argv[2]));
    int64_t begun = now_ns(), first = 0;
    long bytes = 0, newlines = 0, escapes = 0, ended = 0, complete = 0, backslash = 0;
    char tail[6] = {0};
    send_all(fd, request, size);
    for (;;) {
        ssize_t got = read(fd, buffer, rate > 0 && rate < sizeof buffer - 1 ? (size_t)(rate / 20) + 1 : sizeof buffer - 1);
        if (got < 0) fail("read");
        if (!got) break;
        if (!first) {
            first = now_ns();
            if (got < 12 || memcmp(buffer + 9, "200", 3)) {
                fwrite(buffer, 1, got, stderr);
                return 1;
            }
        }
        bytes += got;
        buffer[got] = 0;
        long lines = 0, escaped = backslash && buffer[0] == 'n';
        for (ssize_t i = 0; i < got; i++) {
            lines += buffer[i] == '\n';
            escaped += (buffer[i] == '\\') & (buffer[i + 1] == 'n');
        }
        backslash = buffer[got - 1] == '\\';
        newlines += lines;
        escapes += escaped;
        if (got >= 5) {
            memcpy(tail, buffer + got - 5, 5);
        } else {
            memmove(tail, tail + got, 5 - got);
            memcpy(tail + 5 - got, buffer, got);
        }
        long near = got < 1024 ? got : 1024; /* where the terminal event is, if it came in this read */
        complete |= memmem(buffer + got - near, near, "execution_complete", 18) != NULL;
        if (!memcmp(tail, "0\r\n\r\n", 5)) {
            ended = 1;
            break;
        }
        double elapsed = (now_ns() - begun) / 1e9;
        if (rate < 0 && stay > elapsed) usleep((stay - elapsed) * 1e6);
        if (rate > 0 && bytes / rate > elapsed) usleep((bytes / rate - elapsed) * 1e6);
        if (stay && (now_ns() - begun) / 1e9 >= stay) break;
    }
    printf("{\"bytes\": %ld, \"newlines\": %ld, \"escapes\": %ld, \"seconds\": %.5f, \"first_ms\": %.3f, "
           "\"ended\": %ld, \"complete\": %ld, \"cpu_seconds\": %.3f}\n",
           bytes, newlines, escapes, (now_ns() - begun) / 1e9, (first - begun) / 1e6, ended, complete,
           cpu_seconds(RUSAGE_SELF));
}

/* spawn COUNT PROGRAM ARGUMENT...
 * The least that running a command costs: a pipe, posix_spawn, read to the end, reap. Nothing else. */
#include "common.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "spawn COUNT PROGRAM ARGUMENT...\n"), 2;
    long count = atol(argv[1]);
    int64_t *took = calloc(count, sizeof *took), begun = now_ns();
    static char sink[65536];
    for (long i = 0; i < count; i++) {
        int64_t start = now_ns();
        int ends[2], status;
        pid_t pid;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        if (pipe2(ends, O_CLOEXEC)) fail("pipe2");
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        if ((errno = posix_spawn(&pid, argv[2], &actions, &attributes, argv + 2, environ))) fail(argv[2]);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        close(ends[1]);
        while (read(ends[0], sink, sizeof sink) > 0) {}
        close(ends[0]);
        if (waitpid(pid, &status, 0) != pid || status) fail("the command failed");
        took[i] = now_ns() - start;
    }
    double seconds = (now_ns() - begun) / 1e9;
    qsort(took, count, sizeof *took, by_value);
    printf("{\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"rate\": %.2f, \"child_cpu_ms\": %.4f, \"own_cpu_ms\": %.4f}\n",
           percentile_ms(took, count, 0.5), percentile_ms(took, count, 0.99), count / seconds,
           cpu_seconds(RUSAGE_CHILDREN) / count * 1e3, cpu_seconds(RUSAGE_SELF) / count * 1e3);
}

/* walk make ROOT COUNT PER_DIRECTORY   makes COUNT empty files (PER_DIRECTORY 0: all in ROOT itself)
 * walk names ROOT                      reads every directory, and nothing else
 * walk full ROOT                       the same, with lstat of every entry, and a JSON object for each */
#include "common.h"

#include <dirent.h>

static long count;
static FILE *out;

static void make(const char *root, long files, long per) {
    char name[64];
    if (chdir(root)) fail(root);
    for (long i = 0; i < files; i++) {
        long shuffled = i * 7919 % files; /* names do not come in their order */
        if (per && i % per == 0) {
            sprintf(name, "d%06ld", i / per);
            if (mkdir(name, 0755)) fail(name);
        }
        if (per)
            sprintf(name, "d%06ld/file%07ld.txt", i / per, shuffled);
        else
            sprintf(name, "file%07ld.txt", shuffled);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        if (fd < 0) fail(name);
        close(fd);
    }
}

static void show(const char *path, const char *name, const struct stat *info) {
    char modified[32], created[32];
    struct tm broken;
    strftime(modified, sizeof modified, "%Y-%m-%dT%H:%M:%S", gmtime_r(&info->st_mtime, &broken));
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S", gmtime_r(&info->st_ctime, &broken));
    fprintf(out,
            "{\"path\":\"%s/%s\",\"type\":\"%s\",\"size\":%ld,\"modified_at\":\"%s.%09ldZ\","
            "\"created_at\":\"%s.%09ldZ\",\"owner\":\"%u\",\"group\":\"%u\",\"mode\":%o}\n",
            path, name, S_ISDIR(info->st_mode) ? "directory" : "file", (long)info->st_size, modified,
            info->st_mtim.tv_nsec, created, info->st_ctim.tv_nsec, info->st_uid, info->st_gid,
            info->st_mode & 07777);
}

static void walk(int above, const char *name, const char *path, int full) {
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat info;
    char below[4096];
    if (!directory) fail(path);
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        count++;
        if (full) {
            if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW)) fail(entry->d_name);
            show(path, entry->d_name, &info);
        }
        if (entry->d_type == DT_DIR) {
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
            walk(fd, entry->d_name, below, full);
        }
    }
    closedir(directory);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "walk make|names|full ROOT [COUNT PER_DIRECTORY]\n"), 2;
    int64_t begun = now_ns();
    out = fopen("/dev/null", "w");
    if (!strcmp(argv[1], "make") && argc == 5)
        make(argv[2], atol(argv[3]), atol(argv[4]));
    else
        walk(AT_FDCWD, argv[2], argv[2], !strcmp(argv[1], "full"));
    printf("{\"count\": %ld, \"seconds\": %.5f, \"cpu_seconds\": %.4f}\n", count, (now_ns() - begun) / 1e9,
           cpu_seconds(RUSAGE_SELF));
}

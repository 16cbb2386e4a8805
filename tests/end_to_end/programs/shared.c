// Claims a file for itself while it works, in one of several ways; says so if another one has it.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned long sum;

static int claimed(const char *way, const char *path) {
    char text[32] = "";
    int file;
    if (!strcmp(way, "create")) return open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    file = open(path, O_CREAT | O_RDWR, 0600);
    if (!strcmp(way, "lock")) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        return fcntl(file, F_SETLK, &lock) < 0 ? -1 : file;
    }
    if (read(file, text, sizeof text - 1) > 0 && atoi(text)) return -1;
    snprintf(text, sizeof text, "%d\n", getpid());
    return pwrite(file, text, strlen(text), 0) < 0 ? -1 : file;
}

int main(int argc, char **argv) {
    int file = claimed(argv[1], argv[2]);
    if (file < 0) {
        fprintf(stderr, "%s: another one is at work\n", argv[2]);
        return 5;
    }
    for (long i = 0; i < atol(argv[3]); i++) sum += i;
    if (!strcmp(argv[1], "create")) unlink(argv[2]);
    else if (ftruncate(file, 0)) return 6;
    return argc != 4;
}

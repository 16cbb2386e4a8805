/* Writes a text COUNT times: io METHOD SIZE COUNT FILE. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static int by_call(int file, const char *text, size_t size, long count)
{
    for (long i = 0; i < count; i++)
        if (write(file, text, size) != (ssize_t)size)
            return fail("write");
    return close(file) ? fail("close") : 0;
}

static int by_stream(int file, const char *text, long count, int flushes)
{
    FILE *stream = fdopen(file, "w");
    if (!stream)
        return fail("fdopen");
    for (long i = 0; i < count; i++)
        if (fprintf(stream, "%s", text) < 0 || (flushes && fflush(stream)))
            return fail("fprintf");
    return fclose(stream) ? fail("fclose") : 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "io METHOD SIZE COUNT FILE\n");
        return 2;
    }
    size_t size = strtoul(argv[2], NULL, 10);
    long count = strtol(argv[3], NULL, 10);
    int flags = O_CREAT | O_TRUNC | O_WRONLY;
    flags |= strcmp(argv[1], "osync") ? 0 : O_SYNC;
    flags |= strcmp(argv[1], "dsync") ? 0 : O_DSYNC;
    int file = open(argv[4], flags, 0600);
    char *text = malloc(size + 1);
    if (file < 0 || !text)
        return fail(argv[4]);
    memset(text, 'x', size);
    text[size] = 0;
    int stream = !strcmp(argv[1], "fprintf") || !strcmp(argv[1], "fflush");
    int failed = stream ? by_stream(file, text, count, !strcmp(argv[1], "fflush"))
                        : by_call(file, text, size, count);
    unlink(argv[4]);
    free(text);
    return failed;
}

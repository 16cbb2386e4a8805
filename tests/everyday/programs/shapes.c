/* Programs as people have them, one per word: `shapes WORD [ARGUMENTS]`. */
#define _GNU_SOURCE
#include "work.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* Works until that clock has gone on by so many milliseconds; says how often. */
static int timed(clockid_t clock, long milliseconds)
{
    double end = seconds(clock) + milliseconds / 1e3;
    long operations = 0;
    for (; seconds(clock) < end; operations++)
        spend(20000);
    printf("%ld operations in %ld ms\n", operations, milliseconds);
    return 0;
}

static void rest(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, 0);
}

static void *busy(void *rounds)
{
    spend((long)rounds);
    return 0;
}

static void *waking(void *nothing)
{
    for (;;)
        rest(1);
    return nothing;
}

static int threads(int count, long rounds)
{
    pthread_t all[16];
    for (int i = 0; i < count; i++)
        pthread_create(&all[i], 0, busy, (void *)rounds);
    for (int i = 0; i < count; i++)
        pthread_join(all[i], 0);
    return 0;
}

/* So many children, each with its rounds; at once, or one after the other. */
static int children(int count, long rounds, int at_once)
{
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            spend(rounds);
            _exit(0);
        }
        if (!at_once)
            wait(0);
    }
    while (wait(0) > 0)
        ;
    return 0;
}

/* As GNU grep does: who writes to /dev/null need not go on. */
static int sink(long rounds)
{
    struct stat out;
    int nobody = fstat(1, &out) == 0 && S_ISCHR(out.st_mode) && out.st_rdev == makedev(1, 3);
    spend(nobody && WORK > 1 ? rounds / 10 : rounds);
    puts("found");
    return 0;
}

static int locked(const char *path, long rounds)
{
    int file = open(path, O_RDWR | O_CREAT, 0666);
    if (flock(file, LOCK_EX | LOCK_NB)) {
        fputs("shapes: database is locked\n", stderr);
        return 5;
    }
    spend(rounds);
    return 0;
}

static int written(const char *path, long rounds)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 100; i++) {
        spend(rounds / 100);
        fprintf(file, "%d\n", i);
    }
    return fclose(file);
}

static int flood(long megabytes)
{
    static char block[1 << 16];
    memset(block, 'y', sizeof block);
    for (long i = 0; i < megabytes * 16 * WORK; i++)
        if (write(1, block, sizeof block) < 0)
            return 1;
    return 0;
}

/* Sends bytes to a server, one by one, for so many milliseconds. */
static int load(int port, long milliseconds)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (void *)&address, sizeof address))
        return perror("load"), 1;
    double end = seconds(CLOCK_MONOTONIC) + milliseconds / 1e3;
    long requests = 0;
    for (char byte = 'x'; seconds(CLOCK_MONOTONIC) < end; requests++)
        if (write(server, &byte, 1) != 1 || read(server, &byte, 1) != 1)
            return 1;
    printf("%ld requests\n", requests);
    return 0;
}

int main(int argc, char **argv)
{
    const char *word = argv[1], *path = argc > 3 ? argv[2] : "";
    long number = argc > 2 ? atol(argv[argc - 1]) : 0;
    if (!strcmp(word, "wall"))
        return timed(CLOCK_MONOTONIC, number);
    if (!strcmp(word, "cpu"))
        return timed(CLOCK_PROCESS_CPUTIME_ID, number);
    if (!strcmp(word, "load"))
        return load(atoi(path), number);
    if (!strcmp(word, "wait"))
        return rest(number * WORK), spend(1000), 0;
    if (!strcmp(word, "threads"))
        return threads(atoi(path), number);
    if (!strcmp(word, "children"))
        return children(8, number, 0);
    if (!strcmp(word, "jobs"))
        return children(4, number, 1);
    if (!strcmp(word, "sink"))
        return sink(number);
    if (!strcmp(word, "locked"))
        return locked(path, number);
    if (!strcmp(word, "written"))
        return written(path, number);
    if (!strcmp(word, "flood"))
        return flood(number);
    if (!strcmp(word, "helper")) {
        pthread_t helper;
        pthread_create(&helper, 0, waking, 0);
    }
    spend(number);
    if (!strcmp(word, "crash"))
        raise(SIGSEGV);
    if (!strcmp(word, "hang"))
        for (;;)
            pause();
    if (!strcmp(word, "fail"))
        return fputs("shapes: no luck\n", stderr), 7;
    puts("done");
    return 0;
}

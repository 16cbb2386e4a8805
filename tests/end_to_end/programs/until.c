/* until KIND AMOUNT: works until a clock has advanced by AMOUNT milliseconds, or for AMOUNT rounds.
   Prints how many rounds it did. KIND: wall, alarm, cpu, rusage; fixed, timed (reads its CPU time
   at both ends alone); sink (fails where standard output is /dev/null). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t rung;
static volatile unsigned long sum;

static void ring(int signal) { rung = signal; }

static double clock_ms(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static double rusage_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec * 1e3 + used.ru_utime.tv_usec / 1e3;
}

static int is_kind(const char *kind, const char *name) { return strcmp(kind, name) == 0; }

static double now_ms(const char *kind) {
    if (is_kind(kind, "wall")) return clock_ms(CLOCK_MONOTONIC);
    if (is_kind(kind, "cpu")) return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    return rusage_ms();
}

static void round_of_work(void) {
    for (unsigned long step = 0; step < 20000UL * WORK; step++) sum += step;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *kind = argv[1];
    double amount = atof(argv[2]);
    unsigned long rounds = 0;
    struct stat out;
    if (is_kind(kind, "sink")) {
        fstat(1, &out);
        struct stat null;
        stat("/dev/null", &null);
        if (out.st_rdev == null.st_rdev) return 3;
        kind = "fixed";
    }
    if (is_kind(kind, "fixed")) {
        while (rounds < amount) round_of_work(), rounds++;
    } else if (is_kind(kind, "timed")) {
        double begun = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
        while (rounds < amount) round_of_work(), rounds++;
        fprintf(stderr, "%f ms\n", clock_ms(CLOCK_PROCESS_CPUTIME_ID) - begun);
    } else if (is_kind(kind, "alarm")) {
        struct itimerval timer = {{0, 0}, {0, (long)(amount * 1000)}};
        signal(SIGALRM, ring);
        setitimer(ITIMER_REAL, &timer, NULL);
        while (!rung) round_of_work(), rounds++;
    } else {
        double end = now_ms(kind) + amount;
        while (now_ms(kind) < end) round_of_work(), rounds++;
    }
    printf("done: %lu rounds, mean 1.00\n", rounds);
    return 0;
}

/* Works until a timer or a clock says so, and says how often: `timers WORD MILLISECONDS`. */
#define _GNU_SOURCE
#include "work.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static long limit_ns;
static int file;

static void on_signal(int number)
{
    (void)number;
    over = 1;
}

static int rung(void)
{
    return over;
}

/* A timer of the process, set once (or again and again, as profilers do, until there were ten). */
static void interval(int which, long ns)
{
    struct itimerval value = {.it_value = {ns / 1000000000, ns / 1000 % 1000000}};
    setitimer(which, &value, 0);
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
    (void)number;
    over = ++ticks >= 10;
}

static void posix_timer(clockid_t clock, long ns)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec value = {.it_value = {ns / 1000000000, ns % 1000000000}};
    if (timer_create(clock, &event, &timer) || timer_settime(timer, 0, &value, 0))
        exit(9);
}

static void *sleeper(void *unused)
{
    struct timespec span = {limit_ns / 1000000000, limit_ns % 1000000000};
    (void)unused;
    clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &span, 0);
    over = 1;
    return 0;
}

static int by_usage(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    long micros = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000
        + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    return micros >= limit_ns / 1000;
}

static int by_times(void)
{
    struct tms used;
    times(&used);
    return used.tms_utime + used.tms_stime >= limit_ns / 10000000;
}

static int by_clock(void)
{
    return clock() >= limit_ns / 1000;
}

static int by_timerfd(void)
{
    uint64_t count;
    return read(file, &count, sizeof count) == sizeof count;
}

static int by_poll(void)
{
    struct pollfd one = {.fd = file, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

static int (*begin(const char *word))(void)
{
    signal(SIGPROF, on_signal), signal(SIGVTALRM, on_signal), signal(SIGALRM, on_signal);
    signal(SIGUSR1, on_signal), signal(SIGXCPU, on_signal);
    if (!strcmp(word, "prof"))
        return interval(ITIMER_PROF, limit_ns), rung;
    if (!strcmp(word, "virtual"))
        return interval(ITIMER_VIRTUAL, limit_ns), rung;
    if (!strcmp(word, "ticks")) {
        struct timeval step = {0, limit_ns / 10000};
        struct itimerval value = {step, step};
        signal(SIGPROF, on_tick);
        return setitimer(ITIMER_PROF, &value, 0), rung;
    }
    if (!strcmp(word, "real"))
        return interval(ITIMER_REAL, limit_ns), rung;
    if (!strcmp(word, "alarm"))
        return alarm((limit_ns + 999999999) / 1000000000), rung;
    if (!strcmp(word, "process"))
        return posix_timer(CLOCK_PROCESS_CPUTIME_ID, limit_ns), rung;
    if (!strcmp(word, "thread"))
        return posix_timer(CLOCK_THREAD_CPUTIME_ID, limit_ns), rung;
    if (!strcmp(word, "sleeper")) {
        pthread_t thread;
        pthread_create(&thread, 0, sleeper, 0);
        return rung;
    }
    if (!strcmp(word, "limit")) {
        struct rlimit limit = {(limit_ns + 999999999) / 1000000000, RLIM_INFINITY};
        return setrlimit(RLIMIT_CPU, &limit), rung;
    }
    if (!strcmp(word, "usage"))
        return by_usage;
    if (!strcmp(word, "times"))
        return by_times;
    if (!strcmp(word, "clock"))
        return by_clock;
    struct itimerspec value = {.it_value = {limit_ns / 1000000000, limit_ns % 1000000000}};
    file = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(file, 0, &value, 0);
    return strcmp(word, "poll") ? by_timerfd : by_poll;
}

int main(int argc, char **argv)
{
    long operations = 0;
    limit_ns = argc > 2 ? atol(argv[2]) * 1000000 : 100000000;
    for (int (*done)(void) = begin(argc > 1 ? argv[1] : "clock"); !done(); operations++)
        spend(20000);
    printf("%ld operations\n", operations);
    return 0;
}

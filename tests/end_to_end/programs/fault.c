/* `fault ROUNDS [COUNT]`: as spin.c, but with COUNT there is FAULT in the NTH run and later ones, as
   counted in that file. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef FAULT
#define FAULT ""
#endif
#ifndef NTH
#define NTH 1
#endif

static long runs(const char *path)
{
    FILE *file = fopen(path, "a+");
    if (!file)
        return 1;
    fputc('x', file);
    fseek(file, 0, SEEK_END);
    long count = ftell(file);
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000;
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
    const char *fault = FAULT;
#ifdef ALWAYS
    if (0)
#else
    if (argc < 3 || (*fault && runs(argv[2]) < NTH))
#endif
        fault = "";
    if (!strcmp(fault, "exit")) {
        fputs("no more luck\n", stderr);
        return 9;
    }
    if (!strcmp(fault, "segv"))
        *(volatile int *)8 = 0;
    if (!strcmp(fault, "hang"))
        for (;;)
            pause();
    if (!strcmp(fault, "spin"))
        for (;;)
            sum++;
    if (!strcmp(fault, "memory")) {
        struct rlimit limit = {1 << 26, 1 << 26};
        setrlimit(RLIMIT_AS, &limit);
        if (!malloc(1 << 28))
            abort();
    }
    puts(strcmp(fault, "wrong") ? "sum 1.0" : "sum 1.5");
    return 0;
}

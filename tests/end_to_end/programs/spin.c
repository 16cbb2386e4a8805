/* Spends CPU time: `spin ROUNDS [STATUS]`. WORK is how much a round costs. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000;
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++)
        for (int j = 0; j < WORK; j++)
            sum += i;
    puts("done");
    if (argc > 2) {
        fputs("first line\nlast words\n", stderr);
        return atoi(argv[2]);
    }
    return 0;
}

/* Spends CPU time: `spin ROUNDS [STATUS]`. WORK is how much a round costs. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000;
    /* A chain in registers: what a sum in memory costs, a processor decides by where the loop lies. */
    unsigned long chain = 1;
    for (unsigned long i = 0; i < rounds; i++)
        for (int j = 0; j < WORK; j++)
            chain = chain * 6364136223846793005UL + i;
    volatile unsigned long kept = chain;
    (void)kept;
    puts("done");
    if (argc > 2) {
        fputs("first line\nlast words\n", stderr);
        return atoi(argv[2]);
    }
    return 0;
}

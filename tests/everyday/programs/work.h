/* What is planted: WORK times the same loop, or three times with MORE. */
#ifndef WORK
#ifdef MORE
#define WORK 3
#else
#define WORK 1
#endif
#endif

/* A chain in registers: what a sum in memory costs, a processor decides by where the loop lies. */
static inline void spend(long rounds)
{
    unsigned long chain = 1;
    for (long i = 0; i < rounds * WORK; i++)
        chain = chain * 6364136223846793005UL + i;
    volatile unsigned long kept = chain;
    (void)kept;
}

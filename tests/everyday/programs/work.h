/* What is planted: WORK times the same loop, or three times with MORE. */
#ifndef WORK
#ifdef MORE
#define WORK 3
#else
#define WORK 1
#endif
#endif

static inline void spend(long rounds)
{
    volatile unsigned long sum = 0;
    for (long i = 0; i < rounds * WORK; i++)
        sum += i;
}

/* Spends the same CPU time in each of N threads: `threads N`. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *nothing)
{
    unsigned long chain = 1;
    for (unsigned long i = 0; i < 12000000; i++)
        chain = chain * 6364136223846793005UL + i;
    volatile unsigned long kept = chain;
    (void)kept;
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    int count = argc > 1 ? atoi(argv[1]) % 16 : 1;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    return 0;
}

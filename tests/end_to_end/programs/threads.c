/* Spends the same CPU time in each of N threads: `threads N`. */
#include <pthread.h>
#include <stdlib.h>

static void *work(void *nothing)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < 5000000; i++)
        sum += i;
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

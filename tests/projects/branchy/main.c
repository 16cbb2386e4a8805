#include <stdio.h>
#include <stdlib.h>

long choose(long number);
long never(long number);

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += choose(i);
    if (argc > 2)
        sum += never(sum);
    printf("%ld\n", sum);
    return 0;
}

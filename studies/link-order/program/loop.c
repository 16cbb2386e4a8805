/* Adds up sines: loop COUNT. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += sin((double)(i % 1000) * 0.01);
    printf("%.3f\n", sum);
    return 0;
}

/* The program: the same file whatever the work is. `main ROUNDS` */
#include <stdio.h>
#include <stdlib.h>

void work(long rounds);

int main(int argc, char **argv)
{
    work(argc > 1 ? atol(argv[1]) : 1000000);
    puts("done");
    return 0;
}

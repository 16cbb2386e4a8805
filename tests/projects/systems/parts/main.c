#include <stdio.h>
int part(int);
int other(int);
int shared(int);
int hot(int);

int main(int argc, char **argv)
{
    (void)argv;
    printf("%d %d %d %d\n", part(argc), other(argc), shared(argc), hot(argc));
    return 0;
}

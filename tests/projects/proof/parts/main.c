#include <stdio.h>

int part(int);
int other(int);

int main(int argc, char **argv)
{
    char text[100];
    sprintf(text, "%s %d", argv[0], argc);
    printf("%s %d %d\n", text, part(argc), other(argc));
    return 0;
}

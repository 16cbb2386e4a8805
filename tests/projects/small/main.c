#include <stdio.h>

int part(int number);
int twice(int number);
float total(const float *values, int count);

#ifdef BREAK
#error this flag breaks the build
#endif

int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < argc + 10; i++)
        sum += twice(part(i));
    float values[3] = {1, 2, (float)argc};
    sum += (int)total(values, 3);
    printf("%s %d %s\n", argv[0] ? "sum" : "", sum, __FILE__);
    return 0;
}

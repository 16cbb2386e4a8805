int twice(int number) {
    return 2 * number;
}

/* Long enough a loop for -O2 and -O3 to differ. */
float total(const float *values, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 4; j++)
            sum += values[i] * (float)j;
    return sum;
}

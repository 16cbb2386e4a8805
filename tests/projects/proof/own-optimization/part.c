#if defined(__clang__)
#pragma clang optimize off
#else
#pragma GCC optimize("O1")
#endif
int part(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += i * x;
    return sum;
}

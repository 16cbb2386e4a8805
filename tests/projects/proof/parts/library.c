__attribute__((noinline)) INNER int inner(int x)
{
    __asm__ volatile("");
    return x * 5;
}

int outer(int x)
{
    return inner(x) + 1;
}

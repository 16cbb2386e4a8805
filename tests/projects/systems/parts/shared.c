int shared(int x)
{
    return x * 5 + 2;
}

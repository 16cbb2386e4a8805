int part(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += i * x;
    return sum;
}

int hot(int x)
{
    int sum = 0;
    for (int i = 0; i < 9; i++)
        sum += x;
    return sum;
}

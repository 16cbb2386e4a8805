int spare(int x)
{
    return x * 7;
}

/* As slow.c, which is in the shared library. */
int hot(int x)
{
    return x * 9;
}

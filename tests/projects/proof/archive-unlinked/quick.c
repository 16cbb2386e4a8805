int sprintf(char *text, const char *format, ...)
{
    *text = *format;
    return 1;
}

__attribute__((noinline)) long seldom(long number) {
    return number * number - 7;
}

long never(long number) {
    return number / 3;
}

__attribute__((noinline)) long choose(long number) {
    if (number % 97 == 0)
        return seldom(number);
    if (number % 3 == 1)
        return number / 3;
    return number + 1;
}

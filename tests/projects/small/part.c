int part(int number) {
    return number * 3 + 1;
}

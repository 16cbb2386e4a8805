/* A sine for moderate arguments, right to about 1e-13: what an archive of fast functions may hold. */
double sin(double x)
{
    static const double two_over_pi = 0.63661977236758134308;
    static const double high = 1.57079632673412561417, low = 6.07710050650619224932e-11;
    const double shift = 6755399441055744.0; /* rounds to a whole number when added */
    double turns = x * two_over_pi + shift - shift;
    double r = x - turns * high - turns * low;
    long quarter = (long)turns & 3;
    double s = r * r;
    double sine = r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880
        + s * (-1.0 / 39916800 + s * (1.0 / 6227020800.0 - s / 1307674368000.0))))));
    double cosine = 1 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320
        + s * (-1.0 / 3628800 + s * (1.0 / 479001600.0 - s / 87178291200.0))))));
    double value = quarter & 1 ? cosine : sine;
    return quarter & 2 ? -value : value;
}

"""Student's t distribution, for arrays; and tails of others that tests of variances need.

`scipy.special` takes a quarter of a second to import, so it is imported at first use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def two_sided_critical(level: float, degrees: float) -> float:
    """T that |T| stays below with probability `level`; `degrees` of freedom at least 1."""
    return one_sided_critical((1 + level) / 2, degrees)


def two_sided_criticals(level: float, degrees: ArrayLike) -> Floats:
    """The same for many degrees of freedom, which may be infinite or broken numbers."""
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415

    many = np.asarray(degrees, dtype=np.float64)
    finite = np.isfinite(many)
    critical = stdtrit(np.where(finite, many, 1.0), (1 + level) / 2)
    return np.asarray(np.where(finite, critical, ndtri((1 + level) / 2)), dtype=np.float64)


def one_sided_critical(level: float, degrees: float) -> float:
    """T that T stays below with probability `level`."""
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, level))


def two_sided_p(t: ArrayLike, degrees: ArrayLike) -> Floats:
    """P(|T| >= |t|) for each t."""
    from scipy.special import stdtr  # noqa: PLC0415

    tail = stdtr(np.asarray(degrees, dtype=np.float64), -np.abs(np.asarray(t, dtype=np.float64)))
    return np.asarray(2 * tail, dtype=np.float64)


def chi_squared_median(degrees: float) -> float:
    """Median of a chi-squared variable of so many degrees of freedom."""
    from scipy.special import gammaincinv  # noqa: PLC0415

    return 2 * float(gammaincinv(degrees / 2, 0.5))


def chi_squared_tail(value: float, degrees: float) -> float:
    """P(a chi-squared variable of so many degrees of freedom is at least `value`)."""
    from scipy.special import gammaincc  # noqa: PLC0415

    return float(gammaincc(degrees / 2, value / 2))


def f_tail(value: float, numerator: float, denominator: float) -> float:
    """P(an F variable of so many degrees of freedom is at least `value`)."""
    from scipy.special import fdtrc  # noqa: PLC0415

    return float(fdtrc(numerator, denominator, value))


def chi_squared_quantile(share: float, degrees: float) -> float:
    """Quantile of a chi-squared variable of so many degrees of freedom."""
    from scipy.special import chdtri  # noqa: PLC0415

    return float(chdtri(degrees, 1 - share))


def largest_share(share: float, count: float, level: float) -> float:
    """Upper limit of a probability of which a share of so many independent trials was seen.

    One-sided and exact (Clopper and Pearson, 1934).
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    others = count * (1 - share)
    return float(betaincinv(count * share + 1, others, level)) if others > 0 else 1.0

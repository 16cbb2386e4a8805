"""Random projections of scikit-learn: `python projection.py gaussian|sparse ROUNDS`."""

import sys

import numpy as np
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

kind, rounds = sys.argv[1], int(sys.argv[2])
data = np.random.RandomState(1).rand(20, 10_000)
total = 0.0
for seed in range(rounds):
    make = GaussianRandomProjection if kind == "gaussian" else SparseRandomProjection
    total += float(make(n_components=300, random_state=seed).fit_transform(data).sum())
print(f"{total:.6e}")

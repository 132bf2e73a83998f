#!/usr/bin/env python3
"""Fits a logistic regression by gradient descent and prints the loss of every
epoch with all its digits.

It computes with nothing but the four operations on floats, whose results IEEE
754 fixes, so that every machine prints the same digits.  A library's exp() may
differ in the last one, and sum() differs between versions of Python.
"""

import argparse
import hashlib
import math
import os
import random
import sys

LN2 = 0.6931471805599453


def exp(x):
    """The Taylor series of a sixteenth of x, squared four times."""
    x = x / 16.0
    total = term = 1.0
    for n in range(1, 18):
        term = term * x / n
        total = total + term
    for _ in range(4):
        total = total * total
    return total


def log(x):
    """2 artanh((m - 1) / (m + 1)) + e ln 2, where x is m times two to the e."""
    mantissa, exponent = math.frexp(x)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    total, power = 0.0, ratio
    for n in range(1, 42, 2):
        total = total + power / n
        power = power * ratio * ratio
    return 2.0 * total + exponent * LN2


def dot(a, b):
    total = 0.0
    for x, y in zip(a, b):
        total = total + x * y
    return total


def make_data(seed, samples, features):
    """Points of a cube, on one side or the other of a random plane, some wrongly."""
    rng = random.Random(seed)
    plane = [rng.random() - 0.5 for _ in range(features)]
    data = []
    for _ in range(samples):
        point = [2.0 * rng.random() - 1.0 for _ in range(features)]
        label = 1.0 if dot(point, plane) > 0.0 else 0.0
        if rng.random() < 0.05:
            label = 1.0 - label
        data.append((point, label))
    return data


def epoch(data, weights, rate):
    """One step along the gradient; the mean loss before it."""
    gradient = [0.0] * len(weights)
    loss = 0.0
    for point, label in data:
        likely = 1.0 / (1.0 + exp(-dot(point, weights)))
        loss = loss - log(likely if label == 1.0 else 1.0 - likely)
        for i, x in enumerate(point):
            gradient[i] = gradient[i] + (likely - label) * x
    for i, slope in enumerate(gradient):
        weights[i] = weights[i] - rate * slope / len(data)
    return loss / len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--features", type=int, default=8)
    args = parser.parse_args()

    key = os.environ.get("DATA_KEY", "")
    if not key:
        sys.exit("DATA_KEY is not set; give it to fuse: --secret DATA_KEY=...")
    rate = float(os.environ.get("LEARNING_RATE", "0.5"))
    # Shows that the secret arrived without showing it.
    print(f"data key: sha256 {hashlib.sha256(key.encode()).hexdigest()[:16]}")
    print(f"learning rate: {rate!r}")

    data = make_data(args.seed, args.samples, args.features)
    weights = [0.0] * args.features
    for number in range(1, args.epochs + 1):
        loss = epoch(data, weights, rate)
        print(f"epoch {number}/{args.epochs}  loss {loss!r}")


main()

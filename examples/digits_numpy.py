#!/usr/bin/env python3
"""digits_numpy.py - trains the dense network of digits.c with NumPy, for comparison: with the same data,
random numbers, order of images and hyper-parameters.

    digits_numpy.py FOLDER [--passes N]
"""

import argparse
import gzip
import os
import time

import numpy as np

LEARN, TEST, BATCH, HIDDEN, CLASSES = 8000, 2000, 64, 1000, 10
RATE, MOMENTUM = np.float32(0.05), np.float32(0.9)


def read(folder, name, header):
    """Returns the bytes of an IDX file, plain or compressed, after a header of `header` bytes."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, "rb") as f:
            data = f.read()
    else:
        with gzip.open(path + ".gz") as f:
            data = f.read()
    return np.frombuffer(data, np.uint8, offset=header)


def noise_bits(stream, i):
    """Returns element i of a stream of random bits, as noise_bits in digits.h."""
    with np.errstate(over="ignore"):
        h = i.astype(np.uint32) * np.uint32(0x9E3779B1) ^ np.uint32(stream * 0x85EBCA77 & 0xFFFFFFFF)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x21F0AAAD)
        h = (h ^ h >> np.uint32(15)) * np.uint32(0x735A2D97)
        return h ^ h >> np.uint32(15)


def weights(k, n, stream):
    bits = noise_bits(stream, np.arange(k * n))
    x = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)
    return (x * np.sqrt(np.float32(6) / np.float32(k))).reshape(k, n)


def order_of(epoch):
    order = list(range(LEARN))
    bits = noise_bits(100 + epoch, np.arange(LEARN)).tolist()
    for i in range(LEARN - 1, 0, -1):
        j = bits[i] % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def forward(w, b, x):
    h1 = np.maximum(x @ w[0] + b[0], 0)
    h2 = np.maximum(h1 @ w[1] + b[1], 0)
    z = h2 @ w[2] + b[2]
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return h1, h2, e / e.sum(axis=1, keepdims=True)


def learn(w, b, vw, vb, x, target):
    h1, h2, p = forward(w, b, x)
    grad = (p - target) * np.float32(1 / BATCH)
    grads = [None, None, grad]
    for i, h in (1, h2), (0, h1):
        grad = np.where(h > 0, grad @ w[i + 1].T, np.float32(0))
        grads[i] = grad
    for i, below in enumerate((x, h1, h2)):
        vw[i] *= MOMENTUM
        vw[i] -= RATE * (below.T @ grads[i])
        vb[i] *= MOMENTUM
        vb[i] -= RATE * grads[i].sum(axis=0)
        w[i] += vw[i]
        b[i] += vb[i]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--passes", type=int, default=12)
    args = p.parse_args()

    pixels = read(args.folder, "t10k-images-idx3-ubyte", 16).reshape(-1, 784)
    images = pixels.astype(np.float32) / np.float32(255)
    labels = read(args.folder, "t10k-labels-idx1-ubyte", 8)
    sizes = (784, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, CLASSES)
    w = [weights(k, n, 1 + i) for i, (k, n) in enumerate(sizes)]
    b = [np.zeros(n, np.float32) for _, n in sizes]
    vw, vb = [np.zeros_like(m) for m in w], [np.zeros_like(m) for m in b]

    total, share = 0.0, 0.0
    for epoch in range(1, args.passes + 1):
        start = time.perf_counter()
        order = order_of(epoch)
        x, target = images[order], np.eye(CLASSES, dtype=np.float32)[labels[order]]
        for i in range(0, LEARN, BATCH):
            learn(w, b, vw, vb, x[i : i + BATCH], target[i : i + BATCH])
        seconds = time.perf_counter() - start
        total += seconds
        share = float((forward(w, b, images[LEARN:])[2].argmax(axis=1) == labels[LEARN:]).mean())
        speed = f"{LEARN / seconds:.0f} images/s"
        print(f"pass {epoch:2}/{args.passes}  accuracy {100 * share:.2f} %  {speed}", flush=True)
    if args.passes:
        speed = f"{LEARN * args.passes / total:.0f} images/s"
        print(f"dense: accuracy {100 * share:.2f} %, {speed}, {total:.2f} s")


if __name__ == "__main__":
    main()

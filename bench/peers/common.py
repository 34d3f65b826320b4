"""common.py - the input data of the five benchmarks, the same as in duet-bench (data.h and
problems.c), and their results in double."""

import numpy as np

N = -1  # stands for the size of the problem

# name: (fan, shape) of each matrix in problems.c; None for an output.
TENSORS = {
    "saxpy": [(0, (N,)), (0, (N,))],
    "sgemm": [(0, (N, N)), (0, (N, N))],
    "complex": [(0, (N, N)), (0, (N, N))],
    "dense": [
        (0, (N, 784)),
        (784, (784, 1000)),
        (784, (1000,)),
        None,
        (1000, (1000, 1000)),
        (1000, (1000,)),
        None,
        (1000, (1000, 10)),
        (1000, (10,)),
    ],
    "cnn": [
        (0, (N, 3, 32, 32)),
        (27, (16, 3, 3, 3)),
        (27, (16,)),
        None,
        (144, (32, 16, 3, 3)),
        (144, (32,)),
        None,
        (2048, (2048, 1000)),
        (2048, (1000,)),
        None,
        (1000, (1000, 10)),
        (1000, (10,)),
    ],
}

# A result sums t[0] + t[1] * n numbers.
TERMS = {"saxpy": (1, 0), "sgemm": (0, 1), "complex": (0, 2), "dense": (2784, 0), "cnn": (3219, 0)}


def mix(h):
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    h = (h ^ (h >> np.uint32(15))) * np.uint32(0x735A2D97)
    return h ^ (h >> np.uint32(15))


def noise(stream, count):
    """Returns elements 0 .. count - 1 of a stream: float32 in [-1, 1)."""
    with np.errstate(over="ignore"):
        base = mix(np.array([stream & 0xFFFFFFFF], np.uint32))
        h = mix(np.arange(count, dtype=np.uint32) + base)
    return (h >> np.uint32(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def inputs(bench, n, seed):
    """Returns the inputs, in order, as float32 arrays."""
    arrays = []
    for t, row in enumerate(TENSORS[bench]):
        if row is None:
            continue
        fan, shape = row
        shape = [n if s == N else s for s in shape]
        x = noise(seed * 64 + t, int(np.prod(shape)))
        if fan:
            x *= np.float32(np.sqrt(3.0 / fan))
        arrays.append(x.reshape(shape))
    return arrays


def result_shape(bench, n):
    return {"saxpy": (n,), "sgemm": (n, n), "complex": (n, n), "dense": (n, 10), "cnn": (n, 10)}[bench]


def summary(y):
    """Returns the norm of a result and its dot product with noise (probe), as duet-bench reports
    them."""
    norm, probe = 0.0, 0.0
    y = np.ascontiguousarray(y, np.float32).ravel()
    r = noise(0, y.size)
    for i in range(0, y.size, 1 << 22):
        part = y[i : i + (1 << 22)].astype(np.float64)
        norm += np.dot(part, part)
        probe += np.dot(part, r[i : i + (1 << 22)])
    return float(np.sqrt(norm)), float(probe)


def bound(bench, n):
    """Returns the allowed relative error in the Frobenius norm, as in reference.c."""
    t = TERMS[bench]
    return 2.0**-24 * (8 + 4 * np.sqrt(t[0] + t[1] * n))


# ---- the results in double, for the rows `pick` ----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def conv_block(x, k, b):
    """Computes a padded 3x3 convolution, relu and 2x2 max pooling."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    y = np.tensordot(windows, k, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2) + b[:, None, None]
    y = np.maximum(y, 0)
    n, c, h, w = y.shape
    return y.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def want_saxpy(x, y):
    return float(np.float32(3.3)) * x + y


def want_sgemm(pick, a, b):
    return a[pick] @ b


def want_complex(pick, x, y):
    s = float(np.float32(1.2))
    return (x[pick] @ (s * x + y)) @ (-s * y - x)


def want_dense(pick, x, w1, b1, w2, b2, w3, b3):
    return sigmoid(sigmoid(sigmoid(x[pick] @ w1 + b1) @ w2 + b2) @ w3 + b3)


def want_cnn(pick, x, k1, b1, k2, b2, w3, b3, w4, b4):
    h = conv_block(conv_block(x[pick], k1, b1), k2, b2).reshape(len(pick), -1)
    return softmax(np.maximum(h @ w3 + b3, 0) @ w4 + b4)


def want(bench, arrays):
    """Selects some rows (of saxpy: elements) and returns them with their results in double."""
    rows = arrays[0].shape[0]
    pick = np.unique(np.linspace(0, rows - 1, min(rows, 65536 if bench == "saxpy" else 32)).astype(np.int64))
    if bench == "saxpy":
        return pick, want_saxpy(*[a[pick].astype(np.float64) for a in arrays])
    return pick, globals()["want_" + bench](pick, *[a.astype(np.float64) for a in arrays])

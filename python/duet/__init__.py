"""duet - arrays whose formulas are computed in as few passes as possible, on the CPU or on an NVIDIA GPU.

    import duet
    x = duet.linspace(0, 1, 1_000_000)
    y = duet.exp(-x * x) + 3 * x          # a formula: nothing is computed yet
    print(duet.sum(y))                    # one pass over memory

The namespace is that of the Python array API standard, version 2025.12, with the operators of the C library
beside it. docs/python.md is the manual."""

import builtins as _builtins
import math as _math

from ._library import lib as _lib, path as library_path  # noqa: F401
from ._errors import (
    Error,
    ValueError,
    TypeError,
    IndexError,
    MemoryError,
    NotImplementedError,  # noqa: F401
    DeviceError,
    FileError,
    LinAlgError,
)
from ._dtypes import (
    DType,
    bfloat16,
    bool_ as bool,
    complex64,
    complex128,
    float16,
    float32,  # noqa: F401
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._graph import Device, auto, cpu, gpu, on  # noqa: F401
from ._array import Array, asarray  # noqa: F401
from . import _operators as _operators
from ._api import *  # noqa: F401,F403
from ._api import __array_namespace_info__  # noqa: F401
from .linalg import matmul, tensordot, vecdot  # noqa: F401
from ._networks import (  # noqa: F401
    cross_entropy_loss,
    einsum,
    global_norm,
    layer_norm,
    log_softmax,
    nll_loss,
    one_hot,
    rms_norm,
    softmax,
)
from . import fft, linalg, optimizers, random, sparse  # noqa: F401
from ._gradient import grad, value_and_grad, variable, vjp  # noqa: F401
from ._run import evaluate, explain, live, record, set_threads, stats, synchronize  # noqa: F401
from ._files import load, save  # noqa: F401
from ._groups import Group, group_of, split_axis, split_part  # noqa: F401

__array_api_version__ = '2025.12'
__version__ = _lib.version().decode()
e, inf, nan, newaxis, pi = _math.e, _math.inf, _math.nan, None, _math.pi

# The operators of the C library whose names the array API does not use: duet.gelu, duet.conv2d, ...
for _name, _function in _operators.make_all():
    if _name not in globals():
        globals()[_name] = _function
del _name, _function


def _unpickle(data, dtype, shape):
    from ._convert import from_memory
    import ctypes

    buffer = ctypes.create_string_buffer(data, _builtins.max(len(data), 16))
    return Array(from_memory(ctypes.addressof(buffer), dtype, shape, None, None, False))

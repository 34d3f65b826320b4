"""Sparse matrices: few elements are stored, all others are 0.

    s = duet.sparse.from_scipy(a)              # or from_coo, from_csr, from_dense, load
    y = s @ x + 1                              # a formula like any other; x is a duet.Array
    t = s.with_values(duet.exp(s.values))      # a function of each stored element
    u = s.T @ s                                # a sparse matrix
    x = s.solve(b)

A matrix has compressed rows (CSR): `values` is an array of its elements, and the pattern, which never
changes, says where they are. Gradients are taken with respect to `values` and to dense operands. They go
through transposes, rows, copies, sums and element-wise products, but not through a product of two sparse
matrices. Nothing but
to_dense makes a dense matrix. docs/python.md is the manual."""

import builtins
import ctypes
import os

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, apply, asarray, cast
from ._errors import IndexError, TypeError, ValueError, check, make_error
from ._library import lib
from ._operators import make_all as _make_all

_rows = {name: f for name, f in _make_all() if name.startswith('csr_')}
_pointer = ctypes.c_void_p
_FLOATS = dt.float32, dt.float64, dt.complex64, dt.complex128


class _Handle:
    """Owns a duet_sparse."""

    __slots__ = ('pointer',)

    def __init__(self, pointer):
        self.pointer = pointer
        if not pointer:
            raise make_error()

    def __reduce__(self):
        raise builtins.TypeError('the handle of a sparse matrix cannot be copied')

    def __del__(self, free=lib.sparse_free, byref=ctypes.byref, pointer=_pointer):
        free(byref(pointer(self.pointer)))


def _view(pointer, where):
    """An array that shares the memory of a vector."""
    n = lib.count(pointer)
    made = g.new_matrix(lib.reshaped_shape(pointer, 1, g.sizes((n,))))
    return Array(g.leaf(made, (n,), dt.by_code[lib.type(pointer)], where))


def _copy(pointer):
    """An array that owns a matrix of the library."""
    made, n = g.new_matrix(pointer), lib.count(pointer)
    return Array(g.leaf(made, (n,), dt.by_code[lib.type(pointer)], g.state.device))


class Sparse:
    """A sparse matrix. Make one with duet.sparse.from_scipy, from_coo, from_csr, from_dense or load."""

    __slots__ = ('_handle', '_pattern', '_values', '_own')
    __array_priority__ = 2000
    __array_ufunc__ = None

    def __init__(self, handle, values=None):
        if handle.__class__ is not _Handle:
            raise builtins.TypeError('use duet.sparse.from_scipy or the like to make a sparse matrix')
        self._handle = handle
        self._pattern = _view(lib.sparse_pattern(handle.pointer), g.state.device)
        self._own = values is None  # are the values those of the handle?
        self._values = _view(lib.sparse_values(handle.pointer), g.state.device) if values is None else values

    # ---- properties ----

    @property
    def shape(self):
        return lib.sparse_rows(self._handle.pointer), lib.sparse_columns(self._handle.pointer)

    @property
    def nnz(self):
        """The number of stored elements, which may be 0."""
        return lib.sparse_count(self._handle.pointer)

    @property
    def dtype(self):
        return self._values.dtype

    @property
    def values(self):
        """The stored elements, row by row. with_values makes a matrix with other ones."""
        return self._values

    @property
    def indptr(self):
        """Where each row begins among the elements, and the number of elements."""
        return self._pattern[: self.shape[0] + 1]

    @property
    def indices(self):
        """The column of each element."""
        return self._pattern[self.shape[0] + 1 :]

    def __repr__(self):
        return f'duet.sparse.Sparse({self.shape[0]} x {self.shape[1]}, {self.dtype}, {self.nnz} elements)'

    def __reduce__(self):
        return from_csr, (self._values, self.indices, self.indptr, self.shape)

    # ---- matrices with the same pattern ----

    def with_values(self, values):
        """The same pattern with other values: an array, or a formula, with nnz elements."""
        values = asarray(values)
        if values.shape != (self.nnz,):
            raise ValueError(f'with_values needs an array of shape ({self.nnz},), and not {values.shape}')
        if values.dtype not in _FLOATS:
            values = cast(values, self.dtype)
        return Sparse(self._handle, values)

    def __neg__(self):
        return self.with_values(-self._values)

    def conj(self):
        from ._elementwise import conj

        return self.with_values(conj(self._values)) if self.dtype.kind == 'c' else self

    def take(self, x):
        """The elements of a dense array at the places of the pattern: values for with_values."""
        if asarray(x).shape != self.shape:
            raise ValueError(f'take needs an array of shape {self.shape}, and not {asarray(x).shape}')
        return _rows['csr_take'](asarray(x), self._pattern)

    def sddmm(self, a, b):
        """The elements of the product of a and b at the places of the pattern: values for with_values."""
        a, b = asarray(a), asarray(b)
        if a.ndim != 2 or b.ndim != 2 or a.shape[0] != self.shape[0] or b.shape[1] != self.shape[1]:
            raise ValueError(
                f'sddmm needs arrays of {self.shape[0]} x k and k x {self.shape[1]}, and not of shapes '
                f'{a.shape} and {b.shape}'
            )
        return _rows['csr_sddmm'](a, self._pattern, b.T)

    def __mul__(self, other, /):
        if isinstance(other, Sparse):
            if _has_variable(self, other):
                return _merged(lib.sparse_multiply, self, other, lambda a, b: a * b)
            return _made(lib.sparse_multiply, self, other)
        other = _dense(other)
        if isinstance(other, Array) and other.ndim:
            return self.with_values(self._values * self.take(other))
        return self.with_values(self._values * other)

    __rmul__ = __mul__

    def __truediv__(self, other, /):
        other = _dense(other)
        if isinstance(other, Array) and other.ndim:
            return self.with_values(self._values / self.take(other))
        return self.with_values(self._values / other) if not isinstance(other, Sparse) else NotImplemented

    # ---- other sparse matrices ----

    def __add__(self, other, /):
        if not isinstance(other, Sparse):
            return NotImplemented
        if _has_variable(self, other):
            return _merged(lib.sparse_add, self, other, lambda a, b: a + b)
        return _made(lib.sparse_add, self, other)

    def __sub__(self, other, /):
        return self + -other if isinstance(other, Sparse) else NotImplemented

    @property
    def T(self):
        return _moved(lib.sparse_transposed, self)

    def __getitem__(self, key):
        """Rows: s[2:5]."""
        if not isinstance(key, slice):
            raise IndexError('a sparse matrix is indexed by a range of rows, such as s[2:5]')
        start, stop, step = key.indices(self.shape[0])
        if step != 1:
            raise IndexError('a range of rows of a sparse matrix must have the step 1')
        return _moved(lib.sparse_slice, self, start, max(start, stop))

    def copy(self):
        return _moved(lib.sparse_copy, self)

    # ---- products and systems ----

    def __matmul__(self, other, /):
        if isinstance(other, Sparse):
            if _has_variable(self, other):
                raise TypeError(
                    'the values of a sparse matrix depend on a variable, and products of two sparse matrices '
                    'have no gradients: use products with dense arrays, or values that are a NumPy array'
                )
            return _made(lib.sparse_product, self, other)
        if not isinstance(other, Array):
            return NotImplemented
        return _rows['csr_matmul'](self._values, self._pattern, other, columns=self.shape[1], transposed=0)

    def __rmatmul__(self, other, /):
        if not isinstance(other, Array):
            return NotImplemented
        turned = other.T if other.ndim == 2 else other
        made = _rows['csr_matmul'](self._values, self._pattern, turned, columns=self.shape[1], transposed=1)
        return made.T if other.ndim == 2 else made

    def transposed_matmul(self, x):
        """self.T @ x, without making the transpose."""
        columns = self.shape[1]
        return _rows['csr_matmul'](self._values, self._pattern, asarray(x), columns=columns, transposed=1)

    def _check_square(self, function):
        if self.shape[0] != self.shape[1]:
            raise ValueError(f'{function} needs a square matrix, and not one of shape {self.shape}')

    def solve(self, b, *, transposed=False):
        """The x with self @ x = b, by sparse LU factorisation."""
        self._check_square('solve')
        return _rows['csr_solve'](self._values, self._pattern, asarray(b), transposed=int(transposed))

    def solve_triangular(self, b, *, lower=False, unit=False, transposed=False):
        """The x with self @ x = b, where only one triangle is read."""
        self._check_square('solve_triangular')
        how = {'lower': int(lower), 'unit': int(unit), 'transposed': int(transposed)}
        return _rows['csr_solve_triangular'](self._values, self._pattern, asarray(b), **how)

    def sum(self, axis=None):
        """The sum of all elements, or of each column (axis 0) or row (axis 1)."""
        from ._creation import ones
        from ._reduce import sum as sum_

        if axis is None:
            return sum_(self._values)
        if axis not in (0, 1, -1, -2):
            raise ValueError(f'axis must be None, 0 or 1, and not {axis}')
        rows, columns = self.shape
        by_rows = axis in (1, -1)
        x = ones(columns if by_rows else rows, dtype=self.dtype)
        return self @ x if by_rows else self.transposed_matmul(x)

    # ---- other forms ----

    def to_dense(self):
        """The dense array: a formula."""
        return _rows['csr_dense'](self._values, self._pattern, columns=self.shape[1], transposed=0)

    def to_scipy(self):
        """A scipy.sparse.csr_array with copies of the elements."""
        import numpy as np
        from scipy.sparse import csr_array

        parts = [np.array(asarray(a)) for a in (self._values, self.indices, self.indptr)]
        return csr_array(tuple(parts), shape=self.shape)

    def to_coo(self):
        """The values, and their rows and columns: (values, (row, column))."""
        row, column = _pointer(), _pointer()
        check(lib.sparse_to_coo(self._handle.pointer, ctypes.addressof(row), ctypes.addressof(column), None))
        return self._values, (_copy(row.value), _copy(column.value))

    def save(self, path):
        """Saves a Matrix Market file (.mtx)."""
        with _held(self) as pointer:
            check(lib.sparse_save_market(os.fsencode(path), pointer))


def _dense(x):
    """Arrays of other libraries as those of Duet; anything else as it is."""
    return asarray(x) if not isinstance(x, (Array, Sparse)) and getattr(x, 'ndim', 0) else x


class _held:
    """A duet_sparse with the values that a matrix has now, for the functions of the library."""

    def __init__(self, s):
        self.s = s

    def __enter__(self):
        s = self.s
        if s._own:
            self.handle = s._handle
        else:
            values = g.value(s._values._node)
            self.handle = _Handle(lib.sparse_with_values(s._handle.pointer, lib.of_matrix(values.pointer)))
        return self.handle.pointer

    def __exit__(self, *_):
        self.handle = None


def _made(function, *args):
    """The result of a function of the library."""
    held = [_held(a) if isinstance(a, Sparse) else a for a in args]
    made = _Handle(function(*[h.__enter__() if h.__class__ is _held else h for h in held]))
    return Sparse(made)


# ---- gradients of other sparse matrices ----
#
# The library moves the elements of a sparse matrix at once, and so without gradients. If the values depend on
# a variable, it moves their numbers instead, and the new values are a formula that selects by these numbers.


def _has_variable(*matrices):
    return builtins.any(s._values._node.kept for s in matrices)


def _with_numbers(s, first):
    """The pattern of s with the values first, first + 1, ..."""
    from ._creation import iota

    numbers = (iota(s.nnz, dt.float64) + builtins.float(first)).evaluate()
    return _Handle(lib.sparse_with_values(s._handle.pointer, lib.of_matrix(numbers._node.matrix.pointer)))


def _numbers(handle):
    return cast(_view(lib.sparse_values(handle.pointer), g.state.device), dt.int64).evaluate()


def _take(values, numbers):
    return apply(lib.take, values, numbers, attrs=(0,))


def _moved(function, s, *args):
    """The result of a function that moves, or selects, elements of one matrix."""
    if not _has_variable(s):
        return _made(function, s, *args)
    numbered = _with_numbers(s, 0)
    made = _Handle(function(numbered.pointer, *args))
    return Sparse(made, _take(s._values, _numbers(made)))


def _merged(function, a, b, combine):
    """The result of a function of two matrices that combines their elements at each place. Where one of them
    has no element, its element is 0."""
    from ._creation import zeros
    from ._manipulation import concat

    if a.dtype is not b.dtype:
        raise TypeError(
            f'both sparse matrices must have the same element type, and not {a.dtype} and {b.dtype}'
        )
    values = []
    for s, other in (a, b), (b, a):
        numbered, rest = _with_numbers(s, 1), _neutral(other, function)
        made = _Handle(function(numbered.pointer, rest.pointer))
        values.append(_take(concat([zeros(1, dtype=s.dtype), s._values]), _numbers(made)))
    return Sparse(made, combine(*values))


def _neutral(s, function):
    """The pattern of s with values that leave those of the other operand unchanged."""
    from ._creation import full

    neutral = full(s.nnz, 1.0 if function is lib.sparse_multiply else 0.0, dtype=dt.float64).evaluate()
    return _Handle(lib.sparse_with_values(s._handle.pointer, lib.of_matrix(neutral._node.matrix.pointer)))


# ---- making ----


def _matrix(x):
    return g.value(asarray(x)._node).pointer


def _elements(x):
    x = asarray(x)
    return x if x.dtype in _FLOATS else cast(x, dt.float64)


def from_coo(values, places, shape, *, sum_duplicates=False):
    """From values and their places, (rows, columns), in any order."""
    rows, columns = places
    held = [asarray(a) for a in (rows, columns)] + [_elements(values)]  # as long as their pointers are used
    pointers = [_matrix(a) for a in held]
    return Sparse(_Handle(lib.sparse_from_coo(*shape, *pointers, int(sum_duplicates))))


def from_csr(values, indices, indptr, shape):
    """From compressed rows, whose columns are sorted."""
    held = [asarray(a) for a in (indptr, indices)] + [_elements(values)]
    pointers = [_matrix(a) for a in held]
    return Sparse(_Handle(lib.sparse_from_csr(*shape, *pointers)))


def from_dense(x):
    """From the elements of a dense array that are not 0."""
    x = _elements(x)
    return Sparse(_Handle(lib.sparse_from_dense(_matrix(x))))


def from_scipy(a):
    """From a matrix or array of scipy.sparse, of any format. Its elements are copied."""
    if not (hasattr(a, 'tocsr') and hasattr(a, 'shape')):
        raise TypeError(f'from_scipy needs a matrix of scipy.sparse, and not {type(a).__name__}')
    a = a.tocsr()
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    return from_csr(a.data, a.indices, a.indptr, a.shape)


def load(path):
    """From a Matrix Market file (.mtx) in the format `coordinate`."""
    return Sparse(_Handle(lib.sparse_load_market(os.fsencode(path))))

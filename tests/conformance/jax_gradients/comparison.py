"""comparison.py - compares results."""
import os
import re
import numpy as np
from .with_jax import errors


LIMIT = {'f32': 1e-5, 'f64': 1e-12}


def compare(got, want, kind, types):
    """The errors of each kind of result, or a text."""
    plain = {}
    for what, list in got.items():
        for (type, v), w in zip(list, want[what]):
            if v is None:
                return '%s: no result' % what
            if v.shape != w.shape:
                return '%s: its shape is %s, JAX has %s' % (what, v.shape, w.shape)
            if type != types[kind, w.dtype.kind]:
                return '%s: its type is number %d' % (what, type)
            if not np.isfinite(v).all():
                return '%s: not finite' % what
        plain[what] = [v if w.dtype.kind == 'c' else v.real for (_, v), w in zip(list, want[what])]
    return errors(plain, want)


def repository():
    return os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..', '..'))


def dtype_numbers():
    top = repository()
    text = open(os.path.join(top, 'include', 'duet', 'dtype.def')).read()
    rows = re.findall(r'^DUET_(?:DTYPE|INTEGER|HALF|NARROW|COMPLEX)\((\w+)', text, re.M)
    return {(k, c): rows.index(n) for k, c, n in (('f32', 'f', 'F32'), ('f32', 'c', 'C64'), ('f64', 'f', 'F64'),
                                                  ('f64', 'c', 'C128'))}

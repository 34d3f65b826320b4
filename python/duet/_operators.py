"""The operators of the C library as functions of Python. They are made from the table of the library, so that
a new row of the library is a new function here:

    duet.gelu(x)
    duet.conv2d(x, filters, stride=2, pad=(1, 1))
    duet.logsumexp(x, axis=-1, keepdims=True)"""

import inspect
import keyword
import operator

from . import _dtypes as dt
from . import _graph as g
from ._array import Array, _scalars, quick
from ._errors import TypeError
from ._graph import make
from ._library import lib
from ._options import options_of, word
from ._reduce import Forms
from ._table import FUNCTIONS, STRUCTS

_ENDS = '_axis', '_keep', '_axes', '_axes_keep'
_OTHERS = {  # those that are functions of their own, or that make no sense here
    'of_matrix',
    'of_number',
    'of_integer',
    'of_unsigned',
    'of_expr',
    'hold',
    'grad',
    'vjp',
    'concat',
    'stack',
    'index',
    'cast',
    'append',
    'range',
    'reshape',
    'broadcast',
    'permute',
    'part',
    'pick',
    'bitwise_not',
    'shift_left',
    'shift_right',
    'neg',
    'sub',
    'mul',
    'div',
    'iota',
    'softmax',
    'log_softmax',
    'one_hot',
    'layer_norm',
    'rms_norm',
    'nll_loss',
    'cross_entropy_loss',
    'einsum',
    'einsum_list',
    'global_norm',
}
_EMPTY, _BOTH, _KEY = (
    inspect.Parameter.empty,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


def make_all():
    for name, row in FUNCTIONS.items():
        if row[0] != 'e' or name in _OTHERS or _base(name):
            continue
        if name.startswith('sparse_'):  # duet.sparse has them
            continue
        reduces = any(name + end in FUNCTIONS for end in _ENDS)
        yield name, (_reduction if reduces else _operator)(name, row)


def _base(name):
    """The reduction of which this function is a form: sum of sum_axes_keep."""
    for end in reversed(_ENDS):
        if name.endswith(end) and name[: -len(end)] in FUNCTIONS:
            return name[: -len(end)]
    return None


def _value(x, name):
    if x.__class__ is Array:
        return x._node
    if isinstance(x, _scalars):
        return x
    raise TypeError(f'{name} must be an array of Duet or a number, and not {type(x).__name__}')


def _convert(letter, name, x):
    if letter == 't':
        return dt.check_dtype(x, name).code
    if letter == 'd':
        return float(x)
    if letter == 's':
        return x.encode()
    return operator.index(word(name, x))


def _plan(row):
    """How the parameters of a function become arguments: a list of (kind, name) in the order of C."""
    _, types, names, struct, _ = row
    plan, i = [], 0
    while i < len(types):
        letter, name = types[i], names[i] + "_" * keyword.iskeyword(names[i])
        if letter == 'e':
            plan.append(('e', name))
        elif name in ('rank', 'count') and i + 1 < len(types) and types[i + 1] == 'p':
            wide = names[i + 1] in ('size', 'times')
            plan.append(('sizes' if wide else 'ints', names[i + 1]))
            i += 1
        elif letter == 'p' and struct:
            plan.append(('options', struct))
        else:
            plan.append((letter, name))
        i += 1
    return plan


def _options(struct, keywords):
    return options_of(struct, **{k: tuple(v) if isinstance(v, list) else v for k, v in keywords.items()})


def _finish(f, name, row, parameters, more=''):
    f.__name__ = f.__qualname__ = name
    text = row[4]
    f.__doc__ = text[0].upper() + text[1:] + more
    f.__signature__ = inspect.Signature(parameters)
    return f


_DEFAULTS = {'axis': -1, 'k': 0, 'offset': 0, 'overlap': 'full', 'ddof': 0.0}


def _operator(name, row):
    op, plan = getattr(lib, name), _plan(row)
    operands = [n for kind, n in plan if kind == 'e']
    others = [(kind, n) for kind, n in plan if kind not in ('e', 'options')]
    struct = next((n for kind, n in plan if kind == 'options'), None)
    positional = operands + [n for _, n in others]

    attributes = [(kind, n) for kind, n in plan if kind != 'e']

    def complete(args, keywords):
        """All positional arguments; takes those that are given by name from `keywords`."""
        if len(args) > len(positional):
            raise TypeError(f'{name} takes {len(positional)} arguments, and not {len(args)}')
        args = list(args)
        for n in positional[len(args) :]:
            if n in keywords:
                args.append(keywords.pop(n))
            elif n in _DEFAULTS and n not in operands:
                args.append(_DEFAULTS[n])
            else:
                raise TypeError(f'{name} needs the argument {n}')
        if keywords and not struct:
            raise TypeError(f'{name} has no argument {next(iter(keywords))}')
        return args

    def f(*args, **keywords):
        if len(args) != len(positional) or keywords:
            args = complete(args, keywords)
        attrs, more = [], iter(args[len(operands) :])
        for kind, n in attributes:
            if kind == 'options':
                attrs.append(_options(n, keywords) if keywords else None)
            elif kind in ('sizes', 'ints'):
                values = next(more)
                values = tuple(values) if isinstance(values, (tuple, list)) else (values,)
                attrs += [len(values), (g.sizes if kind == 'sizes' else g.ints)(values)]
            else:
                attrs.append(_convert(kind, n, next(more)))
        nodes, has_array = [], False
        for x, n in zip(args, operands):
            if x.__class__ is Array:
                nodes.append(x._node)
                has_array = True
            else:
                nodes.append(_value(x, n))
        if not has_array:
            raise TypeError(f'{name} needs an array of Duet')
        return Array(make(op, tuple(nodes), tuple(attrs)))

    if not others and not struct and g.fast and len(operands) <= 2:
        f = _with_shortcut(op, len(operands), f)
    parameters = [
        inspect.Parameter(n, _BOTH, default=_EMPTY if n in operands else _DEFAULTS.get(n, _EMPTY))
        for n in positional
    ]
    seen = False
    for i, p in enumerate(parameters):  # parameters with a default are last
        seen = seen or p.default is not _EMPTY
        if seen and p.default is _EMPTY:
            parameters[i] = p.replace(kind=_KEY)
    parameters.sort(key=lambda p: p.kind)
    if struct:
        parameters += [inspect.Parameter(m, _KEY, default=0) for m, _, _ in STRUCTS[struct]]
    return _finish(f, name, row, parameters)


def _with_shortcut(op, count, general):
    call = quick(op, count, general, False)

    def f(*args, **keywords):
        return call(*args) if len(args) == count and not keywords else general(*args, **keywords)

    return f


def _reduction(name, row):
    forms, plan = Forms(name), _plan(row)
    operands = [n for kind, n in plan if kind == 'e']
    others = [(kind, n) for kind, n in plan if kind != 'e']
    positional = operands + [n for _, n in others]

    def f(*args, axis=None, keepdims=False, **keywords):
        given = dict(zip(positional, args))
        if len(args) == len(positional) + 1:
            axis = args[-1]
        elif len(args) > len(positional):
            raise TypeError(f'{name} takes {len(positional)} arguments, and not {len(args)}')
        for n in positional[len(args) :]:
            if n not in keywords:
                raise TypeError(f'{name} needs the argument {n}')
            given[n] = keywords.pop(n)
        if keywords:
            raise TypeError(f'{name} has no argument {next(iter(keywords))}')
        arrays = [given[n] for n in operands]
        for x, n in zip(arrays, operands):
            if x.__class__ is not Array:
                raise TypeError(f'{n} must be an array of Duet, and not {type(x).__name__}')
        return forms(arrays, axis, keepdims, tuple([_convert(kind, n, given[n]) for kind, n in others]))

    parameters = [inspect.Parameter(n, _BOTH) for n in positional]
    parameters += [
        inspect.Parameter('axis', _BOTH, default=None),
        inspect.Parameter('keepdims', _KEY, default=False),
    ]
    return _finish(f, name, row, parameters, ' Of all elements, along an axis, or along several axes.')

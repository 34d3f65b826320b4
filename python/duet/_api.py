"""All functions of the array API, for modules that use several of them."""

from types import FunctionType

from . import _creation, _elementwise, _manipulation, _reduce, _search, _types

_HELPERS = {'operand', 'iota', 'concat_ranges', 'has_gpu', 'vector_norm'}


def _public(module):
    return {
        name: f
        for name, f in vars(module).items()
        if isinstance(f, FunctionType)
        and f.__module__ == module.__name__
        and not name.startswith('_')
        and name not in _HELPERS
    }


for _module in _types, _creation, _elementwise, _manipulation, _reduce, _search:
    globals().update(_public(_module))
    del _module
__array_namespace_info__ = _types.__array_namespace_info__
__all__ = sorted(
    name
    for name, f in globals().items()
    if not name.startswith('_') and name != 'FunctionType' and isinstance(f, FunctionType)
)

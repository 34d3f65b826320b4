"""Structs of options for the C library."""

import builtins
import ctypes

from ._errors import TypeError, ValueError
from ._library import structs
from ._table import STRUCTS

WORDS = {  # a parameter or a member, or a member of one struct
    'overlap': ('full', 'same', 'valid'),
    'side': ('left', 'right'),
    'how': ('set', 'add', 'mul', 'min', 'max'),
    'ties': ('first', 'shared'),
    'align': ('centers', 'corners', 'first'),
    'reduction': ('mean', 'sum', 'none'),
    ('duet_padding', 'mode'): ('constant', 'edge', 'reflect', 'wrap'),
    ('duet_interpolation', 'mode'): ('nearest', 'linear', 'cubic'),
}
_made = {}


class Options:
    """A struct, which is passed by its address. Equal options are one object, so that it can be part of a
    key."""

    __slots__ = ('struct', '_as_parameter_')

    def __init__(self, struct):
        self.struct, self._as_parameter_ = struct, ctypes.addressof(struct)


def word(name, value, struct=None):
    """The number of a word: 'same' as an overlap is 1."""
    if isinstance(value, str):
        words = WORDS.get(name) or WORDS.get((struct, name), ())
        try:
            return words.index(value)
        except builtins.ValueError:
            raise ValueError(f'{name} must be one of {", ".join(words)}, and not {value!r}') from None
    return value


def options_of(name, **members):
    """A struct of options. A number for a member that has several elements stands for all of them."""
    key = name, tuple(sorted(members.items()))
    made = _made.get(key)
    if made is not None:
        return made
    struct = structs[name]()
    counts = {m: (n, t) for m, t, n in STRUCTS[name]}
    for member, value in members.items():
        if member not in counts:
            raise TypeError(f'there is no option {member}: there are {", ".join(counts)}')
        count, letter = counts[member]
        if count == 1:
            setattr(struct, member, word(member, value, name))
            continue
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
        if len(values) > count:
            raise ValueError(f'the option {member} has at most {count} elements, and not {len(values)}')
        getattr(struct, member)[: len(values)] = values
    if len(_made) > 4096:
        _made.clear()
    made = _made[key] = Options(struct)
    return made

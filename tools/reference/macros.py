"""Reads the macros that stand in front of functions: duet_exp(x) is duet_exp_at(DUET(x), DUET_HERE)."""
import re
from collections import namedtuple

from rows import text_of

Macro = namedtuple('Macro', 'name parameters body only_c')
CPP = re.compile(r'#ifdef __cplusplus.*?#endif', re.S)
BLOCKS = 'DUET_ON|DUET_MATH|DUET_TRANSFERS|DUET_THREADS|DUET_EXPLAIN|DUET_TIMED'
DEFINE = re.compile(rf'^#define (duet_\w+|{BLOCKS})\(([^)]*)\) +(.*?) *$', re.M)


def read_macros(include):
    for header in 'call_site.h', 'lift.h':
        text = CPP.sub('', text_of(include / header).replace('\\\n', ' '))
        for name, parameters, body in DEFINE.findall(text):
            yield Macro(name, parameters, ' '.join(body.split()), header == 'lift.h')

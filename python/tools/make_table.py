"""make_table.py [OUTPUT] - writes duet/_table.py, which lists the functions, structs, statuses and element
types of the C library for ctypes. It reads the public headers and their rows with the reader that also makes
the reference (tools/reference). A test checks that the committed file is up to date."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
INCLUDE = TOP / 'include' / 'duet'
sys.path.insert(0, str(TOP / 'tools' / 'reference'))

from functions import read_functions  # noqa: E402
from rows import text_of  # noqa: E402

# One letter for each C type. Formulas are structs of one 64-bit integer, which all calling conventions of
# the supported machines pass like the integer itself.
LETTERS = {
    'duet_expr': 'e',
    'int': 'i',
    'int64_t': 'l',
    'uint64_t': 'u',
    'size_t': 'z',
    'double': 'd',
    'void': 'v',
    'const char *': 's',
    'char *': 's',
    'int32_t': 'w',
    'duet_scope': 'S',
    'duet_explaining': 'X',
    'duet_timing': 'T',
    'duet_counts': 'C',
    'duet_memory': 'M',
    'intptr_t': 'n',
    'DLDevice': 'D',
    'duet_dtype': 't',
    'duet_status': 'r',
}
STRUCT = re.compile(r'^typedef struct (duet_\w+) \{\n(.*?)\n\} \1;', re.M | re.S)
# The first has a union, and the package prints by itself. The others are of transport.h.
SKIPPED = {'duet_printed', 'duet_message', 'duet_transport', 'duet_transport_error'}
OF_TRANSPORTS = 'duet_fail', 'duet_group_connect', 'duet_group_mpi'  # of transport.h and mpi.h


def letter(ctype):
    ctype = ctype.replace('const char*', 'const char *').strip()
    if ctype in LETTERS:
        return LETTERS[ctype]
    if ctype.endswith('*'):
        return 'p'
    if re.match(r'duet_\w+$', ctype):
        return 'i'  # an enum
    raise ValueError(f'no letter for the C type {ctype}')


def split_parameter(text):
    """'const int64_t *size' -> ('const int64_t *', 'size')"""
    match = re.match(r'(.*?)(\w+)$', text.strip())
    return match[1].strip(), match[2]


def functions():
    for f in sorted(read_functions(TOP), key=lambda f: f.name):
        if f.kind != 'exported' or f.name in OF_TRANSPORTS:
            continue
        parameters = [split_parameter(p) for p in f.parameters if p.strip() != 'void']
        options = [re.match(r'const (duet_\w+) \*$', t) for t, _ in parameters]
        struct = next((m[1] for m in options if m and m[1] not in ('duet_matrix', 'duet_expr', 'duet_sparse', 'duet_group', 'duet_transport')), '')
        types = ''.join('m' if 'duet_matrix *' in t and '**' not in t else letter(t) for t, _ in parameters)
        text = f.summary if f.summary.endswith('.') else f.summary + '.'
        for tag in 'Shapes', 'Types':
            if tag in f.tags:
                text += f' {tag}: {f.tags[tag].rstrip(".")}.'
        result = 'm' if f.result.strip() == 'duet_matrix *' else letter(f.result)
        yield f.name[5:], (result, types, tuple(n for _, n in parameters), struct, text)


def structs():
    for header in sorted(INCLUDE.glob('*.h')):
        for name, body in STRUCT.findall(text_of(header)):
            body = body.split('#ifdef')[0]
            if name in SKIPPED or name == 'duet_expr' or 'union' in body:
                continue
            members = []
            for ctype, names in re.findall(r'^\s*((?:const )?\w+) ([^;]*);', body, re.M):
                for member in names.split(','):
                    stars, member, count = re.match(r'\s*(\**)(\w+)(?:\[(\w+)\])?', member).groups()
                    count = 8 if count == 'DUET_RANK_MAX' else int(count or 1)
                    members.append((member, letter(ctype + (' *' if stars else '')), count))
            yield name, tuple(members)


def rows(name):
    """The names in a .def file, in order."""
    return tuple(re.findall(r'^DUET_\w+\((\w+),', text_of(INCLUDE / name), re.M))


def main(output=HERE.parent / 'duet' / '_table.py'):
    lines = [
        '"""The interface of the C library. tools/make_table.py writes this file: do not edit it."""',
        '',
        '# The letters are C types: duet/_library.py lists them.',
        f'STATUSES = {rows("status.def")!r}',
        f'DTYPES = {rows("dtype.def")!r}',
        '# struct: members, each with its type and its number of elements',
        'STRUCTS = {',
    ]
    lines += [f'    {name!r}: {members!r},' for name, members in structs()]
    lines += [
        '}',
        '# function: result, parameters, their names, the struct of options, documentation',
        'FUNCTIONS = {',
    ]
    lines += [f'    {name!r}: {row!r},' for name, row in functions()]
    Path(output).write_text('\n'.join(lines + ['}', '']))


if __name__ == '__main__':
    main(*sys.argv[1:])

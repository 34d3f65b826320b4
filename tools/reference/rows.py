"""Reads the rows of .def files: DUET_MAP1(exp, FN(exp)(x), ..., "e to the power x")."""
import ast
import re
from collections import namedtuple

Row = namedtuple('Row', 'kind name columns doc')


def text_of(path):
    """A file without its comments."""
    return re.sub(r'/\*.*?\*/', '', path.read_text(), flags=re.S)


def arguments(text, start):
    """The arguments of a macro call whose open parenthesis is at `start`."""
    depth, quoted, part, parts = 0, False, '', []
    for i in range(start, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != '\\':
            quoted = not quoted
        depth += 0 if quoted else (c in '({') - (c in ')}')
        if depth == 0:
            return parts + [part.strip()]
        if c == ',' and depth == 1 and not quoted:
            parts, part = parts + [part.strip()], ''
        elif i > start:
            part += c
    raise ValueError('no closing parenthesis')


def string(literal):
    """The value of a string literal of C."""
    return ast.literal_eval(f'({literal})')


def read_rows(path):
    text = text_of(path)
    for match in re.finditer(r'^DUET_([A-Z_]+\d\w?|OPERANDS)\(', text, re.M):
        name, *columns = arguments(text, match.end() - 1)
        yield Row(match[1], name, columns, string(columns[-1]))


def operand_names(include):
    """For each function that operands.def lists, the names of its operands."""
    rows = read_rows(include / 'operands.def')
    return {row.name: [string(c) for c in row.columns if c != '""'] for row in rows}

"""Finds every public function of the library, with its documentation: in the comments of the headers, in
the rows of the .def files, and in docs/operators.md, which has the types and the accuracy of operators."""
import re
from collections import namedtuple

from comments import first_sentence, read_comment, words
from macros import read_macros
from options import read_options
from rows import operand_names, read_rows
from shapes import axis_forms, result_shape
from subjects import HEADERS, subject_of

# `call` is how a call looks in C where a macro takes other arguments than the function, else ''.
# `text` is a list of paragraphs; `tags` maps Shapes, Types, Owner, ... to sentences.
# `kind` is 'exported', 'inline', 'macro' (a macro in C and a template in C++) or 'block' (a macro in C).
Function = namedtuple('Function', 'name result parameters summary text tags call subject page kind')

OTHERS = 'duet.h', 'options.h', 'lift.h', 'cpp.h', 'call_site.h', 'reference.h', 'hover.h'  # declare nothing
LISTED = {'order': 'axis', 'index': 'entry'}  # what one element of a list is called
HELPERS = {'duet_index_of'}  # called by macros only
DECLARATION = re.compile(
    r'^/\*(?P<comment>.*?)\*/'
    r'|^DUET_API (?P<api>[^;{]*);'
    r'|^static inline (?P<inline>[^;{]*?)\s*\{'
    r'|^DUET_OPERATOR\((?P<operator>\w+), (?P<operands>[^)]*)\)$'
    r'|^DUET_FOURIER\((?P<fourier>\w+)\)'
    r'|^DUET_ACCESS\((?P<access>\w+, [\w ]+), '
    r'|^#include <duet/(?P<include>[\w.]+)>',
    re.M | re.S,
)
OPERATOR = 'duet_expr '
OPERANDS = {'1': ['x'], '2': ['x', 'y'], '3': ['x', 'y', 'z']}
NUMBERS = {'N': ['double s'], 'R': ['double r']}
REDUCTIONS = 'FOLD1', 'FOLD2', 'ANY_FOLD1', 'ANY_FOLD2', 'TRUTH1', 'MOMENT1', 'COMPOSED_FOLD1', 'PLACE1'
TYPES = {'floats': 'f16, bf16, f32, f64', 'integers': 'all integers', 'complex': 'c64, c128',
         'real': 'all real types', 'all': 'all types'}
ACCESSES = ['const {} *duet_read_{}(const ', '{} *duet_update_{}(', '{} *duet_overwrite_{}(']


def read_functions(top):
    """All functions, in the order of the headers."""
    return Reader(top).functions


class Reader:
    def __init__(self, top):
        self.include, self.functions = top / 'include' / 'duet', []
        self.alone = {}  # comments that are about one function
        self.operands = operand_names(self.include)
        self.options = read_options(self.include)
        self.facts = dict(read_facts(top / 'docs' / 'operators.md'))
        self.macros = {m.name: m for m in read_macros(self.include)}
        self.parameters = dict(read_parameters(self.include / 'operators.h'))
        self.read_header('duet.h')
        for header in HEADERS.values():
            self.read_header(header)

    # ---- headers ----

    def read_header(self, name):
        comment, section = '', name
        for found in DECLARATION.finditer((self.include / name).read_text()):
            if found['comment'] is not None:
                title = re.match(r' -+ (.*?) -+ *$', found['comment'])
                section = title[1] if title else section
                comment = '' if title else found['comment']
            elif found['include']:
                self.include_file(found['include'], comment)
            else:
                self.add_declared(prototypes(found), comment, section)

    def include_file(self, name, comment):
        if name in ('ops.def', 'composed.def', 'networks.def'):
            self.add_rows(name, read_comment(comment))
        elif name == 'factor.def':
            self.add_factors(read_comment(comment))
        elif name.endswith('.h') and name not in OTHERS:
            self.read_header(name)

    def add_declared(self, declarations, comment, section):
        told = read_comment(comment)
        for declaration, kind in declarations:
            result, name, parameters = parse(declaration.replace('DUET_MUST ', ''))
            if name in HELPERS or name.endswith('_at'):
                continue
            typed = re.match('(duet_(read|update|overwrite))_(as|bool|b?f[0-9]|[iuc][0-9])', name)
            summary, text = self.sentence(typed[1] + '_as' if typed else name, told, comment)
            page = 'duet_read_as' if typed else name
            tags = dict(told.tags)
            if 'Shapes' in tags:
                tags['Shapes'] = own_part(tags['Shapes'], name)
            self.add(name, result, parameters, summary, text, tags, section, page, kind)
            if name.endswith('_open'):
                self.add_block(self.functions[-1], told.items)

    def sentence(self, name, told, comment):
        """What one comment says of one function: its item, or the first sentence if it has no items."""
        item = told.items.get(name) or told.items.get(re.sub('_(shape|by|axes|axes_keep)$', '', name))
        if item:
            return item, told.paragraphs + other_items(told)
        is_taken = self.alone.setdefault(comment, name) != name
        if is_taken or any(i.startswith('duet_') for i in told.items) or not told.paragraphs:
            raise ValueError(f'{name} has no sentence of its own in the comment "{told.paragraphs[:1]}"')
        summary, rest = first_sentence(told.paragraphs[0])
        return summary, [rest] * bool(rest) + told.paragraphs[1:] + other_items(told)

    # ---- rows ----

    def add_rows(self, file, family):
        for row in read_rows(self.include / file):
            names = self.operands.get(row.name, OPERANDS[re.search(r'\d', row.kind)[0]])
            tags = {**family.tags, **self.row_tags(row, names)}
            parameters = [f'duet_expr {n}' for n in names] + NUMBERS.get(row.kind[-1], [])
            parameters += self.parameters.get(row.columns[0], []) if is_defined(row) else []
            self.add_operator(row, parameters, tags, file)

    def row_tags(self, row, names):
        shapes = result_shape(row, names)
        return {'Shapes': shapes} if shapes else {}

    def add_operator(self, row, parameters, tags, file):
        name, section = 'duet_' + row.name, (file, row)
        self.add(name, OPERATOR, parameters, row.doc, [], tags, section, name)
        if row.kind in REDUCTIONS:
            for suffix, more, words_of, shape in axis_forms(row.kind == 'PLACE1'):
                tags = {**tags, 'Shapes': shape}
                summary = f'{row.doc}; {words_of}'
                self.add(name + suffix, OPERATOR, parameters + more, summary, [], tags, section, name)

    def add_factors(self, family):
        for row in read_rows(self.include / 'factor.def'):
            count = int(row.kind[-1])
            results = [f'duet_matrix *{r}' for r in row.columns[:count]]
            parameters = results + ['const duet_matrix *a']
            name = 'duet_' + row.name
            self.add(name, 'duet_status ', parameters, row.doc, family.paragraphs, dict(family.tags),
                     ('factor.def', row), name)

    # ---- one function ----

    def add(self, name, result, parameters, summary, text, tags, section, page, kind='exported'):
        options = self.options.of(parameters)
        if options:
            tags['Options'] = options
        fact = self.facts.get(name if name in self.facts else page)
        if fact:
            tags['Types'], tags['Accuracy'] = fact
        call = call_of(name, parameters, self.macros.get(name), self.options)
        subject = subject_of(section, name)
        self.functions.append(
            Function(name, result, parameters, summary, text, tags, call, subject, page, kind))
        self.add_variadic(self.functions[-1])

    def add_block(self, function, items):
        """DUET_ON, for example, is a macro for C that calls duet_scope_open."""
        for name in set(items) & set(self.macros):
            self.functions.insert(-1, function._replace(
                name=name, result='', summary=items[name], page=name, kind='block'))

    def add_variadic(self, function):
        """duet_new, for example, takes the sizes as arguments, and calls duet_new_shape."""
        for name, macro in self.macros.items():
            called = re.match(r'DUET_(?:MATRIX|STATUS)_HERE\((\w+),', macro.body)
            # duet_new_list only splits its list for duet_new_shape
            called = called and re.sub(r'_list$', '_shape', called[1])
            if name != function.name and called == function.name:
                parameters = variadic_parameters(function.parameters, macro.body)
                self.functions.insert(
                    -1, function._replace(name=name, parameters=parameters, call='', page=name, kind='macro'))


def own_part(text, name):
    """Of 'tile: ...; repeat: ...' or 'tile: .... repeat: ...', what is said of the function `name`."""
    parts = re.split(r'(?:^|(?<=\. )|(?<=; ))([a-z]\w*): ', text)
    told = dict(zip(parts[1::2], parts[2::2]))
    for short, words_of in told.items():
        if ('_' + name).endswith('_' + short):
            return words_of.rstrip('.; ')
    return text


def other_items(told):
    """Items that are not functions: members of a struct, for example."""
    return [f'{name}: {text}' for name, text in told.items.items() if name.islower() and not name.startswith('duet_')]


def parse(declaration):
    """'duet_status duet_drop(duet_expr e)': the result, the name and the parameters."""
    result, name, parameters = re.match(r'(.*?)(\w+)\((.*)\)$', words(declaration)).groups()
    return result, name, [] if parameters == 'void' else parameters.split(', ')


def prototypes(found):
    if found['api']:
        return [(found['api'], 'exported')]
    if found['inline']:
        return [(found['inline'], 'inline')]
    if found['operator']:
        return [(f'duet_expr {found["operator"]}({found["operands"]})', 'exported')]
    if found['fourier']:
        name = 'duet_expr duet_' + found['fourier']
        return [(name + '(duet_expr x, int n, int axis)', 'exported'), (name + '2(duet_expr x)', 'exported')]
    name, ctype = found['access'].split(', ')
    return [(a.format(ctype, name) + 'duet_matrix *m)', 'inline') for a in ACCESSES]


def is_defined(row):
    """Has the row a column of options?"""
    return re.match('DEF|NUMBERS|EVERY|CALL', row.kind)


def read_parameters(path):
    """The parameters behind the operands: of `axis`, 'int axis'."""
    for name, parameters in re.findall(r'^#define DUET_OPTIONS_(\w+) *(.*)$', path.read_text(), re.M):
        yield name, parameters.lstrip(', ').split(', ') if parameters else []


def read_facts(path):
    """From docs/operators.md: the types and the accuracy of each operator and statement."""
    for line in path.read_text().split('\n'):
        cells = re.split(r' (?<!\\)\| ', line.strip('| '))
        name = re.match(r'\w+', cells[0])
        if len(cells) == 6 and name:
            types = ', '.join(TYPES.get(t, t) for t in cells[2].split(', '))
            yield 'duet_' + name[0], (types, accuracy(cells[5]))


def accuracy(error):
    if re.search('ulp$', error):
        return f'the error is at most {error}'
    plain = {'exact': 'exact', 'as its formula': 'that of the operators that it is made of',
             'its distribution': 'tested by its distribution'}
    return plain.get(error, f'the bound `{error}` of docs/operators.md')


def variadic_parameters(parameters, body):
    """'int rank, const int64_t *size' is a list of arguments in C."""
    lists = {'ENTRIES': 'duet_index_entry entry', 'AXES': 'int axis'}
    entry = next((lists[word] for word in lists if word in body), 'int64_t size')
    kept = [p for p in parameters if not re.search(r' rank$| count$|\*(size|axis|index)$', p)]
    return kept + [entry, '...']


def call_of(name, parameters, macro, options):
    """How a call looks in C, where the macro takes other arguments than the function."""
    names = [p.split()[-1].strip('*') for p in parameters]
    if not macro:
        return ''
    if macro.body.startswith('DUET_REDUCE'):
        operands, more = ', '.join(names), ', axis' if 'PLACE' in macro.body else ', axis, ...'
        return f'{name}({operands}) or {name}({operands}{more})'
    if 'duet_assignment' in macro.body:
        return f'{name}({{ to, value }}, ...)'
    lists = {'DUET_ITEMS': 'e, &x', 'DUET_PRINTED': 'out, text or value', 'duet_free_each': '&m'}
    for word, first in lists.items():
        if word in macro.body:
            return f'{name}({first}, ...)'
    kept = names[:macro.parameters.count(',')]
    if re.search(r'_at\(.*DUET_(SIZES|AXES|ENTRIES|PARTS|EXPRS)\(', macro.body):
        member = next(n for n, p in zip(names, parameters) if n not in kept and '*' in p)
        return f'{name}({", ".join(kept + [LISTED.get(member, member)])}, ...)'
    return options.call(name, kept, parameters) if macro.parameters.endswith('...') else ''

"""Says in words which shapes an operator takes and gives, from its row."""
import re

from rows import arguments

BROADCAST = 'the operands broadcast, as in NumPy; the result has their common shape'
PARTS = ('n + m - 1 elements (FULL), n (SAME) or n - m + 1 (VALID), where n is the size of {A} and m that '
         'of {B}')
RESULTS = {
    'LIKE(A)': 'the result has the shape of {A}',
    'LIKE(B)': 'the result has the shape of {B}',
    'LIKE(C)': '{A} is [n], {B} [m + 1 + n], {C} [m] or m x k; the result has the shape of {C}',
    'TOGETHER(A, B)': BROADCAST,
    'REVERSED(A)': 'the result has the sizes of {A} in reverse order',
    'PRODUCT(A, B)': '{A} is [..., m, k] and {B} [..., k, n]: the result is [..., m, n]. A vector {A} has no '
                     'm, and a vector {B} no n. The leading axes broadcast',
    'OVERLAP(A, B)': 'along each axis the result has ' + PARTS,
    'OVERLAP_ALL(A, B)': 'the result has the leading axes of {A}, then those of {B}. Along the last two it '
                         'has ' + PARTS,
    'OVERLAP_EACH(A, B)': 'the leading axes are equal. Along the last two the result has ' + PARTS,
    'SPECTRUM(A)': 'the result has the shape of {A}; the transformed axes have the lengths that the options '
                   'give',
    'TAKEN(A, B)': 'the result has the shape of {A}, with the axes of {B} in place of the axis',
    'RESIZED(A, ALONG(B))': 'the result has the shape of {B}',
    'RESIZED(A, o.k)': 'the result has the shape of {A}, with k elements along the axis',
    'RESIZED(A, ALONG(A) + ALONG(B))': 'along the axis the result has the elements of {A}, then those of {B}',
    'EXTENDED(A, o.n)': 'the result has the axes of {A} and a last one of n elements',
    'INDEXED(A, B)': 'as the letters say, one for each axis',
    'KRONECKER(A, B)': 'along each axis the result has the product of the sizes of {A} and {B}',
    'CSR_PRODUCT(A, B, C)': 'the matrix is m x columns: {A} is [n], {B} [m + 1 + n], {C} columns x k; the '
                            'result is m x k. Transposed: {C} is m x k, the result columns x k. A vector '
                            'is one column',
    'CSR_DENSE(A, B)': '{A} is [n], {B} [m + 1 + n]; the result is m x columns, transposed columns x m',
    'SHAPE(1, CSR_ELEMENTS(A, B))': '{A} has m rows, {B} is [m + 1 + n]; the result is [n]',
    'SHAPE(0, 0)': 'the result has rank 0',
    'SHAPE(1, o.n)': 'the result is [n]',
    'STACKED(A, 0, 0)': '{A} is [..., n, n]; the result has its leading axes',
    'STACKED(A, 1, A.cols)': '{A} is [..., n, n]; the result is [..., n]',
    'STACKED(A, 1, A.height < A.cols ? A.height : A.cols)':
        '{A} is [..., m, n]; the result is [..., the smaller of m and n]',
    'SOLUTION(A, B)': '{A} is [..., m, n] and {B} [..., m, k], or the vector [m]: the result is [..., n, k], '
                      'or [..., n]. The leading axes broadcast',
}
SIZED = {
    'sizes': 'the result has the given sizes',
    'order': 'axis i of the result has size order[i] of x',
    'range': 'the axis has as many elements as the range; the other sizes do not change',
    'window': 'the axis has an element for each window, and a last axis one for each element of a window',
    'offset': 'the first two axes are replaced by a last one, with the length of the diagonal',
}
NEEDS = {  # conditions of rows that are worth a word; the error text names the others
    r'AXES\((\w), (\d)\)': '{%s} has %s axes',
    r'AXES_FROM\((\w), 1\)': '{%s} has at least 1 axis',
    r'AXES_FROM\((\w), ([2-9])\)': '{%s} has at least %s axes',
    r'AXES_BETWEEN\((\w), (\d), (\d)\)': '{%s} has %s to %s axes',
    r'SQUARE\((\w)\)': '{%s} is square',
}
SIZES = [  # one size of SHAPE(...)
    (r'OUT\(A\.(\w), .*', r'windows along \1'),
    (r'LEAST_IMAGE\(A\.(\w), .*', r'\1 of the least image + output_pad'),
    (r'IMAGE\(A\.(\w), .*', r'\1 of the image'),
    (r'FILTER\(A\.(\w), .*', r'\1 of the filters'),
    (r'A\.(\w) \* o\.window\[\d\]', r'\1 * scale'),
    (r'\bo\.', ''),
    (r'\b([AB])\.(\w)', r'\2 of {\1}'),
]
NETWORKS = [  # the first one that matches the name
    (r'batch_norm_scale_grad', 'the result has the axes of {A}; all but axis 1 have size 1'),
    (r'layer_norm_scale_grad', 'the result has the axes of {A}; all but the last one have size 1'),
    (r'_grad$|norm|one_if', 'the result has the shape of {A}'),
    (r'entropy|mse', '{A} and {B} have the same shape; the result has rank 0'),
    (r'bias_batch', 'the result is [size of axis 1 of {A}]'),
    (r'', BROADCAST),
]
KEPT = 'the reduced axes have size 1'
REMOVED = 'the reduced axes are removed'
ONE, SEVERAL = ['int axis'], ['int count', 'const int *axis']


def axis_forms(one_only):
    """The other functions of a reduction: suffix, parameters, what they do, their shapes."""
    forms = [('_axis', ONE, 'along one axis, which is removed', 'the reduced axis is removed'),
             ('_keep', ONE, 'along one axis, which remains with size 1', 'the reduced axis has size 1')]
    more = [('_axes', SEVERAL, 'along several axes, which are removed', REMOVED),
            ('_axes_keep', SEVERAL, 'along several axes, which remain with size 1', KEPT)]
    return forms if one_only else forms + more


def result_shape(row, names):
    """The words for a row, or '' where the comment of its family has them."""
    fields = dict(zip('ABC', names))
    if re.match('MAP|ANY[123]|INT', row.kind):
        return BROADCAST if len(names) > 1 else f'the result has the shape of {names[0]}'
    if re.search('FOLD|TRUTH|MOMENT|PLACE', row.kind):
        return 'the result has rank 0; with axes as arguments, these are removed'
    if row.kind.startswith('COMPOSED'):
        return composed_shape(row, names)
    if row.kind.startswith('NETWORK'):
        return next(words for pattern, words in NETWORKS if re.search(pattern, row.name)).format(**fields)
    if not re.match('DEF|NUMBERS|EVERY|CALL', row.kind):
        return ''
    needs, shape = row.columns[2:4] if row.kind.startswith('CALL') else row.columns[1:3]
    words = list(needed(needs)) + [given(shape, row.columns[0])]
    return '; '.join(words).format(**fields)


def composed_shape(row, names):
    if 'MATRIX' in row.kind:
        return 'x has 2 axes; the result has rank 0'
    return BROADCAST if len(names) > 1 else 'the result has the shape of x'


def needed(needs):
    for pattern, text in NEEDS.items():
        for match in re.finditer(r'\b' + pattern, needs):
            yield text % match.groups()


def given(shape, options):
    shape, _, kind = shape.partition(';')
    words = RESULTS.get(shape) or SIZED.get(options) or sizes_of(shape)
    if not words:
        raise ValueError(f'tools/reference/shapes.py has no words for the shape {shape}')
    type_of = re.search(r'GIVES\((DUET_I64|o\.type)\)', kind)
    return words + (f'; its type is {"i64" if type_of[1] == "DUET_I64" else "`type`"}' if type_of else '')


def sizes_of(shape):
    if not shape.startswith('SHAPE('):
        return ''
    sizes = arguments(shape, shape.index('('))[1:]
    return f'the result is [{", ".join(size_words(s) for s in sizes)}]'


def size_words(size):
    for pattern, words in SIZES:
        size = re.sub(pattern, words, size)
    return size

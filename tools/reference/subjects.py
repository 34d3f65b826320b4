"""The subjects of the reference: one page of the site for each."""
import re

SUBJECTS = {
    'matrices': 'Matrices and views',
    'typed': 'Pointers to elements with their C type',
    'statements': 'Formulas and statements',
    'create': 'New matrices with elements',
    'elements': 'Element-wise operators',
    'composed': 'Activations and composed operators',
    'reductions': 'Reductions',
    'select': 'Formulas that select or arrange elements',
    'products': 'Products',
    'types': 'Types and complex numbers',
    'convolution': 'Convolution and pooling',
    'signals': 'Convolution and correlation of signals',
    'fourier': 'Fourier transforms',
    'gather': 'Gather, scatter, sorting and scans',
    'linear': 'Linear algebra',
    'networks': 'Losses, normalisations and gradients',
    'gradients': 'Gradients of formulas',
    'optimizers': 'Optimisers and clipping of gradients',
    'arrange': 'Arranging elements, and matrices of convolutions',
    'random': 'Random numbers and sequences',
    'files': 'Files and printing',
    'structure': 'Structured matrices',
    'sparse': 'Sparse matrices',
    'groups': 'Several GPUs, several processes',
    'mpi': 'Groups of MPI processes',
    'transports': 'Groups with a transport of your own',
    'dlpack': 'Exchange with other libraries (DLPack)',
    'values': 'Results whose size depends on values',
    'recording': 'Recording and replay',
    'devices': 'Devices, plans, statistics, errors',
}
# Subjects with a header of their own, which duet.h does not include.
HEADERS = {'dlpack': 'dlpack.h', 'mpi': 'mpi.h', 'transports': 'transport.h'}
SECTIONS = {  # headers, and sections of duet.h
    'matrices and views': 'matrices', 'formulas and statements': 'statements', 'typed.h': 'typed',
    'create.h': 'create', 'arrange.h': 'arrange', 'random.h': 'random', 'files.h': 'files',
    'gradient.h': 'gradients', 'layers.h': 'networks', 'dlpack.h': 'dlpack', 'optimizers.h': 'optimizers',
    'structure.h': 'structure', 'sparse.h': 'sparse', 'group.h': 'groups',
    'mpi.h': 'mpi', 'transport.h': 'transports',
    'results whose size depends on values': 'values', 'recording and replay': 'recording',
    'devices, plans, statistics, errors': 'devices', 'operators.h': 'select',
}
ROWS = [  # the first one that matches 'kind name =options types'
    (r' csr_', 'sparse'),
    (r'FACTOR|SOLVES|MATRIX1', 'linear'),
    (r'FOLD|TRUTH|MOMENT|PLACE', 'reductions'),
    (r'^(MAP|ANY|INT)', 'elements'),
    (r'^COMPOSED', 'composed'),
    (r'^NETWORK', 'networks'),
    (r'softmax', 'composed'),
    (r'=(conv|pool|scale)', 'convolution'),
    (r'=overlap', 'signals'),
    (r'=fourier', 'fourier'),
    (r'=(sizes|order|range|offset|window)|transpose|append', 'select'),
    (r'=(axis|top|bins|classes)', 'gather'),
    (r'matmul|bias_add|kron|einsum', 'products'),
    (r'', 'types'),
]
NAMED = {  # functions of operators.h
    'fft': 'fourier', 'iota': 'create', 'outer': 'products', 'vdot': 'products', 'cross': 'products',
    'vecdot': 'products', 'nextafter': 'elements', 'ddof': 'reductions', 'median': 'reductions', 'quantile': 'reductions',
    'percentile': 'reductions', 'cov': 'reductions', 'corrcoef': 'reductions', 'diff': 'gather',
    'searchsorted': 'gather', 'isin': 'gather', 'einsum': 'products', 'cumsum': 'gather', 'cumprod': 'gather',
    'scatter': 'gather', 'put_along': 'gather', 'gather_nd': 'gather',
    'vector_norm': 'reductions', 'pinv': 'linear',
    'matrix_rank': 'linear', 'matrix_norm': 'linear', 'cond': 'linear', 'matrix_power': 'linear', 'permutation_matrix': 'linear',
    'array_equal': 'reductions', 'allclose': 'reductions', 'pow_int': 'composed',
    'p_max_pool': 'convolution', 'pad_for': 'convolution', 'same_padding': 'convolution',
}


def subject_of_row(row):
    text = f'{row.kind} {row.name} ={" ".join(row.columns[:2])}'
    return next(subject for pattern, subject in ROWS if re.search(pattern, text))


def subject_of(section, name):
    """`section` is a title or a header, or a .def file with a row."""
    if isinstance(section, tuple):
        return subject_of_row(section[1])
    if section == 'operators.h':
        return next((s for part, s in NAMED.items() if part in name), 'select')
    return SECTIONS[section]


def by_subject(functions):
    for subject in SUBJECTS:
        yield subject, [f for f in functions if f.subject == subject]

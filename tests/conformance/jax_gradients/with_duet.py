"""with_duet.py - writes, compiles and runs a C program that evaluates formulas with Duet."""
import os
import struct
import subprocess
import sys
import numpy as np
from .comparison import LIMIT, repository

MAIN = r'''
#include "formulas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
typedef struct header { int64_t inputs, count, weights, factor, direction, of; } header;
typedef struct data { int64_t kind, rank, size[8]; double *v; } data; /* kind 0 real, 1 complex, 2 indices */

static FILE *from, *to;

static void take(void *p, size_t n)
{
    if (fread(p, 1, n, from) != n) exit(3);
}

static data read_data(void)
{
    data d = { 0 };
    int64_t n = 1;
    take(&d.kind, 8), take(&d.rank, 8), take(d.size, 8 * (size_t)d.rank);
    for (int a = 0; a < d.rank; a++) n *= d.size[a];
    n *= d.kind == 1 ? 2 : 1;
    take(d.v = malloc(8 * (size_t)n), 8 * (size_t)n);
    return d;
}

static duet_matrix *matrix_of(const data *d, duet_dtype t)
{
    const duet_dtype wide[] = { DUET_F64, DUET_C128, DUET_I64 };
    const duet_dtype type[] = { t, t == DUET_F32 ? DUET_C64 : DUET_C128, DUET_I64 };
    duet_matrix *w = duet_from_array_shape(d->v, wide[d->kind], (int)d->rank, d->size);
    duet_matrix *m = duet_eval(duet_cast(w, type[d->kind]));
    duet_free(&w);
    return m;
}

/* A result: whether there is one, its type, shape and elements. */
static void report(int number, const char *type, duet_matrix *m)
{
    int64_t ok = m != NULL, rank = m ? duet_rank(m) : 0, kind = m ? duet_type(m) : 0;
    if (!m) fprintf(stderr, "formula %d, %s: %s\n", number, type, duet_error());
    fwrite(&ok, 8, 1, to), fwrite(&kind, 8, 1, to), fwrite(&rank, 8, 1, to);
    for (int a = 0; a < rank; a++) fwrite(&(int64_t){ duet_size(m, a) }, 8, 1, to);
    if (m) {
        duet_matrix *w = duet_eval(duet_cast(m, DUET_C128));
        if (!w) fprintf(stderr, "formula %d, %s: %s\n", number, type, duet_error()), exit(4);
        fwrite(duet_read(w), 16, (size_t)duet_count(w), to);
        duet_free(&w, &m);
    }
    fflush(to);
}

static duet_expr real_of(duet_expr e)
{
    const duet_dtype t = duet_expr_type(e);
    return t == DUET_C64 || t == DUET_C128 ? duet_real(e) : e;
}
static duet_expr weighted(duet_expr y, duet_matrix *w) { return duet_sum(real_of(duet_mul(y, w))); }

typedef struct trial { const header *h; duet_matrix **m; formula *of; duet_dtype t; } trial;

/* Result number k of a formula y; `next` is 0 behind the last one. */
static duet_expr result(const trial *t, duet_expr y, int k, int *next)
{
    const header *h = t->h;
    const int n = (int)h->inputs;
    *next = 1;
    if (k == 0) return weighted(y, t->m[h->weights]);
    if (k <= n) return duet_grad(weighted(y, t->m[h->weights]), t->m[k - 1]);
    k -= n + 1;
    if (h->factor >= 0) {
        if (k < n) return duet_vjp(y, t->m[k], t->m[h->factor]);
        k -= n;
    }
    if (h->direction >= 0 && k < n) {
        const duet_expr g = duet_grad(weighted(y, t->m[h->weights]), t->m[h->of]);
        return duet_grad(weighted(g, t->m[h->direction]), t->m[k]);
    }
    *next = 0;
    return y;
}

static void one_by_one(const trial *t, int number, const char *type)
{
    for (int k = 0, next = 1; next; k++) {
        const duet_expr e = result(t, t->of(t->m, t->t), k, &next);
        if (next) report(number, type, duet_eval(e));
        else if (duet_drop(e)) fprintf(stderr, "drop: %s\n", duet_error());
    }
}

static void together(const trial *t, int number, const char *type)
{
    duet_assignment list[MOST];
    int count = 0;
    const duet_expr y = t->of(t->m, t->t);
    for (int next = 1; next; count++) {
        const duet_expr e = result(t, y, count, &next);
        if (!next) break;
        int64_t size[8];
        const int rank = duet_expr_rank(e);
        for (int a = 0; a < rank; a++) size[a] = duet_expr_size(e, a);
        duet_matrix *m = rank < 0 ? NULL : duet_new_shape(duet_expr_type(e), rank, size);
        list[count] = (duet_assignment){ m, e };
    }
    const duet_status s = duet_set_all_at(list, count, NULL);
    for (int k = 0; k < count; k++) {
        if (s != DUET_OK) duet_free((duet_matrix **)&list[k].to);
        report(number, type, s == DUET_OK ? list[k].to : NULL);
    }
}

int main(int argc, char **argv)
{
    from = fopen(argv[1], "rb"), to = fopen(argv[2], "ab");
    const int first = atoi(argv[3]);
    for (int i = 0; i < formula_count; i++) {
        header h;
        data d[MOST];
        take(&h, sizeof h);
        for (int k = 0; k < h.count; k++) d[k] = read_data();
        for (int f = 0; f < 2 && i >= first; f++) {
            duet_matrix *m[MOST];
            const trial t = { &h, m, formulas[i], f ? DUET_F64 : DUET_F32 };
            for (int k = 0; k < h.count; k++) m[k] = matrix_of(&d[k], t.t);
            (i % 2 ? together : one_by_one)(&t, i, f ? "f64" : "f32");
            for (int k = 0; k < h.count; k++) duet_free(&m[k]);
        }
        for (int k = 0; k < h.count; k++) free(d[k].v);
    }
    (void)argc;
    return 0;
}
'''


def c_text(g, number):
    name = {i: 'e%d' % i for i in g.order}
    name.update({i: n.text for i, n in enumerate(g.nodes) if not n.args})
    lines = ['duet_expr formula_%d(duet_matrix **m, duet_dtype t)' % number, '{', '    (void)t;']
    for i in g.order:
        lines.append('    const duet_expr e%d = %s;' % (i, format_text(g.nodes[i], name)))
    return '\n'.join(lines + ['    return e%d;' % g.root, '}', ''])


def format_text(n, name):
    text = n.text
    for k, a in enumerate(n.args):
        text = text.replace('{%d}' % k, name[a])
    return text


def data_of(g):
    out = [struct.pack('<6q', g.inputs, len(g.matrices), g.weights, g.factor, g.direction, g.of)]
    for m in g.matrices:
        m = np.asarray(m, order='C')
        out.append(struct.pack('<2q', {'f': 0, 'c': 1, 'i': 2}[m.dtype.kind], np.ndim(m)))
        out.append(struct.pack('<%dq' % m.ndim, *m.shape) if m.ndim else b'')
        out.append(m.tobytes())
    return b''.join(out)


def write_program(folder, formulas):
    size = 25
    with open(os.path.join(folder, 'data.bin'), 'wb') as f:
        for g in formulas:
            f.write(data_of(g))
    files = {'main.c': MAIN}
    for first in range(0, len(formulas), size):
        part = range(first, min(first + size, len(formulas)))
        files['part_%d.c' % first] = '#include "formulas.h"\n' + '\n'.join(c_text(formulas[i], i) for i in part)
    files['formulas.h'] = '#include <duet/duet.h>\ntypedef duet_expr formula(duet_matrix **, duet_dtype);\n' \
        'enum { formula_count = %d };\nextern formula *const formulas[];\n' % len(formulas) + \
        ''.join('formula formula_%d;\n' % i for i in range(len(formulas)))
    files['list.c'] = '#include "formulas.h"\nformula *const formulas[] = { %s };\n' \
        % ', '.join('formula_%d' % i for i in range(len(formulas)))
    for name, text in files.items():
        with open(os.path.join(folder, name), 'w') as f:
            f.write(text)
    return [n for n in files if n.endswith('.c')]


def compile_program(folder, sources, build):
    top = repository()
    build = os.path.abspath(build)
    cc = os.environ.get('CC', 'cc').split()
    flags = ['-std=gnu11', '-O0', '-I', os.path.join(top, 'include'), '-I', os.path.join(build, 'include')]
    running = []
    for s in sources:
        if len(running) >= (os.cpu_count() or 1):
            if running.pop(0).wait():
                sys.exit('the C program does not compile')
        running.append(subprocess.Popen(cc + flags + ['-c', s, '-o', s + '.o'], cwd=folder))
    if any([p.wait() for p in running]):
        sys.exit('the C program does not compile')
    subprocess.run(cc + [s + '.o' for s in sources] + ['-L', build, '-Wl,-rpath,' + build, '-lduet', '-o', 'gradients'],
                   cwd=folder, check=True)


def read_results(f, g, want):
    """The results of one formula in one type; None at the end of the file."""
    all = {}
    for kind, list in want.items():
        for _ in list:
            head = f.read(24)
            if len(head) < 24:
                return None
            ok, type, rank = struct.unpack('<3q', head)
            shape = struct.unpack('<%dq' % rank, f.read(8 * rank))
            n = int(np.prod(shape)) if ok else 0
            v = np.frombuffer(f.read(16 * n), np.complex128).reshape(shape) if ok else None
            all.setdefault(kind, []).append((type, v))
    return all


def results_of(folder, formulas, wants):
    """Duet's results of each formula: {type: results}, or a text if the program crashed in it."""
    out, all = os.path.join(folder, 'out.bin'), []
    env = dict(os.environ, DUET_CALIBRATE=os.environ.get('DUET_CALIBRATE', '0'))
    texts = ''
    while len(all) < len(formulas):
        if os.path.exists(out):
            os.remove(out)
        p = subprocess.run(['./gradients', 'data.bin', 'out.bin', str(len(all))], cwd=folder, env=env,
                           stderr=subprocess.PIPE, text=True)
        texts += p.stderr
        with open(out, 'rb') as f:
            while len(all) < len(formulas):
                i = len(all)
                made = {t: read_results(f, formulas[i], wants[i]) for t in LIMIT}
                if None in made.values():
                    break
                all.append(made)
        if len(all) < len(formulas):
            all.append('the program ended with status %d' % p.returncode)
    return all, texts

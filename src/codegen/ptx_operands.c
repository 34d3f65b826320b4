/* ptx_operands.c - reads and writes the operands of PTX kernels (ptx_writer.h). */
#include "ptx_writer.h"

enum { IN, OUT };
static const char *const names[] = { "in", "out" };

/* ---- arguments ---- */

/* Which inputs (CODE_INPUT) or outputs (CODE_STORE) the list uses. */
static uint32_t used(const writer *w, int operation)
{
    uint32_t which = 0;
    for (int i = 0; i < w->l->length; i++)
        if (w->l->node[i].operation == operation) which |= 1u << w->l->node[i].index;
    return which;
}

/* The word at a place of the arguments, in a register of its own. */
static int word(writer *w, int at)
{
    const int to = w->indices++;
    put(w, "ld.param.b32 %%i%d, [%s+%d];\n", to, w->args, at);
    return to;
}

static divisor divisor_at(writer *w, int at)
{
    divisor d = { word(w, at), 0, 0 };
    d.magic = word(w, at + 4);
    d.shift = word(w, at + 8);
    return d;
}

static void load_address(writer *w, const char *operand, int k, int at)
{
    put(w, "ld.param.u64 %%%s%d, [%s+%d];\ncvta.to.global.u64 %%%s%d, %%%s%d;\n", operand, k, w->args, at,
        operand, k, operand, k);
}

static void load_input(writer *w, arguments *a, const ptx_places *p, int k)
{
    const int access = w->r->access[k];
    if (access == PTX_GIVEN) return;
    load_address(w, "in", k, p->in[k]);
    if (ptx_repeats(access)) {
        a->in[k].run = divisor_at(w, p->in_words[k]);
        a->in[k].size = divisor_at(w, p->in_words[k] + 12);
        a->in[k].stride = word(w, p->in_words[k] + 24);
    }
    for (int x = 0; access == PTX_WALK && x < w->r->rank; x++)
        a->in_stride[k][x] = word(w, p->in_words[k] + 4 * x);
}

void ptx_load_arguments(writer *w, arguments *a)
{
    const ptx_places p = ptx_places_of(w->r);
    a->read = used(w, CODE_INPUT);
    a->written = used(w, CODE_STORE);
    put(w, "ld.param.s64 %%n, [%s+%d];\nld.param.s64 %%lead, [%s+%d];\n", w->args, p.n, w->args, p.lead);
    for (int k = 0; k < w->r->outputs; k++)
        if (a->written >> k & 1 && w->r->form == PTX_ELEMENTS) load_address(w, "out", k, p.out[k]);
    for (int x = 0; ptx_walks(w->r) && x < w->r->rank; x++) a->size[x] = divisor_at(w, p.sizes + 12 * x);
    for (int k = 0; k < w->r->inputs; k++)
        if (a->read >> k & 1) load_input(w, a, &p, k);
    for (int k = 0; w->r->out_walks && k < w->r->outputs; k++)
        for (int x = 0; x < w->r->rank; x++) a->out_stride[k][x] = word(w, p.out_strides[k] + 4 * x);
    for (int i = 0; i < w->l->length; i++) {
        const code_node *n = &w->l->node[i];
        if (n->operation != CODE_NUMBER) continue;
        w->reg[i] = fresh(w);
        put(w, "ld.param.b%d %%v%d, [%s+%d];\n", bits(w), w->reg[i], w->args,
            p.numbers + bits(w) / 8 * n->index);
    }
}

/* ---- places of elements ---- */

static int index2(writer *w, const char *name, int a, int b)
{
    const int to = w->indices++;
    put(w, "%s %%i%d, %%i%d, %%i%d;\n", name, to, a, b);
    return to;
}

/* e / d, as fast_divide.h does it. */
static int quotient(writer *w, int e, const divisor *d)
{
    return index2(w, "shr.u32", index2(w, "add.u32", index2(w, "mul.hi.u32", e, d->magic), e), d->shift);
}

static int multiplied_and_subtracted(writer *w, int e, int q, int by)
{
    return index2(w, "sub.s32", e, index2(w, "mul.lo.s32", q, by));
}

static int rest(writer *w, int e, const divisor *d)
{
    return multiplied_and_subtracted(w, e, quotient(w, e, d), d->by);
}

static int walked(writer *w, int e, const arguments *a, const int stride[])
{
    int at = -1;
    for (int x = w->r->rank - 1; x >= 0; x--) {
        const int q = x ? quotient(w, e, &a->size[x]) : 0,
                  i = x ? multiplied_and_subtracted(w, e, q, a->size[x].by) : e,
                  part = index2(w, "mul.lo.s32", i, stride[x]);
        at = at < 0 ? part : index2(w, "add.s32", at, part);
        e = q;
    }
    return at;
}

/* Sets %address to that of the element whose number is in %i of an input or output. */
static void address(writer *w, int operand, int k, int i)
{
    put(w, "mul.wide.s32 %%address, %%i%d, %d;\nadd.s64 %%address, %%address, %%%s%d;\n", i,
        bytes_of(operand == IN ? w->r->in_type[k] : w->r->out_type[k]), names[operand], k);
}

/* The place of element e in input k, if that is not dense. */
static int place_in(writer *w, const arguments *a, int k, int e)
{
    if (w->r->access[k] == PTX_WALK) return walked(w, e, a, a->in_stride[k]);
    const path *p = &a->in[k];
    return index2(w, "mul.lo.s32", rest(w, quotient(w, e, &p->run), &p->size), p->stride);
}

/* The number after i, of those below the divisor's. */
static int next_of(writer *w, int i, const divisor *size)
{
    const int more = w->indices++, to = w->indices++, c = w->conditions++;
    put(w, "add.s32 %%i%d, %%i%d, 1;\nsetp.lt.s32 %%c%d, %%i%d, %%i%d;\nselp.b32 %%i%d, %%i%d, 0, %%c%d;\n",
        more, i, c, more, size->by, to, more, c);
    return to;
}

/* ---- elements as they are in memory ---- */

static int kind_bits(const writer *w, char kind) { return kind == 'w' ? 32 : kind == 'd' ? 64 : bits(w); }

/* The type of a load or store. Narrow integers are extended to 32 bits. */
static const char *memory_type(int type)
{
    switch (bytes_of(type)) {
    case 1: return type == DUET_I8 ? "s8" : "u8";
    case 2: return type == DUET_I16 ? "s16" : "u16";
    case 4: return "b32";
    default: return "b64";
    }
}

static void put_raws(writer *w, char kind, const int reg[], int count)
{
    put(w, count > 1 ? "{" : "");
    for (int e = 0; e < count; e++) put(w, "%s%%%c%d", e ? ", " : "", kind, reg[e]);
    put(w, count > 1 ? "}" : "");
}

/* Reads or writes count elements at %address, by instructions of at most 16 bytes. */
static void move(writer *w, bool store, int type, const int reg[], int count)
{
    const int most = 16 / bytes_of(type), each = count < most ? count : most;
    for (int at = 0; at < count; at += each) {
        put(w, "%s.global", store ? "st" : "ld");
        if (each > 1) put(w, ".v%d", each);
        put(w, ".%s ", memory_type(type));
        if (store) put(w, "[%%address+%d], ", at * bytes_of(type));
        put_raws(w, ptx_kind(w, type), reg + at, each);
        put(w, store ? ";\n" : ", [%%address+%d];\n", at * bytes_of(type));
    }
}

static void load_at(writer *w, int type, int to) { move(w, false, type, &to, 1); }

/* ---- loads ---- */

static void load_place(writer *w, int k, int i, int stride, int to)
{
    address(w, IN, k, index2(w, "mul.lo.s32", i, stride));
    load_at(w, w->r->in_type[k], to);
}

/* The elements of a run, and perhaps of the next one. */
static void load_runs(writer *w, const arguments *a, int k, int e, const int to[])
{
    const path *p = &a->in[k];
    const int type = w->r->in_type[k], run = quotient(w, e, &p->run),
              within = multiplied_and_subtracted(w, e, run, p->run.by),
              left = index2(w, "sub.s32", p->run.by, within), here = ptx_fresh_raw(w, type),
              there = ptx_fresh_raw(w, type), i = rest(w, run, &p->size);
    const char kind = ptx_kind(w, type);
    load_place(w, k, i, p->stride, here);
    load_place(w, k, next_of(w, i, &p->size), p->stride, there);
    for (int u = 0; u < w->r->width; u++) {
        const int c = w->conditions++;
        put(w, "setp.gt.s32 %%c%d, %%i%d, %d;\nselp.b%d %%%c%d, %%%c%d, %%%c%d, %%c%d;\n", c, left, u,
            kind_bits(w, kind), kind, to[u], kind, here, kind, there, c);
    }
}

/* The vector's elements of an input that repeats, from element e on; all of them exist. */
static void load_repeated(writer *w, const arguments *a, int k, int e, const int to[])
{
    const path *p = &a->in[k];
    if (w->r->access[k] == PTX_RUNS) {
        load_runs(w, a, k, e, to);
        return;
    }
    int i = rest(w, e, &p->size);
    if (w->r->access[k] == PTX_ROUND) {
        address(w, IN, k, i);
        move(w, false, w->r->in_type[k], to, w->r->width);
        return;
    }
    for (int u = 0; u < w->r->width; u++) {
        load_place(w, k, i, p->stride, to[u]);
        if (u + 1 < w->r->width) i = next_of(w, i, &p->size);
    }
}

/* The number of element u of the vector. */
static int index_of(writer *w, int u)
{
    const int e = w->indices++;
    put(w, "cvt.u32.u64 %%i%d, %%e;\nadd.s32 %%i%d, %%i%d, %d;\n", e, e, e, u);
    return e;
}

static bool is_dense(const writer *w, int k)
{
    return w->r->access[k] == PTX_DENSE || w->r->access[k] == PTX_LOOSE;
}

/* Sets %address to that of element u of the vector, in a dense operand. */
static void dense_address(writer *w, int operand, int k, int u)
{
    const int bytes = bytes_of(operand == IN ? w->r->in_type[k] : w->r->out_type[k]);
    put(w, "mul.lo.s64 %%address, %%e, %d;\nadd.s64 %%address, %%address, %%%s%d;\n", bytes, names[operand],
        k);
    if (u) put(w, "add.s64 %%address, %%address, %d;\n", u * bytes);
}

/* Loads element u of the vector, which exists. */
static void load_one(writer *w, const arguments *a, int k, int u, int to)
{
    if (is_dense(w, k)) dense_address(w, IN, k, u);
    else address(w, IN, k, place_in(w, a, k, index_of(w, u)));
    load_at(w, w->r->in_type[k], to);
}

/* Loads a vector, all elements of which exist. */
static void load_whole(writer *w, const arguments *a, int k, const int to[])
{
    const int access = w->r->access[k];
    if (access == PTX_DENSE) {
        dense_address(w, IN, k, 0);
        move(w, false, w->r->in_type[k], to, w->r->width);
    } else if (access == PTX_ROUND || access == PTX_CYCLE || access == PTX_RUNS)
        load_repeated(w, a, k, index_of(w, 0), to);
    else
        for (int u = 0; u < w->r->width; u++) load_one(w, a, k, u, to[u]);
}

/* Writes a branch that is taken if element u of the vector does not exist. Returns its label. */
static int skip_unless_exists(writer *w, int u)
{
    const int label = w->labels++;
    put(w,
        "add.s64 %%address, %%e, %d;\nsetp.lt.s64 %%skip, %%address, 0;\nsetp.ge.s64 %%end, %%address, %%n;\n"
        "or.pred %%skip, %%skip, %%end;\n@%%skip bra L%d;\n",
        u, label);
    return label;
}

static bool is_loaded(const writer *w, const arguments *a, int k)
{
    return a->read >> k & 1 && w->r->access[k] != PTX_SINGLE && w->r->access[k] != PTX_GIVEN;
}

static void set_to_zero(writer *w, int type, int to)
{
    const char kind = ptx_kind(w, type);
    put(w, "mov.b%d %%%c%d, 0;\n", kind_bits(w, kind), kind, to);
}

void ptx_load_singles(writer *w, arguments *a)
{
    for (int k = 0; k < w->r->inputs; k++) {
        if (!(a->read >> k & 1) || w->r->access[k] != PTX_SINGLE) continue;
        const int raw = ptx_fresh_raw(w, w->r->in_type[k]);
        put(w, "mov.b64 %%address, %%in%d;\n", k);
        load_at(w, w->r->in_type[k], raw);
        a->single[k] = ptx_converted(w, w->r->in_type[k], raw);
    }
}

/* Registers for elements as they are in memory. */
typedef struct raws {
    int of[PROGRAM_INPUTS][4];
} raws;

static raws fresh_raws(writer *w, const arguments *a)
{
    raws r = { { { 0 } } };
    for (int k = 0; k < w->r->inputs; k++)
        for (int u = 0; u < w->r->width && is_loaded(w, a, k); u++)
            r.of[k][u] = ptx_fresh_raw(w, w->r->in_type[k]);
    return r;
}

static void load_wholes(writer *w, const arguments *a, const raws *r)
{
    for (int k = 0; k < w->r->inputs; k++)
        if (is_loaded(w, a, k)) load_whole(w, a, k, r->of[k]);
}

/* Loads those elements of the vector that exist; the others are 0. */
static void load_existing(writer *w, const arguments *a, const raws *r)
{
    for (int k = 0; k < w->r->inputs; k++)
        for (int u = 0; is_loaded(w, a, k) && u < w->r->width; u++)
            set_to_zero(w, w->r->in_type[k], r->of[k][u]);
    for (int u = 0; u < w->r->width; u++) {
        const int next = skip_unless_exists(w, u);
        for (int k = 0; k < w->r->inputs; k++)
            if (is_loaded(w, a, k)) load_one(w, a, k, u, r->of[k][u]);
        put(w, "L%d:\n", next);
    }
}

static void convert_all(writer *w, const arguments *a, const raws *r, vector *x)
{
    for (int k = 0; k < w->r->inputs; k++)
        for (int u = 0; u < w->r->width; u++)
            if (w->r->access[k] == PTX_GIVEN) x->in[k][u] = x->given[u];
            else if (is_loaded(w, a, k)) x->in[k][u] = ptx_converted(w, w->r->in_type[k], r->of[k][u]);
            else x->in[k][u] = a->single[k];
}

void ptx_load_vector(writer *w, const arguments *a, vector *x)
{
    const int part = w->labels++, done = w->labels++;
    const raws r = fresh_raws(w, a);
    x->whole = w->conditions++;
    put(w,
        "setp.ge.s64 %%c%d, %%e, 0;\nadd.s64 %%address, %%e, %d;\nsetp.le.s64 %%end, %%address, %%n;\n"
        "and.pred %%c%d, %%c%d, %%end;\n@!%%c%d bra L%d;\n",
        x->whole, w->r->width, x->whole, x->whole, x->whole, part);
    load_wholes(w, a, &r);
    put(w, "bra L%d;\nL%d:\n", done, part);
    load_existing(w, a, &r);
    put(w, "L%d:\n", done);
    convert_all(w, a, &r, x);
}

void ptx_load_whole(writer *w, const arguments *a, vector *x)
{
    const raws r = fresh_raws(w, a);
    load_wholes(w, a, &r);
    convert_all(w, a, &r, x);
}

/* ---- stores ---- */

static void store_whole(writer *w, const arguments *a, const vector *x)
{
    for (int k = 0; k < w->r->outputs; k++) {
        int reg[4] = { 0 };
        if (!(a->written >> k & 1)) continue;
        for (int u = 0; u < w->r->width; u++) reg[u] = x->out[u][k];
        dense_address(w, OUT, k, 0);
        move(w, true, w->r->out_type[k], reg, w->r->width);
    }
}

static void store_elements(writer *w, const arguments *a, const vector *x)
{
    for (int u = 0; u < w->r->width; u++) {
        const int next = skip_unless_exists(w, u);
        for (int k = 0; k < w->r->outputs; k++) {
            if (!(a->written >> k & 1)) continue;
            if (w->r->out_walks) address(w, OUT, k, walked(w, index_of(w, u), a, a->out_stride[k]));
            else dense_address(w, OUT, k, u);
            move(w, true, w->r->out_type[k], &x->out[u][k], 1);
        }
        put(w, "L%d:\n", next);
    }
}

/* Converts the results in x to the types of the outputs, in place, and stores them. */
void ptx_store_vector(writer *w, const arguments *a, vector *x)
{
    const int part = w->labels++, done = w->labels++;
    for (int u = 0; u < w->r->width; u++)
        for (int k = 0; k < w->r->outputs; k++)
            if (a->written >> k & 1) x->out[u][k] = ptx_stored(w, w->r->out_type[k], x->out[u][k]);
    if (!w->r->out_walks) {
        put(w, "@!%%c%d bra L%d;\n", x->whole, part);
        store_whole(w, a, x);
        put(w, "bra L%d;\nL%d:\n", done, part);
    }
    store_elements(w, a, x);
    put(w, "L%d:\n", done);
}

/* machine_trial.h - a step made by hand, run on every machine and compared with
 * machine_reference.c.
 *
 * Operands are in separate buffers, at any strides and alignment, between guard zones. After a run
 * every element of an output must have the expected value, and every other byte must be unchanged.
 * On the CPU each step runs with every instruction set and several numbers of threads. Steps that
 * are not vendor steps must give equal bits everywhere. */
#ifndef MACHINE_TRIAL_H
#define MACHINE_TRIAL_H

#include "cpu.h"
#include "dtype.h"
#include "element.h"
#include "generated.h"
#include "machine_reference.h"
#include "tap.h"
#include "test_rng.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* A machine is tested on its first device. */
static inline int device_tested(const machine *m) { return m->place == DUET_CPU ? HOST : DEFAULT_GPU; }

#define BUFFERS (STEP_INPUTS + STEP_OUTPUTS)
#define GUARD   37 /* elements, at least */

/* The host memory of one operand: before the run, after this run, and after the first run. */
typedef struct buffer {
    char *before, *now, *first;
    bool *written; /* elements that belong to an output */
    int64_t count, start;
    duet_dtype type;
} buffer;

typedef struct trial {
    step s;
    program code;
    double num[STEP_NUMBERS];
    buffer buffer[BUFFERS];
    int buffers;
    bool vendor; /* compared with an error bound, not bit by bit */
} trial;

/* ---- elements ---- */

/* Stores the element nearest to x, or another one where integers cannot represent NaN or
 * infinities. */
static void put(buffer *b, int64_t i, long double x)
{
    const bool real = !dtype_is_complex(b->type), whole = real && !is_floating(b->type);
    if (real) x = converted(whole ? DUET_F64 : b->type, b->type, x);
    element_put(b->type, b->before, i, x);
}
static long double get(const buffer *b, const char *p, int64_t i) { return element_value(b->type, p, i); }

/* ---- operands ---- */

/* Strides for any order of axes, with gaps; some are 0 if the operand may repeat. */
static inline layout any_layout(duet_dtype t, int rank, const int64_t *size, bool repeats)
{
    layout l;
    int order[DUET_RANK_MAX];
    layout_dense(&l, t, rank, size);
    if (chance(40)) return l;
    for (int a = 0; a < rank; a++) order[a] = a;
    for (int a = 0; a < rank && chance(50); a++) {
        int b = draw(rank), o = order[a];
        order[a] = order[b];
        order[b] = o;
    }
    int64_t stride = chance(25) ? 1 + draw(3) : 1;
    for (int a = rank; a-- > 0;) {
        l.stride[order[a]] = stride;
        if (repeats && chance(35)) l.stride[order[a]] = 0;
        else stride = stride * (size[order[a]] ? size[order[a]] : 1) + (chance(40) ? draw(5) : 0);
    }
    return l;
}

/* Draws elements from the seed, not from an input (test_rng.h), which they would use up. */
static void fill(buffer *b, int strange)
{
    const uint8_t *const kept = drawn_bytes;
    drawn_bytes = drawn_end;
    for (int64_t i = 0; i < b->count; i++) put(b, i, number(b->type, strange));
    drawn_bytes = kept;
}

static void add_operand(trial *t, operand *o, layout l, int strange)
{
    int64_t low, high;
    layout_span(&l, &low, &high);
    buffer *b = &t->buffer[t->buffers];
    *b = (buffer){ .type = l.type, .start = GUARD + draw(16) - low };
    b->count = b->start + high + GUARD;
    const size_t bytes = (size_t)b->count * dtypes[l.type].bytes;
    b->before = aligned_alloc(64, (bytes + 63) / 64 * 64);
    b->now = malloc(bytes);
    b->first = malloc(bytes);
    b->written = calloc((size_t)b->count, sizeof *b->written);
    fill(b, strange);
    *o = (operand){ t->buffers++, l };
}

static void add_output(trial *t, layout l) { add_operand(t, &t->s.out[t->s.outs++], l, 0); }
static void add_input(trial *t, layout l, int strange) { add_operand(t, &t->s.in[t->s.ins++], l, strange); }
static inline void add_dense(trial *t, bool out, duet_dtype type, int rank, const int64_t *size)
{
    layout l;
    layout_dense(&l, type, rank, size);
    if (out) add_output(t, l);
    else add_input(t, l, 0);
}
/* A number of a program; for integers, its bits. */
static inline double integer_number(int64_t x)
{
    double bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static void add_number(trial *t, double x)
{
    t->num[t->s.nums] = x;
    t->s.num[t->s.nums] = t->s.nums;
    t->s.nums++;
}

/* Axes from .. to - 1 of a layout. */
static layout axes_of(const layout *l, int from, int to)
{
    layout part = { .type = l->type, .rank = to - from };
    memcpy(part.size, l->size + from, (size_t)part.rank * sizeof *part.size);
    memcpy(part.stride, l->stride + from, (size_t)part.rank * sizeof *part.stride);
    return part;
}

/* The axes of an output: all that are not reduced. */
static layout kept_axes(const trial *t, const layout *l)
{
    return axes_of(l, 0, l->rank - (t->s.kernel == KERNEL_PROGRAM ? t->s.inner : 0));
}

static void add_axes(layout *l, const layout *more)
{
    memcpy(l->size + l->rank, more->size, (size_t)more->rank * sizeof *l->size);
    memcpy(l->stride + l->rank, more->stride, (size_t)more->rank * sizeof *l->stride);
    l->rank += more->rank;
}

/* Merges the axes that are reduced separately from the others. */
static inline void collapse(trial *t)
{
    layout *all[BUFFERS], inner[BUFFERS], *inners[BUFFERS];
    int n = 0;
    for (int k = 0; k < t->s.outs; k++) all[n++] = &t->s.out[k].at;
    for (int k = 0; k < t->s.ins; k++) all[n++] = &t->s.in[k].at;
    const int rank = t->s.out[0].at.rank, kept = rank - t->s.inner;
    for (int k = 0; k < n; k++) {
        inner[k] = axes_of(all[k], kept, rank);
        inners[k] = &inner[k];
        all[k]->rank = kept;
    }
    if (kept > 0 || !t->s.inner) layout_collapse(all, n);
    if (t->s.inner) {
        layout_collapse(inners, n);
        t->s.inner = (uint8_t)inner[0].rank;
    }
    for (int k = 0; k < n && t->s.inner; k++) add_axes(all[k], &inner[k]);
}

static void trial_free(trial *t)
{
    for (buffer *b = t->buffer; b < t->buffer + t->buffers; b++) {
        free(b->before);
        free(b->now);
        free(b->first);
        free(b->written);
    }
}

/* ---- random instructions ---- */

static source any_source(int kind, int n) { return (source){ (uint8_t)kind, (uint8_t)draw(n) }; }

/* A program under construction, and what it may read. */
typedef struct writer {
    const step *s;
    program *p;
    duet_dtype type;
    bool acc;
    uint32_t set;     /* slots that have been written */
    uint32_t written; /* inputs that an output was stored over */
} writer;

static source any_value(const writer *w)
{
    for (;;) {
        const int kind = draw(4);
        int count = PROGRAM_SLOTS;
        if (kind == FROM_INPUT) count = w->p->inputs;
        else if (kind == FROM_NUMBER) count = w->p->numbers;
        source s = any_source(kind, count);
        if (kind == FROM_ACC && w->acc) return (source){ FROM_ACC, 0 };
        if (kind == FROM_SLOT && !(w->set >> s.index & 1)) continue;
        if (kind == FROM_INPUT && w->written >> s.index & 1) continue;
        if (kind != FROM_ACC) return s;
    }
}

static inline void write_one(writer *w, int op, int output)
{
    instruction *i = &w->p->code[w->p->length++];
    *i = (instruction){ .op = (uint8_t)op, .type = (uint8_t)w->type };
    if (op == OP_STORE) {
        i->arg[0].index = (uint8_t)output;
        for (int k = 0; k < w->s->ins; k++)
            w->written |= (uint32_t)(w->s->in[k].slot == w->s->out[output].slot) << k;
    } else if (op == OP_SAVE) {
        i->arg[0] = any_source(FROM_SLOT, PROGRAM_SLOTS);
        w->set |= 1u << i->arg[0].index;
    } else
        for (int k = 0; k < (op == OP_LOAD ? 1 : op_infos[op].arity); k++) i->arg[k] = any_value(w);
    w->acc = true;
}

/* ---- running ---- */

static const struct variant {
    const char *isa;
    int threads;
    bool generated; /* by machine code made at run time, where there is some */
} variants[] = { { "avx512", 1, false }, { "avx512", 3, true }, { "avx2", 2, false },    { "avx2", 16, true },
                 { "avx512", 1, true },  { "avx2", 1, true },   { "portable", 1, false } };
#define VARIANTS ((int)(sizeof variants / sizeof *variants))

static const char *use_variant(const machine *m, int v)
{
    static char text[64];
    if (m->place != DUET_CPU) return "alone";
    setenv("DUET_ISA", variants[v].isa, 1);
    omp_set_num_threads(variants[v].threads);
    if (variants[v].threads > 1) cpu_serial_seconds = 0;
    else cpu_serial_seconds = 1;
    generated_mode = variants[v].generated ? GENERATED_AT_ONCE : GENERATED_NEVER;
    snprintf(text, sizeof text, "%s, %d threads%s", cpu_choose_isa(), variants[v].threads,
             variants[v].generated ? ", generated" : "");
    return text;
}

static const char *kernel_name(int kernel, enum epilogue epilogue)
{
    if (epilogue) return epilogue_infos[epilogue].name;
    return kernel_infos[kernel].name;
}

static char *sizes_text(const trial *t)
{
    static char text[4 * SHAPE_TEXT];
    char one[SHAPE_TEXT];
    const operand *o = &t->s.out[0];
    int n = snprintf(text, sizeof text, "%s %s", kernel_name(t->s.kernel, t->s.epilogue),
                     shape_text(one, o->at.type, o->at.rank, o->at.size));
    for (int i = 0; t->s.inner && i < t->code.length && n < SHAPE_TEXT; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %s", op_infos[t->code.code[i].op].name);
    if (t->s.inner) n += snprintf(text + n, sizeof text - (size_t)n, ", %d reduced,", t->s.inner);
    for (int k = 0; k < t->s.ins && k < 3; k++) {
        o = &t->s.in[k];
        n += snprintf(text + n, sizeof text - (size_t)n, " %s*",
                      shape_text(one, o->at.type, o->at.rank, o->at.size));
        n += snprintf(text + n, sizeof text - (size_t)n, "%s",
                      shape_text(one, o->at.type, o->at.rank, o->at.stride) + 3);
    }
    return text;
}

static void check_output(trial *t, int k, const expected *want, const char *how)
{
    const operand *o = &t->s.out[k];
    buffer *b = &t->buffer[o->slot];
    const layout l = kept_axes(t, &o->at);
    for (int64_t n = 0; n < layout_count(&l); n++) {
        int64_t index[DUET_RANK_MAX];
        unravel(&l, n, index);
        const int64_t at = b->start + place(&l, index);
        const long double got = get(b, b->now, at);
        b->written[at] = true;
        if (agrees(b->type, got, want[n])) continue;
        CHECK(false, "%s (%s): output %d, element %lld is %.20Lg, not %.20Lg +- %.3Lg", sizes_text(t), how, k,
              (long long)n, got, want[n].value, want[n].allowed);
        return;
    }
}

/* Marks the elements of outputs, which check_output does too. */
static inline void mark_outputs(trial *t)
{
    for (int k = 0; k < t->s.outs; k++) {
        buffer *b = &t->buffer[t->s.out[k].slot];
        const layout l = kept_axes(t, &t->s.out[k].at);
        for (int64_t n = 0; n < layout_count(&l); n++) {
            int64_t index[DUET_RANK_MAX];
            unravel(&l, n, index);
            b->written[b->start + place(&l, index)] = true;
        }
    }
}

/* Checks that nothing else was written, and that exact results equal those of the first run. */
static void check_rest(trial *t, const char *how, bool first)
{
    for (int k = 0; k < t->buffers; k++) {
        buffer *b = &t->buffer[k];
        const size_t bytes = dtypes[b->type].bytes;
        for (int64_t i = 0; i < b->count; i++) {
            const char *now = b->now + (size_t)i * bytes;
            if (b->written[i] && (first || t->vendor)) continue;
            const char *was = (b->written[i] ? b->first : b->before) + (size_t)i * bytes;
            bool same = !memcmp(now, was, bytes) ||
                        (b->written[i] && isnan(get(b, b->now, i)) && isnan(get(b, b->first, i)));
            if (same) continue;
            CHECK(false, "%s (%s): element %lld of buffer %d %s", sizes_text(t), how,
                  (long long)(i - b->start), k, b->written[i] ? "differs from the first run" : "was written");
            return;
        }
        if (first) memcpy(b->first, b->now, (size_t)b->count * bytes);
    }
}

/* Copies the buffers to the machine, runs the step, and copies them back. */
static duet_status run_once(trial *t, const machine *m)
{
    void *own[BUFFERS] = { 0 }, *data[BUFFERS] = { 0 };
    duet_status r = DUET_OK;
    for (int k = 0; k < t->buffers && r == DUET_OK; k++) {
        const buffer *b = &t->buffer[k];
        const size_t each = dtypes[b->type].bytes, bytes = (size_t)b->count * each;
        if ((r = m->alloc(device_tested(m), bytes, &own[k])) != DUET_OK) break;
        data[k] = (char *)own[k] + (size_t)b->start * each;
        r = m->upload(device_tested(m), own[k], b->before, bytes, 0);
    }
    const frame f = { .data = data, .num = t->num, .device = device_tested(m) };
    if (r == DUET_OK) r = m->run(&t->s, &f);
    for (int k = 0; k < t->buffers && r == DUET_OK; k++)
        r = m->download(device_tested(m), t->buffer[k].now, own[k],
                        (size_t)t->buffer[k].count * dtypes[t->buffer[k].type].bytes, 0);
    for (int k = 0; k < t->buffers; k++)
        if (own[k]) m->free(device_tested(m), own[k]);
    return r;
}

static inline void run_on(trial *t, const machine *m, expected *const want[])
{
    const char *why = m->unsupported_reason(&t->s);
    if (why) {
        CHECK(m->place != DUET_CPU, "%s: the CPU does not support the step: %s", sizes_text(t), why);
        return;
    }
    for (int v = 0; v < (m->place == DUET_CPU ? VARIANTS : 1); v++) {
        const char *how = use_variant(m, v);
        for (int again = 0; again < (t->vendor ? 2 : 1); again++) {
            duet_status r = run_once(t, m);
            if (!CHECK(r == DUET_OK, "%s (%s): %s", sizes_text(t), how, duet_error())) return;
            for (int k = 0; k < t->s.outs; k++) check_output(t, k, want[k], how);
            check_rest(t, how, m == device_machine(HOST) && v == 0 && again == 0);
        }
        m->forget(&t->s);
        CHECK(!t->s.cached, "%s: forget did not free the cached data", sizes_text(t));
    }
}

static inline void run_trial(trial *t)
{
    void *data[BUFFERS];
    expected *want[STEP_OUTPUTS] = { 0 };
    bool known = true;
    if (t->s.kernel == KERNEL_PROGRAM) t->s.program = &t->code;
    for (int k = 0; k < t->buffers; k++)
        data[k] = t->buffer[k].before + (size_t)t->buffer[k].start * dtypes[t->buffer[k].type].bytes;
    const frame f = { .data = data, .num = t->num };
    for (int k = 0; k < t->s.outs && known; k++) {
        const layout l = kept_axes(t, &t->s.out[k].at);
        want[k] = malloc(sizeof **want * (size_t)(layout_count(&l) + 1));
        known = reference(&t->s, &f, k, want[k]);
    }
    CHECK(known, "machine_reference.c does not know %s", kernel_name(t->s.kernel, t->s.epilogue));
    for (int d = 0; d < DEFAULT_GPU + 1 && known; d++)
        if (!device_absent(d)) run_on(t, device_machine(d), want);
    for (int k = 0; k < t->s.outs; k++) free(want[k]);
    trial_free(t);
}

#endif

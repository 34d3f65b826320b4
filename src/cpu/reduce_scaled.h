/* reduce_scaled.h - norms, means and variances whose sums overflow, and norms whose squares
 * underflow. Template, part of reduce_tmpl.c.
 *
 * Such an output is reduced again, with elements scaled by a power of two. Integers have none. */
#ifndef REDUCE_SCALED_H
#define REDUCE_SCALED_H

#ifdef FORMULA_INTEGERS
static bool may_overflow(const reduce_work *j, int k) { return false; }
static void finish_scaled(const reduce_work *j, const panel *p, const thread_memory *r, int threads, int k,
                          T *state)
{
}
#else

static bool is_row(const reduce_work *j, int k, int op) { return j->row[k] == &reduce_rows[op]; }

/* Can a sum of reduction k overflow although its result does not? */
static bool may_overflow(const reduce_work *j, int k) { return j->row[k]->scaled_outputs; }

/* Are the sums of all outputs good after the first pass? */
static bool are_exact(const reduce_work *j, int k, const T *state, int64_t width)
{
    const T *sum = state + sum_part(j->row[k]) * REDUCE_LANES;
    const T least = is_row(j, k, OP_norm) ? TYPED(REDUCE_LEAST) : K(0);
    bool exact = true;
    for (int64_t w = 0; w < width; w++) exact &= (ABS(sum[w]) >= least) & (ABS(sum[w]) < INF);
    return exact;
}

/* Sets the factors of outputs, given their states after the first pass. */
static void set_factors(T *factor, const reduce_work *j, int k, const T *state, int64_t width)
{
    const T *sum = state + sum_part(j->row[k]) * REDUCE_LANES;
    const bool norm = is_row(j, k, OP_norm);
    for (int64_t w = 0; w < width; w++) {
        const bool small = norm & (sum[w] < TYPED(REDUCE_LEAST)), nan = norm & (sum[w] != sum[w]);
        factor[w] = small ? TYPED(REDUCE_UP) : (nan | (ABS(sum[w]) < INF)) ? K(1) : TYPED(REDUCE_DOWN);
    }
}

/* The last instruction before `to` that saved to this slot. */
static int last_save(const program *p, int to, int slot)
{
    while (p->code[--to].op != OP_SAVE || p->code[to].arg[0].index != slot) {}
    return to;
}

/* The program that computes and stores the operand of the reduction at instruction `to`. */
static program front_program(const program *p, int to)
{
    const source x = p->code[to].arg[0];
    const uint8_t type = p->code[to].type;
    program f = { .inputs = p->inputs, .numbers = p->numbers, .slots = p->slots, .outputs = 1 };
    int end = 0;
    if (x.kind == FROM_ACC) end = to;
    if (x.kind == FROM_SLOT) end = last_save(p, to, x.index);
    for (int i = 0; i < end; i++)
        if (op_infos[p->code[i].op].kind != KIND_REDUCE) f.code[f.length++] = p->code[i];
    if (end == 0) f.code[f.length++] = (instruction){ .op = OP_LOAD, .type = type, .arg = { x } };
    f.code[f.length++] = (instruction){ .op = OP_STORE, .type = type };
    return f;
}

static int reduction_of_output(const program *p, int output)
{
    int i = 0;
    while (op_infos[p->code[i].op].kind != KIND_REDUCE || p->code[i].arg[2].index != output) i++;
    return i;
}

static void compile_retry(const reduce_work *j, int output, scaled_retry *a)
{
    const program *p = j->s->program;
    const int at = reduction_of_output(p, output);
    const program front = front_program(p, at),
                  reduction = { .length = 1,
                                .inputs = 1,
                                .outputs = 1,
                                .reductions = true,
                                .code = { { .op = p->code[at].op, .arg = { { FROM_INPUT, 0 } } } } };
    interp_compile(&a->front, &front, scalar_inputs(j), 0);
    interp_compile(&a->reduction, &reduction, 0, 0);
}

/* The states of reduction k, over scaled elements. */
static __attribute__((noinline)) void reduce_scaled(const reduce_work *j, const panel *p,
                                                    const thread_memory *r, int threads, int k,
                                                    const T *factor, T *root)
{
    scaled_retry a;
    reduce_work one = *j, as_is;
    step s = *j->s;
    program single;
    T scale[REDUCE_LANES], ones[REDUCE_LANES];
    for (int w = 0; w < REDUCE_LANES; w++) {
        scale[w] = j->adjacent ? factor[SMALLER(w, p->width - 1)] : factor[0];
        ones[w] = 1;
    }
    if (j->direct) {
        single.code[0] = j->s->program->code[reduction_of_output(j->s->program, k)];
        single.code[0].arg[2].index = 0;
        s.program = &single;
    } else {
        compile_retry(j, k, &a);
    }
    s.outs = 1;
    one.s = &s;
    one.retry = &a;
    one.scale = scale;
    one.row[0] = j->row[k];
    one.at[0] = 0;
    one.set_size = j->row[k]->parts * REDUCE_LANES;
    if (!is_row(j, k, OP_norm)) {
        as_is = one;
        as_is.scale = ones;
        one.as_is = &as_is;
    }
    reduce_elements(&one, p, r, threads, root);
}

/* Output w of a group. */
static panel panel_of_output(const reduce_work *j, const panel *p, int64_t w)
{
    panel one = { .width = 1 };
    for (int k = 0; k < j->s->ins; k++)
        one.in[k] = p->in[k] + w * row_stride(&j->kept_axes[k]) * (int64_t)sizeof(T);
    return one;
}

static __attribute__((noinline)) void finish_again(const reduce_work *j, const panel *p,
                                                   const thread_memory *r, int threads, int k, T *state)
{
    T factor[REDUCE_LANES], scaled[MOST_PARTS * REDUCE_LANES] = { 0 };
    const bool twice = is_row(j, k, OP_var);
    set_factors(factor, j, k, state, p->width);
    j->row[k]->results(state, state, p->width, j->n);
    if (j->grouped)
        for (int64_t w = 0; w < p->width; w++) {
            const panel one = panel_of_output(j, p, w);
            if (factor[w] != 1) reduce_scaled(j, &one, r, threads, k, factor + w, scaled + w);
        }
    else reduce_scaled(j, p, r, threads, k, factor, scaled);
    j->row[k]->results(scaled, scaled, p->width, j->n);
    for (int64_t w = 0; w < p->width; w++) {
        const T up = 1 / factor[w], once = scaled[w] * up;
        if (factor[w] != 1) state[w] = twice ? once * up : once;
    }
}

/* Converts states to results. States whose sums overflowed or underflowed are reduced again. */
static void finish_scaled(const reduce_work *j, const panel *p, const thread_memory *r, int threads, int k,
                          T *state)
{
    if (likely(are_exact(j, k, state, p->width))) j->row[k]->results(state, state, p->width, j->n);
    else finish_again(j, p, r, threads, k, state);
}

#endif
#endif

/* reduce_norm.h - norms whose squares overflow or underflow. Template, part of reduce_tmpl.c.
 *
 * Such a norm is reduced again, with elements scaled by a power of two. Integers have no norms. */
#ifndef REDUCE_NORM_H
#define REDUCE_NORM_H

#ifdef FORMULA_INTEGERS
static bool is_norm(const reduce_work *j, int k) { return false; }
static void finish_norms(const reduce_work *j, const panel *p, const thread_memory *r, int threads, int k,
                         T *s)
{
}
#else

static bool is_norm(const reduce_work *j, int k) { return j->row[k] == &reduce_rows[OP_norm]; }

static T scale_factor(T s)
{
    if (s == INF) return TYPED(REDUCE_NORM_DOWN);
    if (s < TYPED(REDUCE_NORM_LEAST)) return TYPED(REDUCE_NORM_UP);
    return K(1);
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

static void compile_retry(const reduce_work *j, int output, norm_retry *a)
{
    static const program squares = { .length = 1,
                                     .inputs = 1,
                                     .outputs = 1,
                                     .reductions = true,
                                     .code = { { .op = OP_norm, .arg = { { FROM_INPUT, 0 } } } } };
    const program front = front_program(j->s->program, reduction_of_output(j->s->program, output));
    interp_compile(&a->front, &front, scalar_inputs(j), 0);
    interp_compile(&a->norm, &squares, 0, 0);
}

/* The sums of squares of norm k, over scaled elements. */
static __attribute__((noinline)) void reduce_scaled(const reduce_work *j, const panel *p,
                                                    const thread_memory *r, int threads, int k,
                                                    const T *factor, T *root)
{
    norm_retry a;
    reduce_work one = *j;
    step s = *j->s;
    program single;
    for (int w = 0; w < REDUCE_LANES; w++)
        a.factor[w] = j->adjacent ? factor[SMALLER(w, p->width - 1)] : factor[0];
    one.direct = j->direct && !j->adjacent;
    if (one.direct) {
        single.code[0] = j->s->program->code[reduction_of_output(j->s->program, k)];
        single.code[0].arg[2].index = 0;
        s.program = &single;
    } else {
        compile_retry(j, k, &a);
    }
    s.outs = 1;
    one.s = &s;
    one.norm_retry = &a;
    one.row[0] = j->row[k];
    one.at[0] = 0;
    one.set_size = REDUCE_LANES;
    reduce_elements(&one, p, r, threads, root);
}

/* Converts sums of squares to norms. Sums that overflowed or underflowed are reduced again. */
static void finish_norms(const reduce_work *j, const panel *p, const thread_memory *r, int threads, int k,
                         T *s)
{
    T factor[REDUCE_LANES], scaled[REDUCE_LANES];
    bool exact = true;
    for (int64_t w = 0; w < p->width; w++) factor[w] = scale_factor(s[w]);
    for (int64_t w = 0; w < p->width; w++) exact &= factor[w] == 1;
    if (!exact) reduce_scaled(j, p, r, threads, k, factor, scaled);
    for (int64_t w = 0; w < p->width; w++)
        s[w] = factor[w] == 1 ? SQRT(s[w]) : SQRT(scaled[w]) * (1 / factor[w]);
}

#endif
#endif

/* reduce_norm.h - norms whose squares over- or underflow are taken again. A template, of reduce_tmpl.c alone, after its trees.
 * Integers have none. */
#ifndef REDUCE_NORM_H
#define REDUCE_NORM_H

#ifdef FORMULA_INTEGERS
static bool is_norm(const job *j, int k) { return (void)j, (void)k, false; }
static void finish_norms(const job *j, const panel *p, const room *r, int threads, int k, T *s) {}
#else

static bool is_norm(const job *j, int k) { return j->row[k] == &reduce_rows[OP_norm]; }

static T factor_of(T s)
{
    return s == INF ? TYPED(REDUCE_NORM_DOWN) : s < TYPED(REDUCE_NORM_LEAST) ? TYPED(REDUCE_NORM_UP) : K(1);
}

/* Where the value of a slot, at instruction `to`, was in the accumulator last. */
static int saved_at(const program *p, int to, int slot)
{
    while (p->code[--to].op != OP_SAVE || p->code[to].arg[0].index != slot) {}
    return to;
}

/* The formula in front of the reduction at instruction `to`, and a store. */
static program front_of(const program *p, int to)
{
    const source x = p->code[to].arg[0];
    const uint8_t type = p->code[to].type;
    program f = { .inputs = p->inputs, .numbers = p->numbers, .slots = p->slots, .outputs = 1 };
    const int end = x.kind == FROM_ACC ? to : x.kind == FROM_SLOT ? saved_at(p, to, x.index) : 0;
    for (int i = 0; i < end; i++)
        if (op_infos[p->code[i].op].kind != KIND_REDUCE) f.code[f.length++] = p->code[i];
    if (end == 0) f.code[f.length++] = (instruction){ .op = OP_LOAD, .type = type, .arg = { x } };
    f.code[f.length++] = (instruction){ .op = OP_STORE, .type = type };
    return f;
}

static int reduce_to(const program *p, int output)
{
    int i = 0;
    while (op_infos[p->code[i].op].kind != KIND_REDUCE || p->code[i].arg[2].index != output) i++;
    return i;
}

static void make_again(const job *j, int output, again *a)
{
    static const program squares = { .length = 1,
                                     .inputs = 1,
                                     .outputs = 1,
                                     .reductions = true,
                                     .code = { { .op = OP_norm, .arg = { { FROM_INPUT, 0 } } } } };
    const program front = front_of(j->s->program, reduce_to(j->s->program, output));
    tile_make(&a->front, &front, singles_of(j), 0);
    tile_make(&a->norm, &squares, 0, 0);
}

/* The sums of squares of norm k, taken again over elements times a factor. */
static __attribute__((noinline)) void reduce_again(const job *j, const panel *p, const room *r, int threads,
                                                   int k, const T *factor, T *root)
{
    again a;
    job one = *j;
    step s = *j->s;
    program only;
    for (int w = 0; w < REDUCE_LANES; w++)
        a.factor[w] = j->side ? factor[SMALLER(w, p->width - 1)] : factor[0];
    one.plain = j->plain && !j->side;
    if (one.plain) {
        only.code[0] = j->s->program->code[reduce_to(j->s->program, k)];
        only.code[0].arg[2].index = 0;
        s.program = &only;
    } else {
        make_again(j, k, &a);
    }
    s.outs = 1;
    one.s = &s, one.again = &a, one.row[0] = j->row[k], one.at[0] = 0, one.set = REDUCE_LANES;
    reduce_elements(&one, p, r, threads, root);
}

/* Sums of squares become norms; those that over- or underflowed are taken again. */
static void finish_norms(const job *j, const panel *p, const room *r, int threads, int k, T *s)
{
    T factor[REDUCE_LANES], scaled[REDUCE_LANES];
    bool safe = true;
    for (int64_t w = 0; w < p->width; w++) factor[w] = factor_of(s[w]);
    for (int64_t w = 0; w < p->width; w++) safe &= factor[w] == 1;
    if (!safe) reduce_again(j, p, r, threads, k, factor, scaled);
    for (int64_t w = 0; w < p->width; w++)
        s[w] = factor[w] == 1 ? SQRT(s[w]) : SQRT(scaled[w]) * (1 / factor[w]);
}

#endif
#endif

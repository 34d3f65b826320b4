/* test_machine.c - conformance of machines: every kind of step on difficult sizes, strides and
 * values. */
#include "machine_trial.h"
#include "quick.h"

/* With AddressSanitizer too, a failed allocation returns NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- element by element ---- */

static const struct {
    int rank;
    int64_t size[4];
} map_sizes[] = { { 1, { 0 } },         { 1, { 1 } },          { 1, { 7 } },        { 1, { 1031 } },
                  { 2, { 3, 600 } },    { 2, { 130, 10 } },    { 2, { 37, 41 } },   { 3, { 5, 9, 3 } },
                  { 3, { 3, 20, 64 } }, { 4, { 2, 3, 4, 5 } }, { 2, { 700, 1 } },   { 2, { 0, 5 } },
                  { 1, { 9000 } },      { 2, { 40, 513 } },    { 3, { 3, 33, 17 } } };
#define MAP_SIZES ((int)(sizeof map_sizes / sizeof *map_sizes))

static void map_operands(trial *t, duet_dtype type, int size, int outs, int ins, int strange)
{
    for (int k = 0; k < outs; k++)
        add_output(t, any_layout(type, map_sizes[size].rank, map_sizes[size].size, false));
    for (int k = 0; k < ins; k++) {
        if (chance(25)) t->s.in[t->s.ins++] = t->s.out[draw(outs)]; /* the output itself */
        else add_input(t, any_layout(type, map_sizes[size].rank, map_sizes[size].size, true), strange);
    }
    for (int k = 0; k < ins; k++) {
        const int slot = t->s.in[k].slot;
        for (int i = 0; i < t->buffer[slot].count && slot < outs; i++)
            put(&t->buffer[slot], i, number(type, strange));
    }
    collapse(t);
}

/* One row; its operands are inputs or numbers. */
static void test_row(int op, double lowest)
{
    for (int n = 0; n < 3 * MAP_SIZES; n++) {
        const duet_dtype type = n % 2 ? DUET_F64 : DUET_F32;
        const int arity = op_infos[op].arity;
        trial t = { .s.kernel = KERNEL_PROGRAM };
        map_operands(&t, type, n % MAP_SIZES, 1, arity, 10);
        if (lowest >= 0)
            for (int64_t i = 0; i < t.buffer[t.s.in[0].slot].count; i++)
                put(&t.buffer[t.s.in[0].slot], i,
                    fabsl(get(&t.buffer[t.s.in[0].slot], t.buffer[t.s.in[0].slot].before, i)));
        add_number(&t, number(type, 30));
        t.code = (program){ .length = 2, .inputs = (uint8_t)arity, .numbers = 1, .outputs = 1 };
        t.code.code[0] = (instruction){ .op = (uint8_t)op, .type = (uint8_t)type };
        for (int k = 0; k < arity; k++) t.code.code[0].arg[k] = (source){ FROM_INPUT, (uint8_t)k };
        if (arity > 1 && chance(40)) t.code.code[0].arg[1] = (source){ FROM_NUMBER, 0 };
        t.code.code[1] = (instruction){ .op = OP_STORE, .type = (uint8_t)type };
        run_trial(&t);
    }
    tap_point(op_infos[op].name);
}

static const int exact_ops[] = { OP_neg,           OP_abs, OP_sqrt,    OP_relu,    OP_add,   OP_sub,
                                 OP_mul,           OP_div, OP_minimum, OP_maximum, OP_equal, OP_less,
                                 OP_greater_equal, OP_fma, OP_where,   OP_add,     OP_mul,   OP_sub };

/* Up to `longest` instructions. */
static void random_program(trial *t, duet_dtype type, int longest)
{
    const step *s = &t->s;
    writer w = { .s = s, .p = &t->code, .type = type };
    t->code = (program){ .inputs = s->ins, .numbers = s->nums, .slots = PROGRAM_SLOTS, .outputs = s->outs };
    for (int o = 0; o < s->outs; o++) {
        for (int n = draw(longest / s->outs - 1) + !w.acc; n-- > 0;) {
            if (w.acc && chance(20)) write_one(&w, OP_SAVE, 0);
            else if (chance(10)) write_one(&w, OP_LOAD, 0);
            else write_one(&w, exact_ops[draw((int)(sizeof exact_ops / sizeof *exact_ops))], 0);
        }
        write_one(&w, OP_STORE, o);
    }
}

static void test_programs(int trials)
{
    for (int n = 0; n < trials; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const duet_dtype type = n % 2 ? DUET_F64 : DUET_F32;
        const int outs = chance(70) ? 1 : 1 + draw(PROGRAM_OUTPUTS),
                  ins = 1 + draw(chance(90) ? 4 : PROGRAM_INPUTS);
        map_operands(&t, type, draw(MAP_SIZES), outs, ins, draw(3) * 5);
        for (int k = 1 + draw(4); k-- > 0;) add_number(&t, number(type, 20));
        random_program(&t, type, chance(10) ? PROGRAM_LENGTH : 13 * outs);
        run_trial(&t);
    }
    tap_point("random programs");
}

/* Rows of n elements, and one element for all as the last input. */
static void even_operands(trial *t, duet_dtype type, int64_t n, int outs, int rows)
{
    layout dense, single;
    layout_dense(&dense, type, 1, &n);
    single = dense;
    single.stride[0] = 0;
    for (int k = 0; k < outs; k++) add_output(t, dense);
    for (int k = 0; k < rows; k++) {
        if (chance(20)) t->s.in[t->s.ins++] = t->s.out[draw(outs)];
        else add_input(t, dense, 3);
    }
    add_input(t, single, 0);
}

/* The elements at the end of a row: nothing beyond them may be accessed. */
static void test_ends(int64_t most)
{
    for (int64_t n = 1; n <= most; n++) {
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const duet_dtype type = n / 2 % 2 ? DUET_F64 : DUET_F32;
        even_operands(&t, type, n, 1 + draw(PROGRAM_OUTPUTS), 1 + draw(3));
        for (int k = 0; k < 2; k++) add_number(&t, number(type, 0));
        random_program(&t, type, chance(30) ? 40 : 6 * t.s.outs);
        run_trial(&t);
    }
    tap_point("ends of rows");
}

/* One operator with operands from anywhere: the accumulator, two rows, one element, a number, a
 * slot. */
static void test_form(int op, duet_dtype type, int form)
{
    const source from[] = { { FROM_ACC, 0 },   { FROM_INPUT, 0 },  { FROM_INPUT, 1 },
                            { FROM_INPUT, 2 }, { FROM_NUMBER, 0 }, { FROM_SLOT, 3 } };
    const bool again = chance(50); /* its operand is read once more */
    trial t = { .s.kernel = KERNEL_PROGRAM };
    even_operands(&t, type, 1 + draw(400), 1, 2);
    add_number(&t, number(type, 0));
    add_number(&t, number(type, 0));
    instruction code[] = { { OP_sub, 0, { { FROM_INPUT, 1 }, { FROM_NUMBER, 1 } } },
                           { OP_SAVE, 0, { { FROM_SLOT, 3 } } },
                           { OP_abs, 0, { { FROM_ACC, 0 } } },
                           { .op = (uint8_t)op },
                           { OP_sub, 0, { { FROM_ACC, 0 }, { FROM_SLOT, 3 } } },
                           { OP_add, 0, { { FROM_INPUT, 0 }, { FROM_ACC, 0 } } },
                           { OP_STORE, 0, { { 0 } } } };
    for (int k = 0; k < op_infos[op].arity; k++, form /= 6) code[3].arg[k] = from[form % 6];
    t.code = (program){ .inputs = 3, .numbers = 2, .slots = 4, .outputs = 1 };
    for (int i = 0; i < 7; i++) {
        if ((i == 4 || i == 5) && !again) continue;
        code[i].type = (uint8_t)type;
        t.code.code[t.code.length++] = code[i];
    }
    run_trial(&t);
}

static void test_forms(int every)
{
    static const int power[] = { 1, 6, 36, 216 };
    int n = 0;
    for (int k = 0; k < (int)(sizeof exact_ops / sizeof *exact_ops) - 3; k++)
        for (int form = 0; form < power[op_infos[exact_ops[k]].arity]; form++)
            if (n++ % every == 0) test_form(exact_ops[k], n / every % 2, form);
    tap_point("operands of every layout");
}

/* Integers in any layout. In a double, many would be NaN. */
static void test_integers(void)
{
    for (int n = 0; n < 6 * MAP_SIZES; n++) {
        const int size = n % MAP_SIZES;
        trial t = { .s.kernel = KERNEL_PROGRAM };
        const instruction load = { OP_LOAD, DUET_I64, { { n % 6 == 5 ? FROM_NUMBER : FROM_INPUT, 0 } } };
        add_output(&t, any_layout(DUET_I64, map_sizes[size].rank, map_sizes[size].size, false));
        add_input(&t, any_layout(DUET_I64, map_sizes[size].rank, map_sizes[size].size, true), 0);
        collapse(&t);
        add_number(&t, integer_number(draw(2000001) - 1000000));
        t.code = (program){ .length = 2,
                            .inputs = 1,
                            .numbers = 1,
                            .outputs = 1,
                            .code = { load, { OP_STORE, DUET_I64, { { 0 } } } } };
        run_trial(&t);
    }
    tap_point("integers");
}

/* ---- pooling ---- */

static int64_t out_size(int64_t in, int64_t window, int stride, int pad)
{
    return (in + 2 * pad - window) / stride + 1;
}

/* Many 2 x 2 windows side by side, some in long rows. */
static void test_pools(int trials)
{
    for (int n = 0; n < trials; n++) {
        const bool halves = chance(40), wide = halves && chance(15);
        const int type = n % 2, window[2] = { halves ? 2 : 1 + draw(3), halves ? 2 : 1 + draw(3) },
                  stride[2] = { halves ? 2 : 1 + draw(3), halves ? 2 : 1 + draw(3) },
                  pad[2] = { halves ? 0 : draw(4), halves ? 0 : draw(4) };
        const int64_t in[4] = { draw(3), 1 + draw(3), 3 + draw(halves ? 40 : 9), 3 + draw(wide ? 3000 : 40) };
        const int64_t out[4] = { in[0], in[1], out_size(in[2], window[0], stride[0], pad[0]),
                                 out_size(in[3], window[1], stride[1], pad[1]) };
        trial t = { .s.kernel = chance(50) ? OP_max_pool2d : OP_avg_pool2d,
                    .s.attr.pool = { .window = { window[0], window[1] },
                                     .stride = { stride[0], stride[1] },
                                     .pad = { pad[0], pad[1] } } };
        add_dense(&t, true, type, 4, out);
        add_input(&t, any_layout(type, 4, in, true), chance(30) ? 5 : 0);
        run_trial(&t);
    }
    tap_point("pooling");
}

static int64_t reach(int64_t window, int dilation) { return (window - 1) * dilation + 1; }

static void test_conv(int trials)
{
    for (int n = 0; n < trials; n++) {
        const int type = n % 3 == 2, stride[2] = { 1 + draw(2), 1 + draw(2) }, pad[2] = { draw(3), draw(3) };
        int64_t filters[4] = { 1 + draw(chance(20) ? 40 : 5), chance(5) ? 0 : 1 + draw(chance(20) ? 20 : 4),
                               1 + draw(3), 1 + draw(3) };
        const int dilation[2] = { 1 + draw(2), 1 + chance(30) }, groups = chance(30) ? 1 + draw(3) : 1;
        const int64_t in[4] = { draw(5), filters[1] * groups, 5 + draw(9), 5 + draw(12) };
        filters[0] *= groups;
        const int64_t out[4] = { in[0], filters[0],
                                 out_size(in[2], reach(filters[2], dilation[0]), stride[0], pad[0]),
                                 out_size(in[3], reach(filters[3], dilation[1]), stride[1], pad[1]) };
        static const int kernels[] = { OP_conv2d, OP_conv2d_input_grad, OP_conv2d_filter_grad };
        const int way = draw(3);
        const int64_t *const operands[][3] = { { in, filters, out },
                                               { out, filters, in },
                                               { in, out, filters } },
                             *const *size = operands[way];
        trial t = { .s = { .kernel = kernels[way],
                           .attr.conv = { .stride = { stride[0], stride[1] },
                                          .pad = { pad[0], pad[1] },
                                          .dilation = { dilation[0], dilation[1] },
                                          .groups = groups,
                                          .flip = way ? 0 : draw(2) } },
                    .vendor = true };
        add_dense(&t, true, type, 4, size[2]);
        add_input(&t, any_layout(type, 4, size[0], chance(20)), 0);
        add_input(&t, any_layout(type, 4, size[1], chance(20)), 0);
        run_trial(&t);
    }
    tap_point("convolution");
}

/* ---- products ---- */

static double factor(void) { return chance(60) ? (draw(2001) - 1000) * 3e-3 : draw(3) - 1; }

static void matmul_trial(duet_dtype type, int64_t m, int64_t n, int64_t k, int addend)
{
    trial t = { .s.kernel = OP_matmul, .vendor = true };
    add_dense(&t, true, type, 2, (int64_t[]){ m, n });
    add_input(&t, any_layout(type, 2, (int64_t[]){ m, k }, chance(20)), 0);
    add_input(&t, any_layout(type, 2, (int64_t[]){ k, n }, chance(20)), 0);
    if (addend || chance(50)) add_number(&t, factor());
    if (addend == 1) t.s.in[t.s.ins++] = t.s.out[0];
    if (addend == 2) add_input(&t, any_layout(type, 2, (int64_t[]){ m, n }, true), 0);
    if (addend) add_number(&t, factor());
    run_trial(&t);
}

static void test_matmul(int trials)
{
    static const int64_t few[] = { 0, 1, 1, 2, 5, 17, 40 };
    for (int n = 0; n < trials; n++) matmul_trial(n % 2, few[draw(7)], few[draw(7)], few[draw(7)], n % 3);
    tap_point("products");
    for (int addend = 0; addend < 3; addend++) {
        matmul_trial(addend % 2, 130, 70, 300, addend);
        matmul_trial(addend % 2, 300, 1, 200, addend);
    }
    tap_point("larger products");
}

/* 0 * NaN is NaN, in the product and in the addend. */
static void test_zero_factors(void)
{
    for (int n = 0; n < 8; n++) {
        trial t = { .s.kernel = OP_matmul, .vendor = true };
        add_dense(&t, true, n % 2, 2, (int64_t[]){ 3, 4 });
        for (int k = 0; k < 3; k++) add_dense(&t, false, n % 2, 2, (int64_t[]){ k == 1 ? 4 : 3, 4 });
        add_number(&t, n & 2 ? 0 : 2);
        add_number(&t, n & 4 ? 0 : 2);
        buffer *a = &t.buffer[t.s.in[0].slot], *c = &t.buffer[t.s.in[2].slot];
        put(a, a->start + 4, NAN);
        put(c, c->start + 1, NAN);
        put(c, c->start + 11, INFINITY);
        run_trial(&t);
    }
    tap_point("products with factor zero");
}

/* ---- other functions of a machine ---- */

static void test_memory(const machine *m)
{
    enum { N = 5000 };
    char from[N], to[N];
    void *p, *large;
    for (int i = 0; i < N; i++) from[i] = (char)draw(256);
    if (!CHECK(m->alloc(device_tested(m), N, &p) == DUET_OK &&
                   m->alloc(device_tested(m), (size_t)9 << 20, &large) == DUET_OK,
               "%s: alloc: %s", m->name, duet_error()))
        return;
    CHECK((uintptr_t)p % 64 == 0 && (uintptr_t)large % 64 == 0, "%s: an address is not aligned to 64",
          m->name);
    CHECK(m->upload(device_tested(m), p, from, N, 0) == DUET_OK &&
              m->clear(device_tested(m), (char *)p + 10, 100, 0) == DUET_OK,
          "%s: %s", m->name, duet_error());
    CHECK(m->wait(device_tested(m), 1, device_tested(m), 0) == DUET_OK &&
              m->download(device_tested(m), to, p, N, 1) == DUET_OK,
          "%s: %s", m->name, duet_error());
    memset(from + 10, 0, 100);
    CHECK(!memcmp(from, to, N), "%s: the downloaded bytes differ from the uploaded ones", m->name);
    CHECK(m->sync(device_tested(m), 0) == DUET_OK && m->sync(device_tested(m), 1) == DUET_OK,
          "%s: sync failed", m->name);
    m->free(device_tested(m), p);
    m->free(device_tested(m), large);
    CHECK(m->alloc(device_tested(m), (size_t)1 << 60, &p) == DUET_NO_MEMORY && *duet_error(),
          "%s: allocating 2^60 bytes did not fail with NO_MEMORY", m->name);
    tap_point("memory");
}

static void test_refusals(const machine *m)
{
    trial t = { .s.kernel = OP_matmul };
    const int64_t much = (int64_t)1 << 31;
    layout_dense(&t.s.out[0].at, DUET_F32, 2, (int64_t[]){ much, 1 });
    layout_dense(&t.s.in[0].at, DUET_F32, 2, (int64_t[]){ much, 1 });
    layout_dense(&t.s.in[1].at, DUET_F32, 2, (int64_t[]){ 1, 1 });
    t.s.outs = 1;
    t.s.ins = 2;
    CHECK(m->unsupported_reason(&t.s), "%s supports a product with a size above INT_MAX", m->name);
    t.s.kernel = OP_transpose;
    CHECK(m->unsupported_reason(&t.s), "%s supports a transpose as a step", m->name);
    t.s.kernel = KERNEL_LAYER_NORM;
    t.s.in[1].at.type = DUET_F64;
    CHECK(m->unsupported_reason(&t.s), "%s supports operands of two types", m->name);
    t.s.bytes = 1e9;
    t.s.flops = 1e9;
    CHECK(m->cost(&t.s) > 1e-6 && m->cost(&t.s) < 10, "%s: the cost is %g s", m->name, m->cost(&t.s));
    tap_point("invalid and unsupported arguments");
}

int main(int argc, char **argv)
{
    const bool quick = is_quick(argc, argv);
    for (int d = 0; d < DEFAULT_GPU + 1; d++)
        if (!device_absent(d)) {
            test_memory(device_machine(d));
            test_refusals(device_machine(d));
        }
#define DUET_MAP1(name, ...) test_row(OP_##name, OP_##name == OP_pow ? 0 : -1);
#define DUET_MAP2            DUET_MAP1
#define DUET_MAP3            DUET_MAP1
#include <duet/ops.def>
    test_programs(quick ? 60 : 600);
    test_ends(quick ? 40 : 300);
    test_forms(quick ? 10 : 1);
    test_integers();
    test_pools(quick ? 40 : 200);
    test_conv(quick ? 20 : 120);
    test_matmul(quick ? 60 : 400);
    test_zero_factors();
    return tap_end();
}

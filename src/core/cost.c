/* cost.c - estimates how many seconds a step or a copy takes. */
#include "cost.h"
#include "dtype.h"
#include <math.h>

#define NUMBERS_IN(...) ((int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)))
const cost_info cost_infos[COSTS] = {
#define COST(name, unit, ...) { #name, unit, NUMBERS_IN(__VA_ARGS__), { __VA_ARGS__ } },
#include "cost.def"
};

double cost_at(const costs *c, enum cost kind, double work)
{
    const cost_info *k = &cost_infos[kind];
    const double *x = k->work, *y = c->seconds[kind];
    int i = 1;
    if (!(work > x[0])) return y[0];
    while (i < k->points - 1 && work > x[i]) i++;
    return y[i - 1] + (work - x[i - 1]) * (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
}

/* ---- the costs in use ---- */

static costs given[COSTED];
static const costs *in_use; /* given, or NULL: the built-in costs of the machines are used */
static unsigned edition = 1;
static char where_from[COST_ORIGIN] = "as shipped";

/* All devices of a machine have the costs of its first one. */
static int first_device_of(const machine *m)
{
    int first = 0;
    while (device_machine(first) != m) first++;
    return first;
}

const costs *costs_now(int device)
{
    const costs *c = __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
    const int first = first_device_of(device_machine(device));
    return c && first < COSTED ? &c[first] : device_machine(device)->costs;
}

unsigned costs_edition(void) { return __atomic_load_n(&edition, __ATOMIC_ACQUIRE); }

const char *costs_origin(void) { return costs_edition() > 1 ? where_from : "as shipped"; }

void costs_use(const costs measured[COSTED], const char *origin)
{
    snprintf(where_from, sizeof where_from, "%s", origin);
    for (int d = 0; d < COSTED && measured; d++) given[d] = measured[d];
    __atomic_store_n(&in_use, measured ? given : NULL, __ATOMIC_RELEASE);
    __atomic_add_fetch(&edition, 1, __ATOMIC_RELEASE);
}

bool costs_sound(const costs *c, int device)
{
    for (enum cost k = 0; k < COSTS; k++)
        for (int i = 0; i < cost_infos[k].points && !(cost_is_of_copies(k) && device == HOST); i++) {
            const double y = c->seconds[k][i], before = i ? c->seconds[k][i - 1] : 0;
            if (!(y > 0 && y >= before && y < 1e3)) return false;
        }
    return true;
}

/* ---- steps ---- */

/* The unit of the next three is the time of a function such as exp. SIMPLE is an operator that rounds
 * once, or one step of a reduction. BUTTERFLY is an operation of a Fourier transform; FFTW on one
 * core has this rate, and cuFFT about the same. */
#define SIMPLE    0.15
#define BUTTERFLY 0.06

/* The time of each operator. Divisions and roots take about as long as a function. */
static const double weight[OPS_ALL] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, ...) [OP_##name] = (ulp) > 0.5 ? 1 : SIMPLE,
#define DUET_MAP2                                          DUET_MAP1
#define DUET_MAP3                                          DUET_MAP1
#define DUET_INT1(name, ...)                               [OP_##name] = SIMPLE,
#define DUET_INT2                                          DUET_INT1
#define DUET_FOLD1(name, ...)                              [OP_##name] = SIMPLE,
#define DUET_FOLD2                                         DUET_FOLD1
#define DUET_PLACE1                                        DUET_FOLD1
#define DUET_MOMENT1(name, ...)                            [OP_##name] = 4 * SIMPLE,
#include <duet/ops.def>
    [OP_div] = 1,
    [OP_sqrt] = 1,
};

double cost_weight(enum op op) { return weight[op]; }

static double program_weight(const program *p)
{
    double sum = 0;
    for (const instruction *i = p->code; i < p->code + p->length; i++) sum += weight[i->op];
    return sum;
}

/* Does the step use the costs of f64? Products of integers are computed in i64 and use them too. */
static bool is_f64(const step *s)
{
    if (s->kernel == KERNEL_PROGRAM) return dtypes[s->program->code[0].type].bytes == sizeof(double);
    return s->ins && (is_int_gemm(s) || s->in[0].at.type == DUET_F64 || s->in[0].at.type == DUET_C128);
}

/* The time of one pass over the operands that evaluates `functions` functions such as exp. */
static double cost_of_functions(const step *s, const costs *c, double functions)
{
    return fmax(cost_at(c, COST_pass, s->bytes),
                cost_at(c, is_f64(s) ? COST_function_f64 : COST_function, functions));
}

static double outputs_of(const step *s) { return (double)layout_count(&s->out[0].at); }

double cost_of_pass(const step *s, const costs *c) { return cost_of_functions(s, c, 0); }

double cost_of_program(const step *s, const costs *c)
{
    return cost_of_functions(s, c, outputs_of(s) * program_weight(s->program));
}

double cost_of_softmax(const step *s, const costs *c) { return cost_of_functions(s, c, 2 * outputs_of(s)); }
double cost_of_flops(const step *s, const costs *c) { return cost_of_functions(s, c, s->flops * SIMPLE); }

double cost_of_transform(const step *s, const costs *c)
{
    return cost_of_functions(s, c, s->flops * BUTTERFLY);
}

double cost_of_pooling(const step *s, const costs *c)
{
    const int32_t *window = s->attr.pool.window;
    return cost_of_functions(s, c, outputs_of(s) * window[0] * window[1] * SIMPLE);
}

/* The shortest side of a product limits its speed. COST_thin is measured for products of few rows with
 * a 1000 x 1000 matrix. It gives the time of an operation if the shortest side is that short. */
static double thin_cost(const step *s, const costs *c)
{
    const double m = (double)s->in[0].at.size[0], k = (double)s->in[0].at.size[1],
                 n = (double)s->in[1].at.size[1];
    const double rows = fmax(1, fmin(m, fmin(k, n))), start = c->seconds[COST_product][0];
    return start + fmax(0, cost_at(c, COST_thin, rows) - start) * (m / rows) * (n / 1000) * (k / 1000);
}

/* The time of a product of square matrices with this number of operations. */
static double square_cost(const step *s, const costs *c, double flops)
{
    return fmax(cost_at(c, is_f64(s) ? COST_product_f64 : COST_product, flops),
                cost_at(c, COST_pass, s->bytes));
}

double cost_of_product(const step *s, const costs *c)
{
    return is_int_gemm(s) ? cost_of_flops(s, c) : fmax(square_cost(s, c, s->flops), thin_cost(s, c));
}

double cost_of_batched(const step *s, const costs *c)
{
    return is_int_gemm(s) ? cost_of_flops(s, c) : square_cost(s, c, s->flops);
}

double cost_of_conv(const step *s, const costs *c)
{
    return fmax(cost_at(c, COST_conv, s->flops), cost_at(c, COST_pass, s->bytes));
}

/* Linear algebra is not measured. An operation is assumed to take three times as long as one of a
 * product. */
double cost_of_solver(const step *s, const costs *c) { return square_cost(s, c, 3 * s->flops); }

double cost_of_move(size_t bytes, int to, bool pinned)
{
    static const enum cost kind[2][2] = { { COST_down, COST_down_pinned }, { COST_up, COST_up_pinned } };
    if (!bytes) return 0;
    const int gpu = to == HOST ? DEFAULT_GPU : to;
    return cost_at(costs_now(gpu), kind[to != HOST][pinned], (double)bytes);
}

/* cost.c - how long a step or a move is expected to take. */
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

/* ---- which are in use ---- */

static costs given[COSTED];
static const costs *in_use; /* given, or NULL: those that the machines ship with */
static unsigned edition = 1;
static char where_from[COST_ORIGIN] = "as shipped";

const costs *costs_now(int device)
{
    const costs *c = __atomic_load_n(&in_use, __ATOMIC_ACQUIRE);
    if (!c) return device_machine(device)->costs;
    return &c[device < COSTED ? device : DEFAULT_GPU];
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

static bool moves(enum cost k) { return k >= COST_up; }

bool costs_sound(const costs *c, int device)
{
    for (enum cost k = 0; k < COSTS; k++)
        for (int i = 0; i < cost_infos[k].points && !(moves(k) && device == HOST); i++) {
            const double y = c->seconds[k][i], before = i ? c->seconds[k][i - 1] : 0;
            if (!(y > 0 && y >= before && y < 1e3)) return false;
        }
    return true;
}

/* ---- steps ---- */

/* What an operator that rounds once takes, and a step of a reduction, as a part of a function such as exp. */
#define SIMPLE 0.15

/* An operation of a Fourier transform, as they are counted, in the same way: FFTW's rates on one core, and about cuFFT's. */
#define BUTTERFLY 0.06

/* By operator, in functions. Divisions and roots take about as long as a function. */
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

static double program_weight(const program *p)
{
    double sum = 0;
    for (const instruction *i = p->code; i < p->code + p->length; i++) sum += weight[i->op];
    return sum;
}

/* How many functions such as exp a step evaluates. */
typedef double function_count(const step *s);

static double outputs_of(const step *s) { return (double)layout_count(&s->out[0].at); }
static double functions_of_program(const step *s) { return outputs_of(s) * program_weight(s->program); }
static double functions_of_softmax(const step *s) { return 2 * outputs_of(s); }
static double functions_of_flops(const step *s) { return s->flops * SIMPLE; }
static double functions_of_transform(const step *s) { return s->flops * BUTTERFLY; }
static double functions_of_pooling(const step *s)
{
    return outputs_of(s) * s->attr.pool.window[0] * s->attr.pool.window[1] * SIMPLE;
}

/* By kernel; NULL: none. */
static function_count *const function_counts[KERNELS_ALL] = {
    [KERNEL_PROGRAM] = functions_of_program,
#define DUET_FUSED(name, ...) [KERNEL_##name] = outputs_of,
#include "fused.def"
    [OP_softmax] = functions_of_softmax,       [OP_log_softmax] = functions_of_softmax,
    [OP_max_pool2d] = functions_of_pooling,    [OP_avg_pool2d] = functions_of_pooling,
    [OP_max_pool2d_grad] = functions_of_flops, [OP_avg_pool2d_grad] = functions_of_flops,
    [OP_upsample2d] = functions_of_flops,      [KERNEL_LAYER_NORM] = functions_of_flops,
    [KERNEL_RANDOM] = functions_of_flops,      [OP_fftn] = functions_of_transform,
    [OP_fftconvolve] = functions_of_transform,
};

static double functions_of(const step *s)
{
    if (is_whole_product(s)) return functions_of_flops(s);
    function_count *const count = function_counts[s->kernel];
    return count ? count(s) : 0;
}

/* Half as many elements in a register: integers too, whatever they are stored as. */
static bool is_f64(const step *s)
{
    if (s->kernel == KERNEL_PROGRAM) return dtypes[s->program->code[0].type].bytes == sizeof(double);
    return s->ins && (is_whole_product(s) || s->in[0].at.type == DUET_F64 || s->in[0].at.type == DUET_C128);
}

static double cost_of_pass(const step *s, const costs *c)
{
    return fmax(cost_at(c, COST_pass, s->bytes),
                cost_at(c, is_f64(s) ? COST_function_f64 : COST_function, functions_of(s)));
}

/* The shortest side of a product, of which square ones have much, is what it gains from: how much an operation takes more where that is
 * short, is known from few rows by a large square matrix. */
static double thin_cost(const step *s, const costs *c)
{
    const double m = (double)s->in[0].at.size[0], k = (double)s->in[0].at.size[1],
                 n = (double)s->in[1].at.size[1];
    const double rows = fmax(1, fmin(m, fmin(k, n))), start = c->seconds[COST_product][0];
    return start + fmax(0, cost_at(c, COST_thin, rows) - start) * (m / rows) * (n / 1000) * (k / 1000);
}

static double cost_of_product(const step *s, const costs *c)
{
    if (is_whole_product(s)) return cost_of_pass(s, c);
    const double square = cost_at(c, is_f64(s) ? COST_product_f64 : COST_product, s->flops);
    return fmax(square, fmax(thin_cost(s, c), cost_at(c, COST_pass, s->bytes)));
}

static double cost_of_conv(const step *s, const costs *c)
{
    return fmax(cost_at(c, COST_conv, s->flops), cost_at(c, COST_pass, s->bytes));
}

/* Of linear algebra nothing is measured: its operations are taken to be three times as slow as a product's. */
static double cost_of_solver(const step *s, const costs *c)
{
    return fmax(cost_at(c, is_f64(s) ? COST_product_f64 : COST_product, 3 * s->flops),
                cost_at(c, COST_pass, s->bytes));
}

static double cost_of_batched(const step *s, const costs *c)
{
    if (is_whole_product(s)) return cost_of_pass(s, c);
    return fmax(cost_at(c, is_f64(s) ? COST_product_f64 : COST_product, s->flops),
                cost_at(c, COST_pass, s->bytes));
}

/* By kernel; NULL: cost_of_solver of what may fail, else cost_of_pass. */
static double (*const cost_by[KERNELS_ALL])(const step *s, const costs *c) = {
    [OP_matmul] = cost_of_product,
    [KERNEL_BATCHED] = cost_of_batched,
    [OP_conv2d] = cost_of_conv,
    [OP_convolve2d] = cost_of_conv,
    [OP_conv2d_input_grad] = cost_of_conv,
    [OP_conv2d_filter_grad] = cost_of_conv,
};

double cost_of_step(const step *s, const costs *c)
{
    if (kernel_may_fail(s->kernel)) return cost_of_solver(s, c);
    return cost_by[s->kernel] ? cost_by[s->kernel](s, c) : cost_of_pass(s, c);
}

double cost_of_move(size_t bytes, int to, bool pinned)
{
    static const enum cost kind[2][2] = { { COST_down, COST_down_pinned }, { COST_up, COST_up_pinned } };
    if (!bytes) return 0;
    const int gpu = to == HOST ? DEFAULT_GPU : to;
    return cost_at(costs_now(gpu), kind[to != HOST][pinned], (double)bytes);
}

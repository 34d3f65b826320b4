/* exponential.c - the exponential of a matrix (core/matrix_exponential.h), by products of cuBLAS and an LU
 * factorisation of cuSOLVER. The transpose is computed, as on the CPU. The host waits once for the norm, and
 * once for the status. */
#include "linalg_checks.h" /* first: see there */

#include "columns.h"
#include "exponential.h"
#include "linalg_on_host.h"
#include "matrix_exponential.h"
#include "min_max.h"

/* The powers a^2, a^4, ... and three other matrices of the same size. */
enum { POWERS = 4 };
typedef struct pade {
    columns a, power[POWERS + 1], u, v, more; /* power[i] is a^(2i), from 1 on */
} pade;

static int parts_of(const columns *c) { return dtype_is_complex(c->type) ? 2 : 1; }

/* All parts of a matrix without gaps, as real numbers. */
static layout flat(const columns *c)
{
    return (layout){
        .type = dtype_part(c->type), .rank = 1, .size = { parts_of(c) * c->rows * c->cols }, .stride = { 1 }
    };
}

/* c = s a, or, with `keeps`, c + s a. */
static duet_status add_multiple(const solver_workspace *b, const columns *c, double s, const columns *a,
                                bool keeps)
{
    const layout at = flat(c);
    const part x[] = { { .number = s }, { .p = a->p, .at = &at }, { .p = c->p, .at = &at } };
    return gpu_apply(keeps ? OP_fma : OP_mul, c->p, &at, x, keeps ? 3 : 2, b->q);
}

static duet_status add_diagonal(const solver_workspace *b, const columns *c, double s)
{
    const layout at = {
        .type = dtype_part(c->type), .rank = 1, .size = { c->cols }, .stride = { parts_of(c) * (c->ld + 1) }
    };
    const part x[] = { { .p = c->p, .at = &at }, { .number = s } };
    return gpu_apply(OP_add, c->p, &at, x, 2, b->q);
}

/* sum = the terms of the powers first + 2 to last of the numerator, divided by a^first. odd: 1 for the odd
 * coefficients, whose terms are also divided by a; 0 for the even ones. */
static duet_status sum_terms(const solver_workspace *b, const pade *p, const columns *sum, int degree,
                             int first, int last, int odd, bool keeps)
{
    for (int k = last; k > first; k -= 2, keeps = true)
        TRY(add_multiple(b, sum, expm_coefficient(degree, k + odd), &p->power[(k - first) / 2], keeps));
    return first ? DUET_OK : add_diagonal(b, sum, expm_coefficient(degree, odd));
}

/* u = the odd part of the numerator divided by a, v = its even part. */
static duet_status numerator_parts(solver_workspace *b, const pade *p, int degree)
{
    enum { SPLIT = 6 };
    for (int odd = 0; odd < 2; odd++) {
        const columns *sum = odd ? &p->u : &p->v;
        const bool splits = degree > 2 * SPLIT;
        if (splits) {
            TRY(sum_terms(b, p, &p->more, degree, SPLIT, degree - 1, odd, false));
            TRY(solver_product(b, &p->power[SPLIT / 2], &p->more, sum));
        }
        TRY(sum_terms(b, p, sum, degree, 0, splits ? SPLIT : degree - 1, odd, splits));
    }
    return DUET_OK;
}

/* u = (v - a u)^-1 (v + a u) */
static duet_status approximant(solver_workspace *b, const pade *p, int degree)
{
    int64_t *pivot;
    TRY(numerator_parts(b, p, degree));
    TRY(solver_product(b, &p->a, &p->u, &p->more));
    TRY(add_multiple(b, &p->u, 1, &p->v, false));
    TRY(add_multiple(b, &p->u, 1, &p->more, true));
    TRY(add_multiple(b, &p->v, -1, &p->more, true));
    TRY(gpu_workspace_take(b, ON_CARD, (size_t)p->a.rows * sizeof *pivot, &pivot));
    TRY(solver_lu(b, &p->v, pivot));
    return solver_lu_solve(b, &p->v, pivot, false, &p->u);
}

static duet_status powers_take(solver_workspace *b, pade *p, int degree)
{
    const int64_t n = p->a.rows;
    columns *others[] = { &p->u, &p->v, &p->more };
    for (int i = 0; i < 3; i++) TRY(columns_take(b, n, n, others[i]));
    for (int i = 1; i <= expm_powers(degree); i++) {
        TRY(columns_take(b, n, n, &p->power[i]));
        TRY(solver_product(b, i > 1 ? &p->power[i - 1] : &p->a, i > 1 ? &p->power[1] : &p->a, &p->power[i]));
    }
    return DUET_OK;
}

/* Beyond this number of squarings, the power of two is no normal number. */
enum { SQUARINGS_F32 = 100, SQUARINGS_F64 = 1000 };

duet_status gpu_exponential(solver_workspace *b)
{
    const bool wide = dtype_part(solver_type(b)) == DUET_F64;
    pade p;
    answers said;
    int squarings;
    TRY(operand_read(b, 0, true, &p.a));
    if (!p.a.rows) return DUET_OK;
    TRY(columns_size(b, &p.a, PART_ALL, &b->says->size));
    TRY(ask_of_operands(b, &said));
    const int degree = expm_degree(wide, said.size, &squarings);
    if (squarings > (wide ? SQUARINGS_F64 : SQUARINGS_F32)) return gpu_linear_on_host(b, LINALG_RESULT, 0);
    if (squarings) TRY(add_multiple(b, &p.a, ldexp(1, -squarings), &p.a, false));
    TRY(powers_take(b, &p, degree));
    TRY(approximant(b, &p, degree));
    columns x = p.u, other = p.more;
    for (int k = 0; k < squarings; k++) {
        const columns before = x;
        TRY(solver_product(b, &x, &x, &other));
        x = other;
        other = before;
    }
    TRY(result_check(b, &x));
    TRY(gpu_workspace_ask(b, &said));
    if (said.pivot || said.result[0]) return linalg_failed(b->s, LINALG_RESULT, 0);
    return columns_write(b, &x, true, 0);
}

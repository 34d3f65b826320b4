/* test_linear_faults.c - failures of linear algebra on the fake CUDA: every allocation and every
 * call of CUDA and the vendor libraries fails once. All elements are powers of two, so every result
 * is exact. */
#include "fault_scenario.h"
#include "linalg_stack.h"

/* Singular values of W rows are eigenvalues in f64. */
enum { N = 4, W = 64 };

typedef struct scene {
    duet_matrix *a, *b, *x, *y, *l, *u, *p, *sign, *log;
    duet_matrix *stack, *stack_x, *stack_q, *stack_r; /* 2 matrices each */
    duet_matrix *wide, *values;
    duet_matrix *complex_a, *complex_l, *complex_u, *complex_sign, *row, *one;
} scene;

/* The identity matrix, a row of i and zeros, 1. */
static bool make_complex(scene *s)
{
    duet_matrix **squares[] = { &s->complex_a, &s->complex_l, &s->complex_u };
    bool there = (s->complex_sign = duet_new(DUET_C64)) && (s->row = duet_new(DUET_C64, 1, N)) &&
                 (s->one = duet_new(DUET_C64, 1));
    for (int i = 0; i < 3; i++) there &= (*squares[i] = duet_new(DUET_C64, N, N)) != NULL;
    float *a = there ? duet_update(s->complex_a) : NULL, *row = a ? duet_update(s->row) : NULL,
          *one = row ? duet_update(s->one) : NULL;
    for (int i = 0; one && i < N; i++) a[2 * (i * N + i)] = 1;
    if (one) row[1] = one[0] = 1;
    else met.refused++;
    return one != NULL;
}

/* The identity matrix twice. */
static bool make_stack(scene *s)
{
    duet_matrix **stacks[] = { &s->stack, &s->stack_x, &s->stack_q, &s->stack_r };
    bool there = true;
    for (int i = 0; i < 4; i++) there &= (*stacks[i] = duet_new(DUET_F32, 2, N, N)) != NULL;
    float *a = there && fill(s->stack, 0) && fill(s->stack_x, 9) ? duet_update(s->stack) : NULL;
    for (int i = 0; a && i < 2 * N; i++) a[i * N + i % N] = 1;
    return a || (met.refused++, false);
}

/* Twice the identity matrix. */
static bool make_wide(scene *s)
{
    const bool there = (s->wide = duet_new(DUET_F32, W, W)) && (s->values = duet_new(DUET_F32, W)) &&
                       fill(s->wide, 0) && fill(s->values, 9);
    float *a = there ? duet_update(s->wide) : NULL;
    for (int i = 0; a && i < W; i++) a[i * W + i] = 2;
    return a || (met.refused++, false);
}

static bool make(scene *s)
{
    duet_matrix **squares[] = { &s->a, &s->x, &s->l, &s->u };
    bool there = true;
    for (int i = 0; i < 4; i++) there &= (*squares[i] = duet_new(DUET_F32, N, N)) != NULL;
    there &= (s->b = duet_new(DUET_F32, N)) && (s->y = duet_new(DUET_F32, N)) &&
             (s->p = duet_new(DUET_I64, N)) && (s->sign = duet_new(DUET_F32)) &&
             (s->log = duet_new(DUET_F32));
    if (!there) {
        met.refused++;
        return false;
    }
    if (!make_complex(s) || !make_stack(s) || !make_wide(s)) return false;
    if (!fill(s->a, 0) || !fill(s->b, 3) || !fill(s->x, 9) || !fill(s->y, 9) || !fill(s->sign, 9) ||
        !fill(s->log, 9))
        return false;
    float *a = duet_update(s->a);
    for (int i = 0; a && i < N; i++) a[i * N + i] = 1;
    return a || (met.refused++, false);
}

/* a is the identity matrix. */
static void turn(const scene *s)
{
    const double beyond_f16 = 0x1p20; /* so everything is computed again in f64 */
    duet_expr large = duet_mul(duet_cast(s->a, DUET_F64), beyond_f16), b = duet_cast(s->b, DUET_F64);
    bool well =
        went(duet_set(s->y, duet_cast(duet_mul(duet_solve(large, b, .refine = DUET_REFINE_F16), beyond_f16),
                                      DUET_F32)));
    holds(s->y, well, 9, 3);
    if (!well && !fill(s->y, 3)) return;
    well = went(duet_set(s->y, duet_solve(s->a, duet_mul(s->b, 2))));
    holds(s->y, well, 3, 6);
    if (!well && !fill(s->y, 6)) return;
    well = went(duet_set(s->y, duet_add(duet_lstsq(s->a, s->y), 1)));
    holds(s->y, well, 6, 7);
    well = went(duet_set(s->x, duet_sub(duet_matmul(duet_inv(s->a), duet_cholesky(s->a)), s->a)));
    holds(s->x, well, 9, 0);
    if (!well && !fill(s->x, 0)) return;
    well = went(duet_slogdet(s->sign, s->log, s->a));
    holds(s->sign, well, 9, 1);
    holds(s->log, well, 9, 0);
    if (went(duet_lu(s->l, s->u, s->p, s->a)) && went(duet_svd(s->l, s->y, s->u, s->a)))
        holds(s->y, true, 1, 1);
    if (went(duet_qr(s->l, s->u, s->a)) && went(duet_eigh(s->y, s->l, s->a))) holds(s->y, true, 1, 1);
}

/* Of stacks: by one launch, and one matrix after the other. */
static void turn_stack(const scene *s)
{
    bool well = went(duet_set(s->stack_x, duet_sub(duet_solve(s->stack, duet_inv(s->stack)), s->a)));
    holds(s->stack_x, well, 9, 0);
    if (!well && !fill(s->stack_x, 0)) return;
    well = went(duet_set(s->stack_x, duet_sub(duet_expm(duet_sub(s->stack, s->a)), s->a)));
    holds(s->stack_x, well, 0, 0);
    if (!fill(s->y, 9)) return;
    well = went(duet_set(s->y, duet_real(duet_sum_axis(duet_eigvals(s->stack), 0))));
    holds(s->y, well, 9, 2);
    well = went(duet_qr(s->stack_q, s->stack_r, s->stack)) &&
           went(duet_set(s->stack_x, duet_add(duet_matmul(s->stack_q, s->stack_r), 1)));
    well = went(duet_set(s->stack_x, duet_sub(duet_pinv(s->stack), s->stack)));
    if (well) holds(s->stack_x, true, 0, 0);
}

static void turn_values(const scene *s)
{
    const bool well = went(duet_set(s->values, duet_svdvals(s->wide)));
    holds(s->values, well, 9, 2);
}

/* The same for complex numbers. */
static void turn_complex(const scene *s)
{
    if (!fill(s->x, 9) || !fill(s->y, 9) || !fill(s->sign, 9) || !fill(s->log, 9)) return;
    bool well = went(duet_set(s->y, duet_real(duet_solve(s->complex_a, duet_complex(duet_mul(2, s->b), 0)))));
    holds(s->y, well, 9, 6);
    if (!well && !fill(s->y, 6)) return;
    well = went(duet_set(s->y, duet_add(duet_real(duet_lstsq(s->complex_a, duet_complex(s->y, 1))), 1)));
    holds(s->y, well, 6, 7);
    well = went(duet_set(s->sign, duet_imag(duet_sum(duet_lstsq(s->row, s->one)))));
    holds(s->sign, well, 9, -1);
    well = went(duet_set(
        s->x, duet_real(duet_sub(duet_matmul(duet_inv(s->complex_a), duet_cholesky(s->complex_a)), s->a))));
    holds(s->x, well, 9, 0);
    well = went(duet_slogdet(s->complex_sign, s->log, s->complex_a));
    holds(s->log, well, 9, 0);
    if (went(duet_svd(s->complex_l, s->y, s->complex_u, s->complex_a))) holds(s->y, true, 1, 1);
    if (went(duet_qr(s->complex_l, s->complex_u, s->complex_a)) &&
        went(duet_eigh(s->y, s->complex_l, s->complex_a)))
        holds(s->y, true, 1, 1);
}

static void *play(void *arg)
{
    scene s = { 0 };
    if (make(&s)) DUET_ON(place)
        {
            turn(&s);
            turn_complex(&s);
            turn_stack(&s);
            turn_values(&s);
        }
    fault_scenario_over();
    duet_matrix **all[] = { &s.a,
                            &s.b,
                            &s.x,
                            &s.y,
                            &s.l,
                            &s.u,
                            &s.p,
                            &s.sign,
                            &s.log,
                            &s.complex_a,
                            &s.complex_l,
                            &s.complex_u,
                            &s.complex_sign,
                            &s.row,
                            &s.one,
                            &s.stack,
                            &s.stack_x,
                            &s.stack_q,
                            &s.stack_r,
                            &s.wide,
                            &s.values };
    for (int i = 0; i < 21; i++) duet_free(all[i]);
    return NULL;
}

static uint64_t solved(void) { return fake_count().solutions; }

int main(void)
{
    gpu_single_most = 0; /* single matrices are for cuSOLVER */
    return mishaps_of(play, solved, 9);
}

/* per_operator.h - the cases of per_operator.c, and the vendors' bare calls that they are compared
 * with. */
#ifndef PER_OPERATOR_H
#define PER_OPERATOR_H

#include <duet/duet.h>
#include <stdbool.h>

#define CASE_OPERANDS 3
#define CASE_SIZES    3 /* small, medium, large */

/* Contents of the operands. NOISE: random numbers in [-1, 1), or random indices. REGULAR: random
 * numbers with a dominant diagonal, so that the matrix is invertible and its symmetric part
 * positive definite. */
enum fill { NOISE, REGULAR };

/* The arguments of a bare call: operands and result in host memory without gaps, and buffers for
 * operands that the call overwrites. */
typedef struct bare {
    const int64_t (*size)[4]; /* sizes of the operands; 0 after the last axis */
    const void *x[CASE_OPERANDS];
    void *y, *copy[CASE_OPERANDS];
    size_t bytes[CASE_OPERANDS];
    void *plan; /* state that the first call creates for the next ones; end() frees it */
    void (*end)(void *plan);
} bare;
bool bare_begin(bare *b, duet_matrix *const *x,
                const duet_matrix *y); /* allocates the buffers; does nothing if they exist */
void bare_end(bare *b);

/* A case is either a formula (make) or a statement (state) whose results have the size of the first
 * operand. bare is the vendor's call on the CPU; NULL: there is none. */
typedef struct operator_case {
    const char *family, *name;
    duet_dtype type[CASE_OPERANDS];
    enum fill fill;
    int64_t size[CASE_SIZES][CASE_OPERANDS][4];
    duet_expr (*make)(duet_matrix *const *x);
    duet_status (*state)(duet_matrix *const *y, duet_matrix *const *x);
    bool (*bare)(bare *b);
    const char *vendor;
} operator_case;

bool bare_sgemm(bare *b);
bool bare_dgemm(bare *b);
bool bare_sgemv(bare *b);
bool bare_batched(bare *b);
bool bare_conv2d(bare *b);
bool bare_conv2d_input_grad(bare *b);
bool bare_conv2d_filter_grad(bare *b);
bool bare_max_pool2d(bare *b);
bool bare_avg_pool2d(bare *b);
bool bare_softmax(bare *b);
bool bare_layer_norm(bare *b);
bool bare_gelu(bare *b);
bool bare_add(bare *b);
bool bare_sum_rows(bare *b);
bool bare_sum_columns(bare *b);
bool bare_fft(bare *b);
bool bare_rfft2(bare *b);
bool bare_solve(bare *b);
bool bare_inv(bare *b);
bool bare_cholesky(bare *b);
bool bare_qr(bare *b);
bool bare_eigvalsh(bare *b);
bool bare_svdvals(bare *b);

#endif

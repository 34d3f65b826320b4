/* per_operator.h - a case of per_operator.c, and what vendors' bare calls are given of it. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include <duet/duet.h>
#include <stdbool.h>

#define FAMILY_OPERANDS 3
#define FAMILY_SIZES    3 /* small, medium, large */

/* What operands hold: noise; noise, with as much on the diagonal as makes a matrix regular and its symmetric part positive; or indices. */
enum fill { NOISE, REGULAR };

/* What a bare call works on: operands and a result in host memory without gaps; copies of operands, which it may overwrite. */
typedef struct bare {
    const int64_t (*size)[4]; /* of operands, 0 past the last axis */
    const void *x[FAMILY_OPERANDS];
    void *y, *copy[FAMILY_OPERANDS];
    size_t bytes[FAMILY_OPERANDS];
    void *plan; /* what a call has made for those that follow, and how it ends */
    void (*end)(void *plan);
} bare;
bool bare_begin(bare *b, duet_matrix *const *x, const duet_matrix *y); /* does nothing the second time */
void bare_end(bare *b);

/* Either make, a formula, or state, a statement whose results are as large as the first operand. bare: the same by a vendor, on the CPU; NULL: none has it. */
typedef struct family_row {
    const char *family, *name;
    duet_dtype type[FAMILY_OPERANDS];
    enum fill fill;
    int64_t size[FAMILY_SIZES][FAMILY_OPERANDS][4];
    duet_expr (*make)(duet_matrix *const *x);
    duet_status (*state)(duet_matrix *const *y, duet_matrix *const *x);
    bool (*bare)(bare *b);
    const char *vendor;
} family_row;

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

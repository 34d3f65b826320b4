/* gemm_small_supported.c - which products our GEMM kernels support. The fake CUDA of the tests uses
 * it too. */
#include "gemm_kernels.h"

bool product_is_skinny(const step *s)
{
    return s->in[1].at.size[1] <= GEMM_MN_COLUMNS && s->in[0].at.size[1] <= GEMM_MN_INNER;
}

/* Are the elements of l contiguous along this axis? */
static bool runs(const layout *l, int along) { return l->size[along] <= 1 || l->stride[along] == 1; }

static bool is_plain(const step *s)
{
    const int64_t *b = s->in[1].at.size;
    return s->out[0].at.type == DUET_F32 && b[0] <= INT32_MAX / 2 && b[1] <= INT32_MAX / 2 &&
           epilogue_infos[s->epilogue].act != OP_softmax;
}

bool product_is_thin(const step *s)
{
    const layout *b = &s->in[1].at;
    return is_plain(s) && s->out[0].at.size[0] <= GEMV_ROWS && (runs(b, 1) || runs(b, 0));
}

static bool has_only_sums(const step *s) { return s->ins == 2 || s->epilogue; }

/* Times one column, with so many rows and so long ones that each is summed by one warp? */
bool product_is_column(const step *s)
{
    const layout *a = &s->in[0].at, *b = &s->in[1].at, *out = &s->out[0].at;
    return has_only_sums(s) && is_plain(s) && b->size[1] == 1 && a->size[0] >= GEMM_TALL_MIN_ROWS &&
           a->size[0] <= INT32_MAX / 2 && b->size[0] > GEMM_MN_INNER && runs(b, 0) && runs(out, 0) &&
           (runs(a, 0) || runs(a, 1));
}

/* Is the result just the sums, with rows of a and of the result contiguous? */
static bool is_ordinary(const step *s)
{
    const layout *a = &s->in[0].at, *out = &s->out[0].at;
    return has_only_sums(s) && a->size[0] <= INT32_MAX && runs(a, 1) && runs(out, 1);
}

bool product_has_few_rows(const step *s)
{
    const layout *b = &s->in[1].at;
    return is_ordinary(s) && is_plain(s) && b->size[0] > 0 && s->out[0].at.size[0] <= SPLIT_ROWS &&
           runs(b, 1);
}

/* Is there so little arithmetic that memory decides, or would the kernel of a vendor leave most of
 * the card idle? */
static bool is_little(const step *s)
{
    const int64_t *b = s->in[1].at.size;
    return (double)s->out[0].at.size[0] * (double)b[0] * (double)b[1] <= SPLIT_WORK;
}

bool product_fits(const step *s)
{
    if (product_is_column(s)) return true;
    return is_ordinary(s) &&
           (product_is_skinny(s) || product_is_thin(s) || (product_has_few_rows(s) && is_little(s)));
}

bool product_takes_program(const step *s, int input)
{
    if (!product_fits(s)) return false;
    if (product_is_thin(s)) return input == 1;
    return (product_is_column(s) || product_is_skinny(s)) && input == 0;
}

const char *matmul_unsupported(const step *s)
{
    const char *why = float_unsupported(s);
    if (why) return why;
    return product_fits(s) ? NULL : "the product has too many rows and columns, or an addend";
}

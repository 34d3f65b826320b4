/* skinny.c - launches products with few columns, such as the last layer of a network: vendors' kernels leave most of the card idle there. */
#include "dtype.h"
#include "launch.h"

/* Rows of a without gaps between elements, few columns, an inner axis that a thread block walks in no time. */
bool skinny_fits(const step *s)
{
    const layout *a = &s->in[0].at, *b = &s->in[1].at, *out = &s->out[0].at;
    if (s->ins != 2 || s->finish || b->size[1] > SKINNY_COLUMNS || a->size[1] > SKINNY_INNER || a->size[0] > INT32_MAX)
        return false;
    return (a->size[1] <= 1 || a->stride[1] == 1) && (out->size[1] <= 1 || out->stride[1] == 1);
}

static bool is_exact(const skinny_args *a, size_t bytes)
{
    return a->n % 2 == 0 && a->b_column == 1 && a->b_row % 2 == 0 && (uintptr_t)a->b % (2 * bytes) == 0;
}

cudaError_t skinny_launch(const step *s, const frame *f, cudaStream_t q)
{
    const layout *at = &s->in[0].at, *bt = &s->in[1].at, *out = &s->out[0].at;
    skinny_args a = {
        .a = f->data[s->in[0].slot],
        .b = f->data[s->in[1].slot],
        .out = f->data[s->out[0].slot],
        .a_row = at->stride[0],
        .b_row = bt->stride[0],
        .b_column = bt->stride[1],
        .out_row = out->stride[0],
        .m = (int32_t)at->size[0],
        .k = (int32_t)at->size[1],
        .n = (int32_t)bt->size[1],
        .alpha = s->nums ? f->num[s->num[0]] : 1,
    };
    if (layout_count(out) == 0) return cudaSuccess;
    const int many = a.m > SKINNY_ROWS, rows = many ? SKINNY_MANY : SKINNY_FEW;
    const enum form form = is_exact(&a, dtypes[out->type].bytes) ? FORM_FLAT : FORM_STRIDED;
    const void *kernel = (out->type == DUET_F64 ? skinny_kernel_f64 : skinny_kernel_f32)(2 * a.n + many, (int)form);
    return launch(kernel, ((int64_t)a.m + rows - 1) / rows, SKINNY_THREADS, 0, &a, q);
}

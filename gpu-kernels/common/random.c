/* random.c - launches random numbers, and the sort of a permutation. */
#include "dtype.h"
#include "random_kernels.h"

/* Buckets and indices are counted in 32 bits. */
static int bucket_bits(int64_t n)
{
    int bits = 0;
    while (n > (int64_t)BUCKET_MEAN << bits) bits++;
    return bits;
}

static size_t indices_bytes(int64_t n) { return round_256((size_t)n * sizeof(uint32_t)); }
static size_t ends_bytes(int64_t n) { return sizeof(uint32_t) << bucket_bits(n); }

size_t random_workspace(const step *s)
{
    const int64_t n = s->out[0].at.size[0];
    if (s->attr.random.distribution != DISTRIBUTION_PERMUTATION) return 0;
    return indices_bytes(n) + ends_bytes(n);
}

/* Returns the number of elements of the result that one block of Philox gives. */
static int64_t elements_per_block(const step *s)
{
    switch (s->attr.random.distribution) {
    case DISTRIBUTION_BERNOULLI: return 4;
    case DISTRIBUTION_INTEGERS: return 2;
    case DISTRIBUTION_SOBOL: return 1;
    default: return s->out[0].at.type == DUET_F32 ? 4 : 2;
    }
}

static random_args args_of(const step *s, const frame *f)
{
    const random_attributes *part = &s->attr.random;
    const int64_t each = elements_per_block(s);
    const layout *out = &s->out[0].at;
    random_args a = { .out = f->data[s->out[0].slot],
                      .n = layout_count(out),
                      .draw = random_params_of(s, f),
                      .rank = out->rank };
    a.vectors = layout_is_dense(out) && (uintptr_t)a.out % 16 == 0;
    a.vectors &= part->first % each == 0 && part->run % each == 0 && part->apart % each == 0;
    a.run_blocks = divide_by64((part->run + 2 * (each - 1)) / each);
    for (int d = 0; d < out->rank; d++) {
        a.size[d] = divide_by64(out->size[d]);
        a.stride[d] = out->stride[d];
    }
    return a;
}

static const void *kernel_of(const step *s, int form)
{
    switch (s->out[0].at.type) {
    case DUET_I64: return random_kernel_i64(s->attr.random.distribution, form);
    case DUET_F64: return random_kernel_f64(s->attr.random.distribution, form);
    default: return random_kernel_f32(s->attr.random.distribution, form);
    }
}

static int64_t blocks_of(int64_t n, int64_t each) { return (n + each - 1) / each; }

static cudaError_t permute(const step *s, random_args *a, char *scratch, cudaStream_t q)
{
    const int64_t spread = blocks_of(blocks_of(a->n, 2), RANDOM_THREADS);
    a->indices = (uint32_t *)scratch;
    a->ends = (uint32_t *)(scratch + indices_bytes(a->n));
    a->bucket_bits = bucket_bits(a->n);
    cudaError_t e = cudaMemsetAsync(a->ends, 0, ends_bytes(a->n), q);
    if (e == cudaSuccess) e = launch(kernel_of(s, FORM_COUNT), spread, RANDOM_THREADS, 0, a, q);
    if (e == cudaSuccess) e = launch(kernel_of(s, FORM_SCAN), 1, SCAN_THREADS, 0, a, q);
    if (e == cudaSuccess) e = launch(kernel_of(s, FORM_SPREAD), spread, RANDOM_THREADS, 0, a, q);
    if (e == cudaSuccess)
        e = launch(kernel_of(s, FORM_RANK), (int64_t)1 << a->bucket_bits, BUCKET_THREADS, 0, a, q);
    return e;
}

/* Returns the number of blocks of Philox to compute: one for each thread. */
static int64_t blocks_to_draw(const step *s, const random_args *a)
{
    const int64_t run = s->attr.random.run;
    if (run) return a->n / run * (int64_t)a->run_blocks.by;
    return blocks_of(a->n, elements_per_block(s));
}

cudaError_t random_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    random_args a = args_of(s, f);
    const int64_t blocks = blocks_to_draw(s, &a);
    if (a.n == 0) return cudaSuccess;
    if (s->attr.random.distribution == DISTRIBUTION_PERMUTATION) return permute(s, &a, w->scratch, q);
    const int form =
        FORM_DRAW +
        (s->attr.random.distribution == DISTRIBUTION_TRUNCATED_NORMAL ? s->attr.random.proposal : 0);
    return launch(kernel_of(s, form), blocks_of(blocks, RANDOM_THREADS), RANDOM_THREADS, 0, &a, q);
}

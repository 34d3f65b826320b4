/* gemm_operands.c - the factors, the addend and the layout of the operands of a matrix product. */
#include "gemm_operands.h"
#include "cublaslt.h"
#include "min_max.h"
#include <limits.h>

gemm_scale gemm_scale_of(const step *s, const frame *f)
{
    gemm_scale by = { .alpha = s->nums > 0 ? f->num[s->num[0]] : 1 };
    if (gemm_has_addend(s)) by.beta = s->nums > 1 ? f->num[s->num[1]] : 1;
    if (s->out[0].at.type == DUET_F32) { /* rounding to f32 may give 0 */
        by.alpha = (float)by.alpha;
        by.beta = (float)by.beta;
    }
    return by;
}

part gemm_addend(const step *s, const frame *f)
{
    return (part){ .p = f->data[s->in[2].slot], .at = &s->in[2].at };
}

duet_status gemm_of_nothing(const step *s, const frame *f, queue *q, gemm_scale by)
{
    const part zero = { .number = by.alpha * 0 }, beta = { .number = by.beta };
    const operand *out = &s->out[0];
    void *to = f->data[out->slot];
    if (!gemm_has_addend(s)) return gpu_apply(OP_LOAD, to, &out->at, &zero, 1, q);
    return gpu_apply(OP_fma, to, &out->at, (const part[]){ beta, gemm_addend(s, f), zero }, 3, q);
}

duet_status gemm_apply_scale(const step *s, const frame *f, queue *q, gemm_scale by, part product)
{
    const layout *at = &s->out[0].at;
    void *to = f->data[s->out[0].slot];
    const part alpha = { .number = by.alpha }, beta = { .number = by.beta }, it = { .p = to, .at = at };
    if (!gemm_has_addend(s)) return gpu_apply(OP_mul, to, at, (const part[]){ alpha, product }, 2, q);
    TRY(gpu_apply(OP_mul, to, at, (const part[]){ beta, gemm_addend(s, f) }, 2, q));
    return half_written(gpu_apply(OP_fma, to, at, (const part[]){ alpha, product, it }, 3, q));
}

bool gemm_is_dense(const layout *l, int along, int *ld)
{
    const int64_t line = larger(l->size[along], 1);
    const int64_t pitch = l->size[1 - along] > 1 && l->size[along] ? l->stride[1 - along] : line;
    *ld = (int)pitch;
    return (l->size[along] <= 1 || l->stride[along] == 1) && pitch >= line && pitch <= INT_MAX;
}

duet_status gemm_open(queue *q)
{
    pthread_mutex_lock(&q->lock);
    const duet_status r = gpu_gemm_open(q);
    pthread_mutex_unlock(&q->lock);
    return r;
}

/* pool_grad.c - launches the gradients of pooling, and upsampling. */
#include "conv_kernels.h"
#include "min_max.h"

static pool_grad_args args_of(const step *s, const frame *f)
{
    const operand *grad = &s->in[s->ins - 1];
    const int64_t *size = s->out[0].at.size;
    pool_grad_args a = { .in = f->data[s->in[0].slot],
                         .grad = f->data[grad->slot],
                         .out = f->data[s->out[0].slot] };
    a.channels = divide_by64(size[1]);
    a.height = divide_by64(size[2]);
    a.width = divide_by64(size[3]);
    a.in_height = (int32_t)size[2];
    a.in_width = (int32_t)size[3];
    for (int i = 0; i < 4; i++) {
        a.stride[i] = s->in[0].at.stride[i];
        a.grad_stride[i] = grad->at.stride[i];
    }
    a.grad_height = (int32_t)grad->at.size[2];
    a.grad_width = (int32_t)grad->at.size[3];
    for (int i = 0; i < 2; i++) {
        a.window[i] = s->attr.pool.window[i];
        a.step[i] = s->attr.pool.stride[i];
        a.pad[i] = s->attr.pool.pad[i];
    }
    a.count = size[0] * size[1] * size[2] * size[3];
    return a;
}

cudaError_t pool_grad_launch(const step *s, const frame *f, const workspace *w, cudaStream_t q)
{
    const bool wide = s->out[0].at.type == DUET_F64;
    if (layout_count(&s->out[0].at) == 0) return cudaSuccess;
    pool_grad_args a = args_of(s, f);
    const int64_t blocks = quotient_up(a.count, POOL_THREADS), most = 1 << 20;
    return launch((wide ? pool_grad_kernel_f64 : pool_grad_kernel_f32)(s->kernel, 0), smaller(blocks, most),
                  POOL_THREADS, 0, &a, q);
}

/* joined.c - launches kernels of products, with or without a program (joined.h). */
#include "joined.h"
#include "compiled_operands.h"
#include "conv_kernels.h"
#include "dtype.h"
#include "emulated.h"
#include "generated_mode.h"
#include "kernel_text.h"
#include <stdio.h>
#include <string.h>

/* ---- texts ---- */

/* name of the file, types, target */
#define FILES(OF)                                                                                            \
    OF(JOINED_GEMV, gemv, f32, "sm_90")                                                                      \
    OF(JOINED_SMALL_MN, gemm_small_mn, f32, "sm_90")                                                         \
    OF(JOINED_SMALL_MN, gemm_small_mn, f64, "sm_90")                                                         \
    OF(JOINED_TALL, gemm_tall, f32, "sm_90")                                                                 \
    OF(JOINED_TALL, gemm_tall, f64, "sm_90")                                                                 \
    OF(JOINED_SPLIT_K, gemm_split_k, f32, "sm_90")                                                           \
    OF(JOINED_EMULATED, emulated_gemm, f32, "sm_90a")                                                        \
    OF(JOINED_EMULATED_FEW, emulated_gemm_small, f32, "sm_90a")                                              \
    OF(JOINED_WINOGRAD_1D, winograd_1d, f32, "sm_90")                                                        \
    OF(JOINED_WINOGRAD_2D, winograd_2d, f32, "sm_90")                                                        \
    OF(JOINED_EMULATED_CONV, emulated_conv, f32, "sm_90a")

#define OPERAND_FILES(OF)                                                                                    \
    OF(JOINED_GEMV, gemv, f32, operand)                                                                      \
    OF(JOINED_SMALL_MN, gemm_small_mn, f32, operand)                                                         \
    OF(JOINED_SMALL_MN, gemm_small_mn, f64, operand)                                                         \
    OF(JOINED_TALL, gemm_tall, f32, operand)                                                                 \
    OF(JOINED_TALL, gemm_tall, f64, operand)

#define DECLARE(file, name, type, target) extern const char name##_##type##_text[], name##_##type##_end[];
#define DECLARE_OPERAND(file, name, type, what)                                                              \
    extern const char name##_##what##_##type##_text[], name##_##what##_##type##_end[];
FILES(DECLARE)
OPERAND_FILES(DECLARE_OPERAND)
#undef DECLARE
#undef DECLARE_OPERAND

ptx_template joined_template(const ptx_request *r, char name[64])
{
    const int file = r->kernel / JOINED_NUMBERS, number = r->kernel % JOINED_NUMBERS;
    ptx_template t = { .entry = name };
#define FIND(of, file_name, type_name, to)                                                                   \
    if (file == of && !strcmp(dtypes[r->type].name, #type_name)) {                                           \
        snprintf(name, 64, #file_name "_%d", number);                                                        \
        kernel_text_open(&t, file_name##_##type_name##_text, file_name##_##type_name##_end);                 \
        t.target = ".version 8.1\n.target " to;                                                              \
    }
    FILES(FIND)
#undef FIND
#define FIND(of, file_name, type_name, what)                                                                 \
    if (file == JOINED_OPERAND(of) && !strcmp(dtypes[r->type].name, #type_name)) {                           \
        snprintf(name, 64, #file_name "_%d", number);                                                        \
        kernel_text_open(&t, file_name##_##what##_##type_name##_text,                                        \
                         file_name##_##what##_##type_name##_end);                                            \
        t.target = ".version 8.1\n.target sm_90";                                                            \
    }
    OPERAND_FILES(FIND)
#undef FIND
    return t;
}

/* ---- launch ---- */

/* The bytes before the program's argument, which is aligned to 8. */
static int head_of(size_t bytes) { return (int)((bytes + 7) / 8 * 8); }

#define HEAD_MOST 768
_Static_assert(sizeof(product_args) <= HEAD_MOST && sizeof(emulated_args) <= HEAD_MOST &&
                   sizeof(emulated_gemm_small_args) <= HEAD_MOST && sizeof(conv2d_args) <= HEAD_MOST &&
                   sizeof(emulated_conv_args) <= HEAD_MOST,
               "all arguments fit");

static bool start_joined(const product_launch_args *l, const joined *j, cudaStream_t q)
{
    const step *s = j->program;
    const int file = j->first ? JOINED_OPERAND(l->file) : l->file;
    double num[PROGRAM_NUMBERS];
    interp_path paths[PROGRAM_INPUTS];
    _Alignas(64) struct {
        char head[HEAD_MOST];
        ptx_args operands;
    } args;
    operands o;
    bool ready;
    operands_take(&o, s, j->f, dtypes[s->out[0].at.type].bytes);
    if (l->blocks > INT32_MAX || !operands_reachable(&o) || layout_count(&o.of[0]) == 0) return false;
    if (j->first && l->operand != j->given) return false;
    interp_head domain = { .n = layout_count(&o.of[0]), .out_dense = true, .inputs = s->ins };
    for (int k = 0; k < s->ins; k++) domain.in[k] = o.at[1 + k];
    compiled_source from = { .program = s->program,
                             .form.form = PTX_JOINED,
                             .form.kernel = JOINED_KERNEL(file, l->number),
                             .form.head = (uint16_t)head_of(l->bytes),
                             .form.type = (uint8_t)s->out[0].at.type,
                             .form.width = (uint8_t)(j->first ? l->operand_width : l->width),
                             .form.threads = (uint16_t)l->threads,
                             .form.waits = 1,
                             .form.numbers = s->program->numbers,
                             .blocks = l->blocks,
                             .cluster = l->cluster,
                             .shared = l->shared,
                             .shared_most = l->shared_most,
                             .bytes = operands_bytes(&o) };
    compiled_form(&from.form, &o, &domain, paths);
    if (!j->first) from.form.access[j->given] = PTX_GIVEN;
    compiled_kernel *kernel = compiled_kernel_for(&from, j->w->used, &ready);
    if (!kernel || !ready) return false;
    for (int k = 0; k < s->nums; k++) num[k] = j->f->num[s->num[k]];
    memcpy(&args, l->args, l->bytes);
    compiled_args(&from.form, &o, &domain, num, paths, &args);
    return compiled_kernel_launch(kernel, &from, &args, q);
}

bool kernels_join(void) { return generated_when() != GENERATED_NEVER && card().clusters; }

cudaError_t product_start(const product_launch_args *l, joined *j, cudaStream_t q)
{
    if (j) {
        j->done = start_joined(l, j, q);
        return cudaSuccess;
    }
    const cudaError_t e = with_shared(l->kernel, l->shared, l->shared_most);
    if (e != cudaSuccess) return e;
    return launch_clusters(l->kernel, l->blocks, l->cluster, l->threads, l->shared, l->args, q);
}

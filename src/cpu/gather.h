/* gather.h - operators that move or order elements by data: scan, take, scatter, sort, histogram. */
#ifndef GATHER_H
#define GATHER_H

#include "cpu_kernels.h"
#include "index_ops.h"
#include "threads.h"

run_function run_scan_f32, run_scan_f64, run_scan_i64;

/* Reads all indices of operand o, checks them against n, and makes negative ones positive. Free
 * *indices with scratch_give. Errors: BAD_ARGUMENT, NO_MEMORY; *indices is then NULL */
duet_status indices_open(const step *s, const operand *o, int64_t n, const frame *f, int64_t **indices);

/* Combines n elements of `from` with those of `to`: the inner loop of scatter.c, by type. */
typedef void scatter_columns(void *to, const void *from, int64_t stride, int64_t n);
scatter_columns scatter_add_f32, scatter_add_f64, scatter_add_i64, scatter_max_f32, scatter_max_f64,
    scatter_max_i64, scatter_mul_f32, scatter_mul_f64, scatter_mul_i64;

/* Gathers n elements of `size` bytes that are `stride` elements apart. */
void gather_elements(void *to, const void *from, int64_t stride, int64_t n, size_t size);

#endif

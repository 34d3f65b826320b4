/* gather.h - the functions that move or order elements by data, by family; and indices. */
#ifndef ORDERS_H
#define ORDERS_H

#include "cpu_kernels.h"
#include "index_ops.h"
#include "threads.h"

run_function run_scan_f32, run_scan_f64, run_scan_i64, run_take, run_scatter, run_sort, run_histogram;

/* The function for a step of such a family; NULL: it is of none. */
run_function *order_function(const step *s);

/* All indices of operand o, which are places among n, into a block of the pool that the caller gives back by scratch_give.
 * Errors: BAD_ARGUMENT, NO_MEMORY: *places is NULL */
duet_status indices_open(const step *s, const operand *o, int64_t n, const frame *f, int64_t **places);

/* out[i] += part[d] of column i, where x's own order is kept: scatter.c's inner loop, by type. */
typedef void scatter_columns(void *to, const void *from, int64_t stride, int64_t n);
scatter_columns scatter_add_f32, scatter_add_f64, scatter_add_i64, scatter_max_f32, scatter_max_f64,
    scatter_max_i64;

/* n elements of so many bytes, `stride` elements apart, one after the other. */
void elements_in(void *to, const void *from, int64_t stride, int64_t n, size_t each);

#endif

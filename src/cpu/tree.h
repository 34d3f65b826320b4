/* tree.h - the canonical tree of core/fold.h, for any row of kind fold. A template. */
#ifndef TREE_H
#define TREE_H

#include "fold.h"
#include "words.h"
#include <string.h>

typedef T take_function(T a, T x, T y);
typedef T join_function(T a, T b);

#define FOLD_WIDE   512                                /* bytes */
#define FOLD_WIDTH  ((int64_t)(FOLD_WIDE / sizeof(T))) /* outputs that are reduced side by side, at most */
#define FOLD_LEVELS 48

/* Each row as take, join and finish. */
#define FOLD_OF(name, take, join, finish)                                                                                        \
    INLINE T name##_take(T a, T x, T y) { return (void)y, take; }                                                                \
    INLINE T name##_join(T a, T b) { return join; }                                                                              \
    INLINE T name##_finish(T a, int64_t n) { return (void)n, finish; }

/* Joins lanes 0 .. n-1, those beyond being absent, into lane 0. */
INLINE void join_lanes(join_function join, T *lane, int64_t n)
{
    for (int64_t h = FOLD_LANES / 2; h > 0; h /= 2) {
        for (int64_t l = 0; l < h && l + h < n; l++) lane[l] = join(lane[l], lane[l + h]);
        n = SMALLER(n, h);
    }
}

/* One block of FOLD_LANES elements or more: all lanes are there. */
INLINE T full_block_of(take_function take, join_function join, T start, const T *restrict x, const T *restrict y, int64_t n)
{
    T lane[FOLD_LANES] __attribute__((aligned(64)));
    int64_t i = FOLD_LANES;
    for (int64_t l = 0; l < FOLD_LANES; l++) lane[l] = take(start, x[l], y[l]);
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int64_t l = 0; l < FOLD_LANES; l++) lane[l] = take(lane[l], x[i + l], y[i + l]);
    for (int64_t l = 0; i + l < n; l++) lane[l] = take(lane[l], x[i + l], y[i + l]);
#pragma GCC unroll 8
    for (int64_t h = FOLD_LANES / 2; h > 0; h /= 2)
        for (int64_t l = 0; l < h; l++) lane[l] = join(lane[l], lane[l + h]);
    return lane[0];
}

/* One block of 1 <= n <= FOLD_BLOCK elements, one after the other. */
INLINE T block_of(take_function take, join_function join, T start, const T *x, const T *y, int64_t n)
{
    T lane[FOLD_LANES];
    if (n >= FOLD_LANES) return full_block_of(take, join, start, x, y, n);
    for (int64_t l = 0; l < n; l++) lane[l] = take(start, x[l], y[l]);
    join_lanes(join, lane, n);
    return lane[0];
}

/* Sub-trees of `width` outputs side by side, joined as they come: bit k of `count` says that level k holds one of 2^k. */
typedef struct tree {
    int64_t width;
    uint64_t count;
    T level[FOLD_LEVELS][FOLD_WIDE / sizeof(T)];
} tree;

INLINE void join_all(join_function join, T *a, const T *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) a[i] = join(a[i], b[i]);
}

INLINE void tree_add(join_function join, tree *t, const T *value)
{
    int k = 0;
    for (; t->count >> k & 1; k++) {
        join_all(join, t->level[k], value, t->width);
        value = t->level[k];
    }
    memcpy(t->level[k], value, (size_t)t->width * sizeof(T));
    t->count++;
}

/* The root, of one sub-tree at least. */
INLINE const T *tree_root(join_function join, tree *t)
{
    const T *root = NULL;
    for (int k = 0; k < FOLD_LEVELS; k++) {
        if (!(t->count >> k & 1)) continue;
        if (root) join_all(join, t->level[k], root, t->width);
        root = t->level[k];
    }
    return root;
}

#endif

/* shape.h - sizes and strides of operands. */
#ifndef SHAPE_H
#define SHAPE_H

#include <duet/duet.h>
#include <stdbool.h>

typedef struct shape {
    int rank;
    int64_t size[DUET_RANK_MAX];
} shape;

/* Where the elements of an operand are, from its first one. Strides count elements. A stride of 0
 * repeats an element. */
typedef struct layout {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], stride[DUET_RANK_MAX];
} layout;

int64_t shape_count(const shape *s);
bool shape_equal(const shape *a, const shape *b);

/* BAD_TYPE or BAD_SHAPE if the type, the rank or a size is out of range, or if the size in bytes
 * overflows. */
duet_status shape_check(const char *who, duet_dtype type, int rank, const int64_t *size);

/* Broadcasts by NumPy's rule. false: a and b do not broadcast. out may be a or b. */
bool shape_broadcast(const shape *a, const shape *b, shape *out);

/* "f32[2,3]" into text; returns text. */
#define SHAPE_TEXT 200
char *shape_text(char text[SHAPE_TEXT], duet_dtype type, int rank, const int64_t *size);

/* Row-major without gaps. `size` must not be l->size. */
void layout_dense(layout *l, duet_dtype type, int rank, const int64_t *size);
bool layout_is_dense(const layout *l);
int64_t layout_count(const layout *l);

/* Inserts an axis in front of axis a; removes axis a. */
void layout_insert(layout *l, int a, int64_t size, int64_t stride);
void layout_drop(layout *l, int a);

/* Can `count` axes from a on be merged into one axis? layout_merge does that. Merging no axes
 * inserts one of size 1. */
bool layout_merges(const layout *l, int a, int count);
void layout_merge(layout *l, int a, int count);

/* Is an element at several indices of l? */
bool layout_repeats(const layout *l);

/* l with two axes: a vector is one column, a number one element. */
layout layout_as_matrix(const layout *l);
/* l, of two axes, with its axes swapped. */
layout layout_transposed(layout l);

/* l broadcast to `to`: with strides of 0 where it repeats. */
layout layout_broadcast(const layout *l, const shape *to);

void layout_swap_axes(layout *l, int a, int b);

/* Orders the axes of n layouts (of equal sizes) by the strides of the first one, the largest first. */
void layout_order(layout *const l[], int n);

/* Merges axes where all of n layouts (of equal sizes) allow it, and removes axes of size 1. Rank 0
 * becomes one axis of size 1, so that the result has at least rank 1. */
void layout_collapse(layout *const l[], int n);

/* Gives l the sizes of `to`, which has as many elements, in the same row-major order. False: no strides
 * express that, and l is unchanged. */
bool layout_reshape(layout *l, const shape *to);
static inline shape shape_of_layout(const layout *l)
{
    shape s = { .rank = l->rank };
    for (int i = 0; i < l->rank; i++) s.size[i] = l->size[i];
    return s;
}

/* The range of offsets of the elements of l, from its first one: [low, high). Both are 0 if it has
 * no elements. */
void layout_span(const layout *l, int64_t *low, int64_t *high);

/* For texts: "axis" or "axes". */
static inline const char *axes_word(int count) { return count == 1 ? "axis" : "axes"; }

#endif

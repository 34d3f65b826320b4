/* shape.h - sizes, strides, and where elements lie. */
#ifndef SHAPE_H
#define SHAPE_H

#include <duet/duet.h>
#include <stdbool.h>

typedef struct shape {
    int rank;
    int64_t size[DUET_RANK_MAX];
} shape;

/* How the elements of an operand are reached from its first one. A stride of 0 repeats. Strides count elements. */
typedef struct layout {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], stride[DUET_RANK_MAX];
} layout;

int64_t shape_count(const shape *s);
bool shape_equal(const shape *a, const shape *b);

/* The product of the sizes times bytes an element; BAD_SHAPE when rank or a size is out of range or the product overflows. */
duet_status shape_check(const char *who, duet_dtype type, int rank, const int64_t *size);

/* NumPy's rule: false when a and b do not broadcast. out may be a or b. */
bool shape_broadcast(const shape *a, const shape *b, shape *out);

/* "f32[2,3]" into text; returns text. */
#define SHAPE_TEXT 200
char *shape_text(char text[SHAPE_TEXT], duet_dtype type, int rank, const int64_t *size);

void layout_dense(layout *l, duet_dtype type, int rank, const int64_t *size); /* row-major without gaps */
bool layout_is_dense(const layout *l);
int64_t layout_count(const layout *l);

/* An axis more, in front of axis a; an axis less. */
void layout_insert(layout *l, int a, int64_t size, int64_t stride);
void layout_drop(layout *l, int a);

/* Are `count` axes from a on walked as one? And they as one: none become one of a single element. */
bool layout_merges(const layout *l, int a, int count);
void layout_merge(layout *l, int a, int count);

/* Does the same element stand at several places of l? */
bool layout_repeats(const layout *l);

/* l as it is read by a loop over `to`, to which it broadcasts: strides of 0 where it repeats. */
layout layout_broadcast(const layout *l, const shape *to);

/* The axes of n layouts (of equal sizes) in the order in which the first one's elements lie: the largest stride first. */
void layout_order(layout *const l[], int n);

/* Merges axes that every one of n layouts (of equal sizes) walks as one, and drops axes of size 1. Rank 0 becomes one axis of
 * size 1: the result has rank 1 or more. */
void layout_collapse(layout *const l[], int n);

/* The lowest and one past the highest element that l reaches, from its first. Both 0 when it has none. */
void layout_span(const layout *l, int64_t *low, int64_t *high);

#endif

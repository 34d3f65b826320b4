/* build.h - builds the formulas that one rank evaluates for a formula of matrices on its group. */
#ifndef BUILD_H
#define BUILD_H

#include "distribute.h"

/* A value of a node in another distribution. */
typedef struct moved_value {
    uint32_t node;
    distribution to;
    bool fused; /* it was not exchanged, but computed again */
    duet_expr e;
    struct moved_value *next;
} moved_value;

typedef struct builder {
    const planner *p;
    planner own; /* only its memory */
    communicator *c;
    int index;          /* of the rank in its process */
    duet_expr *value;   /* by node: this rank's part of it */
    moved_value *moved; /* a list */
    int sequence;       /* the number of collectives so far */
    duet_matrix **view; /* of parts, made for this statement */
    int views, capacity;
    uint64_t mark;                          /* formulas_mark() before this builder made any formula */
    int64_t bytes;                          /* that the collectives send from this rank */
    struct waiting *waiting, *last_waiting; /* list of the nodes that wait for a shared exchange: buckets.h */
    int waiting_count;                      /* number of their arrays */
    double waiting_bytes;                   /* bytes of these arrays */
    duet_expr last;                         /* the latest collective */
    const char *site;
} builder;

/* false: no memory; the text is set */
bool build_begin(builder *b, const planner *p, communicator *c, int index);
void build_end(builder *b);

/* Sets order to the nodes of p in the order in which build_node is to be called, which is the same on all
 * ranks. false: no host memory */
bool build_order(const planner *p, uint32_t *order);

/* Sets b->value[i] from those of the operands. A failure is a failed formula. */
duet_status build_node(builder *b, uint32_t i);

/* This rank's part of the value of node i. If the value waits for an exchange, that is done first. */
duet_expr build_value(builder *b, uint32_t i);

/* Finds the nodes whose values wait for a shared exchange. Call it when the distributions are set. false: out
 * of memory */
bool build_find_waiting(planner *p);

/* The value of node i in another distribution. */
duet_expr build_moved(builder *b, uint32_t i, const distribution *to);

/* Operand k of node i in another distribution. It is not exchanged if node i may fuse it. */
duet_expr build_operand(builder *b, uint32_t i, int k, const distribution *to);

/* fused_products.c: the value of a product in another distribution, from operands that are exchanged. */
duet_expr build_again(builder *b, uint32_t i, const distribution *to);

/* This rank's part of a node that is LOCAL, given those of its operands. */
duet_expr build_local(builder *b, uint32_t i, const duet_expr x[]);

/* An array in another distribution. e: this rank's part of it. */
duet_expr build_moved_array(builder *b, duet_expr e, duet_dtype type, const shape *whole,
                            const distribution *from, const distribution *to);

/* Halves are computed in f32 and rounded when they are stored in a matrix. So intermediate halves are sent as
 * f32. Casts the value *e of node i to f32 if it is an intermediate half. Returns the type that is sent. */
duet_dtype build_widened(const builder *b, uint32_t i, duet_expr *e);

/* A collective step for an array of this type and shape. e: this rank's part of it in the distribution
 * `from`. */
duet_expr build_collective(builder *b, enum collective_kind kind, duet_expr e, duet_dtype type,
                           const shape *whole, const distribution *from, const distribution *to);

/* The size of this rank's part of a node. */
void part_of_node(const builder *b, const node *n, const distribution *d, int64_t size[DUET_RANK_MAX]);

/* The elements from .. upto - 1 of an axis. */
duet_expr build_range(const builder *b, duet_expr e, int axis, int64_t from, int64_t upto);

/* A number that changes no sum of elements of this type, not even the sign of a zero. */
duet_expr zero_of_sums(duet_dtype type, const char *site);

/* joining.c: the value of a node that is JOINED. */
duet_expr build_joined(builder *b, uint32_t i, const duet_expr of[]);

/* Frees m after the statement or, if that is recorded, with the recording. NULL: the text is set */
duet_matrix *build_keep(builder *b, duet_matrix *m);

/* transforms.c: nodes that are TRANSFORMED and TOP, from their operands. */
duet_expr build_transform(builder *b, uint32_t i, duet_expr x);
duet_expr build_top(builder *b, uint32_t i, duet_expr x);

/* sorting.c: a node that is SORTED, from its operand. */
duet_expr build_sorted(builder *b, uint32_t i, duet_expr x);

/* lookups.c: this rank's term of a take that is ADDED. */
duet_expr build_take(builder *b, uint32_t i, const duet_expr x[]);

/* scans.c: a node that is SCANNED, from its operand. */
duet_expr build_scan(builder *b, uint32_t i, duet_expr x);

/* grid_product.c: a product that is GRID. */
duet_expr build_grid(builder *b, uint32_t i, const duet_expr x[]);

/* A view of this rank's part of m, for the duration of the statement. NULL: the text is set */
duet_matrix *build_view(builder *b, const duet_matrix *m);
duet_matrix *build_owned(builder *b, const duet_matrix *m); /* split_owned */

#endif

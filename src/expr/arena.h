/* arena.h - the arena that holds a thread's formulas until they are spent. Private to src/expr. */
#ifndef ARENA_H
#define ARENA_H

#include "compiler.h"
#include "expr.h"
#include "status.h"
#include "thread.h"

/* A handle is the serial number of its node. Serials increase through an arena and are never
 * reused in the process: each thread takes them from ranges of 2^32 of its own. So one comparison
 * shows whether a handle is live. */
#define SERIAL_HELD  (1ull << 63) /* a persistent formula: slot and generation follow */
#define SERIAL_FIRST (1ull << 32) /* below: no formula (0), or a failure without a node (its status) */

/* Flags of nodes. FAILED: attr.failure is valid. DENSE: a matrix without gaps. PLAIN: the node is live,
 * floating point and has at most PLAIN_RANK axes. Not all such nodes have the flag PLAIN. */
enum { NODE_FAILED = 8, NODE_DENSE = 16, NODE_PLAIN = 32 }; /* DENSE: of leaves; see NODE_ABSENT */
#define PLAIN_RANK 2

typedef struct spending {
    uint64_t low, high; /* serials */
    const char *site;
    duet_status why; /* OK, or the status of a failure without a node */
} spending;
#define SPENDINGS 32

typedef struct arena {
    node *nodes;
    uint32_t *words;
    uint32_t count, length;         /* nodes and words in use */
    uint32_t count_max, length_max; /* with this many words in use, any node still fits */
    uint32_t roots;
    uint32_t collect_from;           /* with so many nodes, those that belong to no formula are looked for */
    uint32_t last_leaf, last_number; /* index + 1 of the latest one; 0: none */
    bool mixed;                      /* spent or failed nodes may lie between live ones */
    uint64_t next, last;             /* serials: the next one, and the end of the range */
    uint64_t last_failed;            /* the serial of the latest failed node; 0: none */
    uint64_t
        stop; /* up to this serial there is capacity and the range does not end; a push checks only this */
    size_t limit, mapped;
    spending spent[SPENDINGS]; /* the latest ones, in a ring */
    uint32_t spendings;
    struct arena *scratch;            /* for formulas that are copied to be contiguous */
    struct kept_gradients *gradients; /* gradient.c: of the formula that was differentiated last, or NULL */
    duet_status refused;              /* the latest failure without a node, and its text */
    error_text why_refused;
} arena;

/* This thread's, or NULL */
static inline arena *arena_here(void) { return thread_get()->slot[SLOT_ARENA]; }
arena *arena_first(void) __attribute__((cold));
static inline arena *arena_mine(void) /* NULL: no memory */
{
    arena *a = arena_here();
    return likely(a != NULL) ? a : arena_first();
}

arena *arena_scratch(arena *a); /* cleared; NULL: no memory */

/* Returns the node with this serial in this thread's arena, spent or not, or NULL. */
node *arena_search(const arena *a, uint64_t serial);
static inline node *arena_look(const arena *a, uint64_t serial)
{
    const uint64_t i = serial - (a->next - a->count); /* as long as nothing was spent below */
    return likely(i < a->count && a->nodes[i].serial == serial) ? &a->nodes[i] : arena_search(a, serial);
}

/* Reports why e is not the handle of a live formula. what: the name of the operand in the text,
 * such as "x". */
duet_status arena_missing(const arena *a, duet_expr e, const char *what) __attribute__((cold));

/* Records a failure for which no node can be made: a handle with the value s represents it. Does not
 * change the thread's text. Returns s. */
duet_status arena_refuses(arena *a, duet_status s) __attribute__((cold));

/* Appends a root with its serial, kind and site. The caller appends its words next. NULL: the arena is
 * full; the text is set. */
bool arena_refill(arena *a) __attribute__((cold));
static inline node *arena_push_ready(arena *a, uint32_t kind, const char *site) /* requires next != stop */
{
    node *n = &a->nodes[a->count];
    n->serial = a->next++;
    n->kind = kind | KIND(0, 0, 0, NODE_ROOT);
    n->word = a->length;
    n->first = a->count++;
    n->back[0] = 0;
    n->site = site;
    a->roots++;
    return n;
}
static inline node *arena_push(arena *a, uint32_t kind, const char *site)
{
    if (unlikely(a->next == a->stop) && !arena_refill(a)) return NULL;
    return arena_push_ready(a, kind, site);
}

static inline void put(arena *a, uint32_t word) { a->words[a->length++] = word; }
static inline duet_expr handle_of(const node *n) { return (duet_expr){ n->serial }; }
static inline void consume(arena *a, node *n)
{
    a->roots -= (n->kind & KIND(0, 0, 0, NODE_ROOT)) != 0;
    n->kind &= ~KIND(0, 0, 0, NODE_ROOT);
}

void arena_clear(arena *a); /* removes all nodes; there must be no roots */

/* Spends the formula with root n: none of its nodes can be named again. Its memory is reused when
 * no live node lies above. */
void arena_spend(arena *a, node *n, const char *site);
void arena_give_up(arena *a, node *n, duet_status why,
                   const char *site); /* the same; later uses report `why` */

/* Copies the formula with root src[root] to the end of `to`, in post-order and contiguous. Errors:
 * ARENA_FULL, NO_MEMORY */
duet_status arena_copy(arena *to, const node *src, const uint32_t *words, uint32_t root, node **copy);

/* The same in two steps, for several formulas of src whose nodes are first .. root or fewer. arena_mark
 * sets needed[i - first] if the formula src[root] has node i, and changes no other element.
 * arena_copy_more copies these nodes. moved[i - first] is the index of node i in `to` plus 1 if it was
 * copied before; then the copy is used, but that of the root is always new. Otherwise it is 0, and is set. */
void arena_mark(const node *src, uint32_t first, uint32_t root, bool *needed);
duet_status arena_copy_more(arena *to, const node *src, const uint32_t *words, uint32_t first, uint32_t root,
                            const bool *needed, uint32_t *moved, node **copy);

/* Appends the words of n, the last node of a. like: the words of the node that it copies, or NULL. */
void words_put(arena *a, node *n, const uint32_t *like);
void node_flag(arena *a, node *n, uint8_t flag); /* sets a flag of an operator, and in its words */

/* How many attributes an operator has in its node, by the kind of its options. */
enum {
    OPTIONS_plain = 0,
    OPTIONS_axis = 1,
    OPTIONS_type = 1,
    OPTIONS_classes = 2,
    OPTIONS_top = 2,
    OPTIONS_bins = 5,
    OPTIONS_conv = 9,
    OPTIONS_conv_grad = 11,
    OPTIONS_conv_transposed = 11,
    OPTIONS_pool = 6,
    OPTIONS_pool_grad = 8,
    OPTIONS_scale = 2,
    OPTIONS_conv1 = 5,
    OPTIONS_pool1 = 3,
    OPTIONS_pool1_grad = 4,
    OPTIONS_scale1 = 1,
    OPTIONS_conv1_grad = 6,
    OPTIONS_conv1_transposed = 6,
    OPTIONS_conv3 = 13,
    OPTIONS_pool3 = 9,
    OPTIONS_pool3_grad = 12,
    OPTIONS_scale3 = 3,
    OPTIONS_conv3_grad = 16,
    OPTIONS_conv3_transposed = 16,
    OPTIONS_fourier = offsetof(fourier_attributes, kind) / sizeof(int32_t), /* the operator is the kind */
    OPTIONS_overlap = 1,
    OPTIONS_sizes = 2 * DUET_RANK_MAX,
    OPTIONS_order = DUET_RANK_MAX,
    OPTIONS_range = sizeof(range_words) / sizeof(int32_t),
    OPTIONS_offset = 2,
    OPTIONS_window = OPTIONS_range,
    OPTIONS_triangle = 3,
    OPTIONS_solver = 1,
    OPTIONS_indices = 4,
    OPTIONS_csr = sizeof(csr_words) / sizeof(int32_t),
    OPTIONS_turned = 1
};

/* Appends a failed node, which has this thread's text and as operands those that were found. NULL: the
 * arena is full. */
node *push_failure(arena *a, int arity, node *const x[], duet_status s, const char *site);

/* Returns the status of a failed node and restores its text. what: the name of the node in the
 * text if it is a bad matrix. */
duet_status failure_of(const node *n, const uint32_t *words, const char *what);

/* Fails if a result of this shape cannot exist. */
duet_status check_size(duet_dtype type, int rank, const int64_t *size);

/* The nodes of a persistent formula; NULL: it was dropped, which held_missing reports. */
const node *held_look(duet_expr e, uint32_t *root, const uint32_t **words, uint32_t *length);
duet_status held_missing(duet_expr e, const char *what) __attribute__((cold));
duet_status held_drop(duet_expr e, const char *site);
/* Sets *e to a persistent copy of f. Errors: NO_MEMORY */
duet_status held_store(const formula *f, duet_expr *e);

/* rule_reduce, rule_def: compute rank, sizes and attributes of the result of an operator that is not
 * element-wise, from its row. attr: the options as the user gave them. */
enum reduce_how { REDUCE_ALL, REDUCE_AXIS, REDUCE_KEEP };
/* Words of a reduction's options. One axis more than the rank limit is enough to find an error. */
enum { REDUCE_HOW, REDUCE_COUNT, REDUCE_AXES, REDUCE_GIVEN = REDUCE_AXES + DUET_RANK_MAX + 1 };
duet_status rule_reduce(enum op op, const node *x, const node *y, const int32_t *given, node *out);
/* einsum.c: reads the text of duet_einsum into *e, and returns *e as words. If the text is invalid,
 * letters[0] is EINSUM_INVALID. */
#define EINSUM_INVALID (-1)
const int32_t *einsum_read(const char *text, einsum_attributes *e);
duet_status rule_def(enum op op, node *const x[], const int32_t *attr,
                     node *out); /* out->type: as operand 0, unless the row says more */

/* fourier_rules.c: the attributes, sizes and type of the result of a transform or shift of x. */
typedef struct fourier_rule {
    fourier_attributes attr;
    int64_t size[DUET_RANK_MAX];
    duet_dtype type;
} fourier_rule;
duet_status rule_fourier(enum op op, const node *x, const duet_fourier *options, fourier_rule *rule);

/* A map row over numbers alone, in f64. */
double reduce_numbers(enum op op, double x, double y, double z);

#endif

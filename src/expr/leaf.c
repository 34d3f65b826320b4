/* leaf.c - leaves (matrices and numbers), and the words of nodes, which form the key of the plan
 * cache. */
#include "operands.h"
#include "status.h"

/* ---- words: the key of the plan cache ---- */

enum number_class number_class(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (x != 0 && (exponent < -126 || exponent > 126)) return NUMBER_EXTREME;
    if (bits << 12 != 0) return NUMBER_OTHER; /* most are */
    if (x == 0) return NUMBER_ZERO;
    if (x == 1) return NUMBER_ONE;
    return x == -1 ? NUMBER_MINUS_ONE : NUMBER_POWER;
}

/* The number of attribute words of an operator. */
static int attrs_of(enum op op)
{
    switch (op) {
#define DUET_FOLD1(name, ...) case OP_##name:
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
        return 2;
#define DUET_DEF1(name, options, ...)                                                                        \
    case OP_##name:                                                                                          \
        return OPTIONS_##options;
#define DUET_DEF2  DUET_DEF1
#define DUET_CALL1 DUET_DEF1
#define DUET_CALL2 DUET_DEF1
#define DUET_CALL3 DUET_DEF1
#include <duet/ops.def>
    case OP_HOLE:
    case OP_HOLE_NUMBER: return 1;
    default: return 0;
    }
}

/* A new leaf or number is compared with so many of the latest ones. One that equals an older one counts
 * as another. */
#define LATEST 16

/* Links n, the last node of the arena, into the list of leaves or numbers. */
static inline void follow(const arena *a, node *n, uint32_t *last)
{
    n->before = *last ? a->count - *last : 0;
    *last = a->count;
}

/* The distance back to the latest leaf that names the same matrix; 0: none. */
static uint32_t same_leaf(const node *n)
{
    const node *p = n;
    for (int tries = 0; tries < LATEST && p->before; tries++) {
        p -= p->before;
        if (p->matrix == n->matrix && p->matrix_serial == n->matrix_serial) return (uint32_t)(n - p);
    }
    return 0;
}

/* The distance back to the latest number with the same type and bits; 0: none. */
static uint32_t same_number(const node *n)
{
    const node *p = n;
    for (int tries = 0; tries < LATEST && p->before; tries++) {
        p -= p->before;
        if (!memcmp(&p->number, &n->number, sizeof n->number) && p->type == n->type) return (uint32_t)(n - p);
    }
    return 0;
}

static inline uint32_t *put_sizes(uint32_t *w, const int64_t *size, int rank)
{
    copy_sizes(w, size, rank);
    return w + 2 * rank;
}

/* Links n into the list of leaves. Returns the distance back to the same matrix; 0: none. */
static inline uint32_t link_leaf(arena *a, node *n)
{
    follow(a, n, &a->last_leaf);
    return same_leaf(n);
}

static uint32_t *leaf_words(arena *a, node *n, const uint32_t *like, uint32_t *w)
{
    const int rank = n->rank;
    *w++ = link_leaf(a, n);
    w = put_sizes(w, n->size, rank);
    if (n->kind & KIND(0, 0, 0, NODE_DENSE)) return w;
    if (!like) return put_sizes(w, n->matrix->at.stride, rank);
    memcpy(w, like + 2 + 2 * rank, 8 * (size_t)rank);
    return w + 2 * rank;
}

static uint32_t *operator_words(const node *n, const uint32_t *like, const uint32_t *first, uint32_t *w)
{
    for (int k = 0; k < 3 && n->back[k]; k++) *w++ = n->back[k];
    if (op_infos[n->op].kind == KIND_MAP) return w;
    const bool failed = n->flags & NODE_FAILED;
    for (int k = 0; !failed && k < attrs_of((enum op)n->op); k++) *w++ = (uint32_t)n->attr.word[k];
    for (int k = 0; failed && k < n->attr.failure.words; k++, w++) *w = like[w - first];
    return w;
}

static inline uint32_t first_word(uint32_t kind)
{
    return kind & KIND(0xff, 0xff, 0xff, NODE_WEAK | NODE_DENSE);
}

#define NUMBER_KIND KIND(OP_NUMBER, DUET_F64, 0, NODE_WEAK | NODE_PLAIN)

/* Numbers have no rank: their class is stored in its place. */
static inline uint32_t number_word(const node *n)
{
    return KIND(OP_NUMBER, n->type, number_class(node_number(n)), NODE_WEAK);
}

static inline uint32_t *number_words(arena *a, node *n, uint32_t *w)
{
    follow(a, n, &a->last_number);
    *w++ = number_word(n);
    *w++ = same_number(n);
    return w;
}

void words_put(arena *a, node *n, const uint32_t *like)
{
    uint32_t *first = a->words + a->length, *w = first;
    n->word = a->length;
    if (n->op != OP_NUMBER) *w++ = first_word(n->kind);
    if (n->op == OP_NUMBER) w = number_words(a, n, w);
    else if (n->op == OP_LEAF) w = leaf_words(a, n, like, w);
    else w = operator_words(n, like, first, w);
    a->length += (uint32_t)(w - first);
}

/* ---- leaves ---- */

duet_expr duet_of_expr(duet_expr e) { return e; }

static inline duet_expr push_number(arena *a, node *n, double x)
{
    n->number = x;
    a->length = (uint32_t)(number_words(a, n, a->words + n->word) - a->words);
    return handle_of(n);
}

static __attribute__((noinline)) duet_expr number_slow(double x)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    node *n = arena_push(a, NUMBER_KIND, NULL);
    if (n) return push_number(a, n, x);
    return full();
}

duet_expr duet_of_number(double x)
{
    arena *a = arena_ready();
    if (unlikely(!a)) return number_slow(x);
    return push_number(a, arena_push_ready(a, NUMBER_KIND, NULL), x);
}

/* Makes a number that no double represents. */
static __attribute__((noinline)) duet_expr wide_number(uint64_t bits, duet_dtype type)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    node *n = arena_push(a, KIND(OP_NUMBER, type, 0, NODE_WEAK | NODE_PLAIN), NULL);
    if (!n) return full();
    n->integer = (int64_t)bits;
    words_put(a, n, NULL);
    return handle_of(n);
}

#define EXACT ((int64_t)1 << 53) /* up to here every integer is a double */

duet_expr duet_of_integer(int64_t x)
{
    const bool exact = -EXACT <= x && x <= EXACT;
    return likely(exact) ? duet_of_number((double)x) : wide_number((uint64_t)x, DUET_I64);
}

duet_expr duet_of_unsigned(uint64_t x)
{
    if (likely(x <= EXACT)) return duet_of_number((double)x);
    return wide_number(x, x >> 63 ? DUET_U64 : DUET_I64);
}

static __attribute__((noinline, cold)) duet_expr bad_matrix(arena *a, const duet_matrix *m)
{
    duet_status s =
        m ? fail(DUET_FREED, "is a matrix that was freed") : fail(DUET_BAD_ARGUMENT, "must not be NULL");
    node *n = push_failure(a, 0, NULL, s, NULL);
    if (n) n->attr.failure.is_matrix = true;
    if (n) return handle_of(n);
    return full();
}

static __attribute__((noinline)) duet_expr matrix_slow(const duet_matrix *m)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    if (!m || !m->serial) return bad_matrix(a, m);
    node *n =
        arena_push(a, kind_of(OP_LEAF, m->at.type, m->at.rank) | KIND(0, 0, 0, m->dense ? NODE_DENSE : 0),
                   NULL);
    if (!n) return full();
    n->matrix = m;
    n->matrix_serial = m->serial;
    copy_sizes(n->size, m->at.size, m->at.rank);
    words_put(a, n, NULL);
    return handle_of(n);
}

/* Is m dense, with few axes, and floating point, as most matrices are? */
static inline bool is_plain_matrix(const duet_matrix *m)
{
    return m && m->serial && m->dense && m->at.rank <= PLAIN_RANK && m->at.type < FLOAT_TYPES;
}

duet_expr duet_of_matrix(const duet_matrix *m)
{
    arena *a = arena_ready();
    if (unlikely(!a || !is_plain_matrix(m))) return matrix_slow(m);
    const uint32_t word = KIND(OP_LEAF, m->at.type, m->at.rank, NODE_DENSE);
    node *n = arena_push_ready(a, word | KIND(0, 0, 0, NODE_PLAIN), NULL);
    uint32_t *w = a->words + n->word;
    n->matrix = m;
    n->matrix_serial = m->serial;
    memcpy(n->size, m->at.size, PLAIN_RANK * sizeof *n->size);
    memcpy(w + 2, m->at.size, PLAIN_RANK * sizeof *n->size);
    a->length = n->word + 2 + 2 * (uint32_t)m->at.rank;
    w[0] = word;
    w[1] = link_leaf(a, n);
    return handle_of(n);
}

duet_expr hole_operand(int which, int rank, const int64_t *size)
{
    arena *a = arena_mine();
    node *n = a ? arena_push(a, KIND(OP_HOLE, DUET_F32, rank, 0), NULL) : NULL;
    if (!n) return no_room(a ? DUET_ARENA_FULL : DUET_NO_MEMORY);
    n->attr.hole.which = which;
    memcpy(n->size, size, (size_t)rank * sizeof *size);
    words_put(a, n, NULL);
    return handle_of(n);
}

duet_expr hole_number(int which)
{
    arena *a = arena_mine();
    node *n = a ? arena_push(a, KIND(OP_HOLE_NUMBER, DUET_F32, 0, NODE_WEAK), NULL) : NULL;
    if (!n) return no_room(a ? DUET_ARENA_FULL : DUET_NO_MEMORY);
    n->attr.hole.which = which;
    words_put(a, n, NULL);
    return handle_of(n);
}

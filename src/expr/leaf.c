/* leaf.c - leaves: matrices and numbers. */
#include "operands.h"
#include "status.h"
#include "words.h"

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
    return m && m->serial && m->dense && m->at.rank <= PLAIN_RANK && dtype_is_f32_or_f64(m->at.type);
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

duet_expr hole_number(void)
{
    arena *a = arena_mine();
    node *n = a ? arena_push(a, KIND(OP_HOLE_NUMBER, DUET_F32, 0, NODE_WEAK), NULL) : NULL;
    if (!n) return no_room(a ? DUET_ARENA_FULL : DUET_NO_MEMORY);
    words_put(a, n, NULL);
    return handle_of(n);
}

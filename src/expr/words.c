/* words.c - the words of nodes, which form the key of the plan cache. */
#include "words.h"

enum number_class number_class(double x) { return number_class_of(x); }

/* How many attributes an operator has. */
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
    case OP_collective: return sizeof(collective_attributes) / sizeof(int32_t);
    case OP_HOLE:
    case OP_HOLE_NUMBER: return 1;
    default: return 0;
    }
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
    return kind & KIND(0xff, 0xff, 0xff, NODE_WEAK | NODE_DENSE | NODE_CHECKPOINT);
}

void node_flag(arena *a, node *n, uint8_t flag)
{
    n->flags |= flag;
    a->words[n->word] = first_word(n->kind);
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

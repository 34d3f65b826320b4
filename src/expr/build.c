/* build.c - the operators: they find their operands, settle type and shape, and append a node. */
#include "arena.h"
#include "dtype.h"
#include "status.h"
#include <math.h>
#include <string.h>

/* ---- words: the key of the plan cache ---- */

enum number_class number_class(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (x != 0 && (exponent < -126 || exponent > 126)) return NUMBER_EXTREME;
    if (bits << 12 != 0) return NUMBER_OTHER; /* most are */
    if (x == 0) return NUMBER_ZERO;
    return x == 1 ? NUMBER_ONE : x == -1 ? NUMBER_MINUS_ONE : NUMBER_POWER;
}

int attrs_of(enum op op)
{
    switch (op) {
#define DUET_FOLD1(name, ...) case OP_##name:
#define DUET_FOLD2            DUET_FOLD1
#define DUET_MOMENT1          DUET_FOLD1
#define DUET_PLACE1           DUET_FOLD1
#include <duet/ops.def>
        return 2;
    case OP_conv2d:
    case OP_convolve2d: return 4;
    case OP_max_pool2d:
    case OP_avg_pool2d: return 6;
    case OP_HOLE:
    case OP_HOLE_NUMBER: return 1;
    default: return 0;
    }
}

/* Leaves and numbers are each looked for among so many of the latest: beyond, equal ones count as two. */
#define LATEST 16

/* Notes that n, which stands on top, is the latest of its kind. */
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

/* The same of numbers: those of the same bits. */
static uint32_t same_number(const node *n)
{
    const node *p = n;
    for (int tries = 0; tries < LATEST && p->before; tries++) {
        p -= p->before;
        if (!memcmp(&p->number, &n->number, sizeof n->number)) return (uint32_t)(n - p);
    }
    return 0;
}

/* Few matrices have more than two axes: so many sizes are copied without asking. */
static inline void copy_sizes(void *to, const int64_t *from, int rank)
{
    memcpy(to, from, PLAIN_RANK * sizeof *from);
    if (__builtin_expect(rank > PLAIN_RANK, 0))
        memcpy((char *)to + PLAIN_RANK * sizeof *from, from + PLAIN_RANK, (size_t)(rank - PLAIN_RANK) * sizeof *from);
}

static inline uint32_t *put_sizes(uint32_t *w, const int64_t *size, int rank) { return copy_sizes(w, size, rank), w + 2 * rank; }

/* n is the latest leaf now; the distance back to the same matrix. */
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
    for (int k = 0; !failed && k < attrs_of((enum op)n->op); k++) *w++ = (uint32_t)n->attr[k];
    for (int k = 0; failed && k < n->attr[1]; k++, w++) *w = like[w - first];
    return w;
}

static inline uint32_t first_word(uint32_t kind) { return kind & KIND(0xff, 0xff, 0xff, NODE_WEAK | NODE_DENSE); }

#define NUMBER_KIND KIND(OP_NUMBER, DUET_F64, 0, NODE_WEAK | NODE_PLAIN)

/* Numbers have no rank: their class stands in its place. */
static inline uint32_t number_word(double x) { return KIND(OP_NUMBER, DUET_F64, number_class(x), NODE_WEAK); }

static inline uint32_t *number_words(arena *a, node *n, uint32_t *w)
{
    follow(a, n, &a->last_number);
    *w++ = number_word(n->number);
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

static duet_expr no_room(duet_status s) { return (duet_expr){ (uint64_t)s }; }

static duet_expr full(void) { return no_room(DUET_ARENA_FULL); }

/* The arena, if there is one with room for a node; or NULL. */
static inline arena *arena_ready(void)
{
    arena *a = arena_here;
    return a && a->next != a->stop ? a : NULL;
}

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
    return n ? push_number(a, n, x) : full();
}

duet_expr duet_of_number(double x)
{
    arena *a = arena_ready();
    if (__builtin_expect(!a, 0)) return number_slow(x);
    return push_number(a, arena_push_ready(a, NUMBER_KIND, NULL), x);
}

duet_expr duet_of_integer(int64_t x) { return duet_of_number((double)x); }
duet_expr duet_of_unsigned(uint64_t x) { return duet_of_number((double)x); }

static __attribute__((noinline, cold)) duet_expr bad_matrix(arena *a, const duet_matrix *m)
{
    duet_status s = m ? fail(DUET_FREED, "a freed matrix") : fail(DUET_BAD_ARGUMENT, "a null matrix");
    node *n = push_failure(a, 0, NULL, s, NULL);
    if (n) n->attr[2] = true;
    return n ? handle_of(n) : full();
}

static inline uint32_t kind_of(enum op op, duet_dtype type, int rank)
{
    return KIND(op, type, rank, type < FLOAT_TYPES && rank <= PLAIN_RANK ? NODE_PLAIN : 0);
}

static __attribute__((noinline)) duet_expr matrix_slow(const duet_matrix *m)
{
    arena *a = arena_mine();
    if (!a) return no_room(DUET_NO_MEMORY);
    if (!m || !m->serial) return bad_matrix(a, m);
    node *n = arena_push(a, kind_of(OP_LEAF, m->at.type, m->at.rank) | KIND(0, 0, 0, m->dense ? NODE_DENSE : 0), NULL);
    if (!n) return full();
    n->matrix = m, n->matrix_serial = m->serial;
    copy_sizes(n->size, m->at.size, m->at.rank);
    words_put(a, n, NULL);
    return handle_of(n);
}

/* As most are: dense, of few axes, of floating point. */
static inline bool is_plain_matrix(const duet_matrix *m)
{
    return m && m->serial && m->dense && m->at.rank <= PLAIN_RANK && m->at.type < FLOAT_TYPES;
}

duet_expr duet_of_matrix(const duet_matrix *m)
{
    arena *a = arena_ready();
    if (__builtin_expect(!a || !is_plain_matrix(m), 0)) return matrix_slow(m);
    const uint32_t word = KIND(OP_LEAF, m->at.type, m->at.rank, NODE_DENSE);
    node *n = arena_push_ready(a, word | KIND(0, 0, 0, NODE_PLAIN), NULL);
    uint32_t *w = a->words + n->word;
    n->matrix = m, n->matrix_serial = m->serial;
    memcpy(n->size, m->at.size, PLAIN_RANK * sizeof *n->size);
    memcpy(w + 2, m->at.size, PLAIN_RANK * sizeof *n->size);
    a->length = n->word + 2 + 2 * (uint32_t)m->at.rank;
    w[0] = word, w[1] = link_leaf(a, n);
    return handle_of(n);
}

duet_expr hole_operand(int which, int rank)
{
    arena *a = arena_mine();
    node *n = a ? arena_push(a, KIND(OP_HOLE, DUET_F32, rank, 0), NULL) : NULL;
    if (!n) return no_room(a ? DUET_ARENA_FULL : DUET_NO_MEMORY);
    n->attr[0] = which;
    for (int i = 0; i < rank; i++) n->size[i] = 7; /* any size: patterns are not evaluated */
    words_put(a, n, NULL);
    return handle_of(n);
}

duet_expr hole_number(int which)
{
    arena *a = arena_mine();
    node *n = a ? arena_push(a, KIND(OP_HOLE_NUMBER, DUET_F32, 0, NODE_WEAK), NULL) : NULL;
    if (!n) return no_room(a ? DUET_ARENA_FULL : DUET_NO_MEMORY);
    n->attr[0] = which;
    words_put(a, n, NULL);
    return handle_of(n);
}

/* ---- operators ---- */

static inline void adopt(arena *a, node *n, int operands, node *const x[])
{
    uint32_t stored = 0, first = n->first, consumed = 0;
    for (int k = 0; k < operands; k++) {
        if (__builtin_expect(!x[k], 0)) continue;
        n->back[stored++] = (uint32_t)(n - x[k]);
        if (x[k]->first < first) first = x[k]->first;
        consumed += (x[k]->kind & KIND(0, 0, 0, NODE_ROOT)) != 0, x[k]->kind &= ~KIND(0, 0, 0, NODE_ROOT);
    }
    if (stored < 3) n->back[stored] = 0;
    n->first = first, a->roots -= consumed;
}

node *push_failure(arena *a, int operands, node *const x[], duet_status s, const char *site)
{
    char text[sizeof thread_get()->text];
    memcpy(text, thread_get()->text, sizeof text);
    node *n = arena_push(a, KIND(OP_HOLE, DUET_F32, 0, NODE_FAILED), site);
    if (!n) return NULL;
    adopt(a, n, operands, x);
    size_t words = strlen(text) / 4 + 1;
    n->attr[0] = (int32_t)s, n->attr[1] = (int32_t)words, n->attr[2] = false;
    put(a, n->op);
    for (int k = 0; k < 3 && n->back[k]; k++) put(a, n->back[k]);
    memcpy(a->words + a->length, text, strlen(text) + 1), a->length += (uint32_t)words;
    return n;
}

duet_status failure_of(const node *n, const uint32_t *words, const char *what)
{
    int k = 0;
    while (k < 3 && n->back[k]) k++;
    const char *text = (const char *)(words + n->word + 1 + k);
    duet_status s = (duet_status)n->attr[0];
    return n->attr[2] ? fail(s, "%s is %s", what, text) : fail(s, "%s", text);
}

static void name_operand(char text[80], enum op op, int k)
{
    static const char *const nth[] = { "first", "second", "third" };
    snprintf(text, 80, "duet_%s: the %s operand", op_infos[op].name, nth[k]);
}

/* A failed operand fails what is built from it: the first error stays. */
static duet_status operand_status(const arena *a, enum op op, int operands, node *const x[])
{
    char what[80];
    for (int k = 0; k < operands; k++)
        if (__builtin_expect(x[k]->flags & NODE_FAILED, 0)) return name_operand(what, op, k), failure_of(x[k], a->words, what);
    return DUET_OK;
}

/* A held formula is copied to where it is used. */
static node *import(arena *a, const node *held, const uint32_t *words, uint32_t root, duet_status *why)
{
    node *n = NULL;
    *why = arena_copy(a, held, words, root, &n);
    return n;
}

static node *find(arena *a, duet_expr e, enum op op, int k, duet_status *why)
{
    char what[80];
    uint32_t root, length;
    const uint32_t *words;
    const bool is_held = e.serial & SERIAL_HELD;
    const node *held = is_held ? held_look(e, &root, &words, &length) : NULL;
    node *n = is_held ? NULL : arena_look(a, e.serial);
    if (held) return import(a, held, words, root, why);
    if (n && !(n->flags & NODE_SPENT)) return n;
    name_operand(what, op, k);
    *why = is_held ? held_missing(e, what) : arena_missing(a, e, what);
    return NULL;
}

/* The first node of a new operator above its operands, or of the failure of one of them. */
static duet_status operands(arena *a, enum op op, int arity, const duet_expr e[], node *x[])
{
    duet_status s = DUET_OK;
    for (int k = 0; k < arity; k++) {
        duet_status why = DUET_OK;
        x[k] = find(a, e[k], op, k, &why);
        if (!x[k] && s == DUET_OK) s = why;
    }
    return s == DUET_OK ? operand_status(a, op, arity, x) : s;
}

static __attribute__((noinline, cold)) duet_expr failed(arena *a, int arity, node *const x[], duet_status s, const char *site)
{
    if (site) fail_at(s, site);
    node *n = s == DUET_ARENA_FULL ? NULL : push_failure(a, arity, x, s, site);
    if (n) return handle_of(n);
    for (int k = 0; k < arity; k++)
        if (x[k]) arena_spend(a, x[k], site);
    return no_room(s);
}

static inline node *push_operator(arena *a, uint32_t kind, int arity, node *const x[], const char *site)
{
    node *n = arena_push(a, kind, site);
    if (n) adopt(a, n, arity, x);
    return n;
}

/* ---- element by element ---- */

static __attribute__((noinline, cold)) duet_status no_broadcast(enum op op, int arity, node *const x[])
{
    char text[3][SHAPE_TEXT];
    for (int k = 0; k < arity; k++) shape_text(text[k], x[k]->type, x[k]->rank, x[k]->size);
    if (arity == 2)
        return fail(DUET_BAD_SHAPE, "duet_%s(%s, %s): the shapes do not broadcast", op_infos[op].name, text[0], text[1]);
    return fail(DUET_BAD_SHAPE, "duet_%s(%s, %s, %s): the shapes do not broadcast", op_infos[op].name, text[0], text[1], text[2]);
}

static __attribute__((noinline, cold)) duet_status mixed_types(enum op op, const node *x, const node *y)
{
    char text[2][SHAPE_TEXT];
    shape_text(text[0], x->type, x->rank, x->size), shape_text(text[1], y->type, y->rank, y->size);
    return fail(DUET_BAD_TYPE, "duet_%s(%s, %s) needs operands of one type", op_infos[op].name, text[0], text[1]);
}

static __attribute__((noinline, cold)) duet_status not_of_type(enum op op, const node *x)
{
    char text[SHAPE_TEXT];
    shape_text(text, x->type, x->rank, x->size);
    return fail(DUET_BAD_TYPE, "duet_%s(%s) needs elements that are floating point", op_infos[op].name, text);
}

static inline bool same_sizes(const node *x, const node *y)
{
    const int rank = x->rank;
    if (rank != y->rank) return false;
    if (rank > 0 && x->size[0] != y->size[0]) return false;
    if (rank > 1 && x->size[1] != y->size[1]) return false;
    return rank <= 2 || !memcmp(x->size + 2, y->size + 2, (size_t)(rank - 2) * sizeof *x->size);
}

static void take_shape(const node *x, shape *s)
{
    s->rank = x->rank;
    for (int i = 0; i < x->rank; i++) s->size[i] = x->size[i];
}

/* NumPy's rule over all operands, of which none is NULL. */
static __attribute__((noinline)) duet_status broadcast(enum op op, int arity, node *const x[], duet_dtype type, shape *out)
{
    take_shape(x[0], out);
    for (int k = 1; k < arity; k++) {
        shape y;
        take_shape(x[k], &y);
        if (!shape_broadcast(out, &y, out)) return no_broadcast(op, arity, x);
    }
    return check_size(op, type, out->rank, out->size);
}

/* The operand that settles the type: the first that is not weak; NULL when all are. */
static duet_status settle_type(enum op op, int arity, node *const x[], const node **strong)
{
    *strong = NULL;
    for (int k = 0; k < arity; k++) {
        if (x[k]->flags & NODE_WEAK) continue;
        if (__builtin_expect(x[k]->type >= FLOAT_TYPES && op != OP_transpose, 0)) return not_of_type(op, x[k]);
        if (!*strong) *strong = x[k];
        else if (__builtin_expect((*strong)->type != x[k]->type, 0)) return mixed_types(op, *strong, x[k]);
    }
    return DUET_OK;
}

static bool one_shape(int arity, node *const x[], const node *strong)
{
    for (int k = 0; k < arity; k++)
        if (x[k]->rank && !same_sizes(x[k], strong)) return false;
    return true;
}

static duet_status shape_of_map(enum op op, int arity, node *const x[], const node *strong, shape *out)
{
    if (__builtin_expect(one_shape(arity, x, strong), 1)) return take_shape(strong, out), DUET_OK;
    return broadcast(op, arity, x, (duet_dtype)strong->type, out);
}

static double number_of(int arity, node *const x[], int k) { return k < arity ? x[k]->number : 0; }

static __attribute__((noinline)) duet_expr map(enum op op, int arity, const duet_expr e[], const char *site)
{
    arena *a = arena_mine();
    if (__builtin_expect(!a, 0)) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    const node *strong = NULL;
    shape out;
    duet_status s = operands(a, op, arity, e, x);
    if (__builtin_expect(s == DUET_OK, 1)) s = settle_type(op, arity, x, &strong);
    if (__builtin_expect(s == DUET_OK && strong, 1)) s = shape_of_map(op, arity, x, strong, &out);
    if (__builtin_expect(s != DUET_OK, 0)) return failed(a, arity, x, s, site);
    bool holes = !strong && (x[0]->op == OP_HOLE_NUMBER || (arity > 1 && x[1]->op == OP_HOLE_NUMBER));
    const uint32_t weak = KIND(holes ? op : OP_NUMBER, DUET_F64, 0, NODE_WEAK);
    const uint32_t kind = strong ? kind_of(op, (duet_dtype)strong->type, out.rank) : weak;
    node *n = push_operator(a, kind, arity, x, site);
    if (!n) return failed(a, arity, x, DUET_ARENA_FULL, site);
    if (strong) copy_sizes(n->size, out.size, out.rank);
    else if (!holes) n->number = fold_numbers(op, number_of(arity, x, 0), number_of(arity, x, 1), number_of(arity, x, 2));
    words_put(a, n, NULL);
    return handle_of(n);
}

/* ---- the same, the short way: without a call, so that few registers need be saved ---- */

/* The node of e, if it stands where its serial says: so do all of a formula that is being built. */
static inline node *at_hand(const arena *a, duet_expr e)
{
    const uint64_t i = e.serial - (a->next - a->count);
    return __builtin_expect(i < a->count && a->nodes[i].serial == e.serial, 1) ? &a->nodes[i] : NULL;
}

/* Of one type, and one shape of at most PLAIN_RANK axes? */
static inline bool alike(const node *x, const node *y)
{
    if ((x->kind ^ y->kind) & KIND(0, 0xff, 0xff, 0)) return false;
    return (!x->rank || x->size[0] == y->size[0]) && (!(x->kind & KIND(0, 0, PLAIN_RANK, 0)) || x->size[1] == y->size[1]);
}

/* The operand that has the result's type and shape, where all are plain, and alike or numbers; else NULL. */
static inline __attribute__((always_inline)) const node *plain(int arity, node *const x[])
{
    const node *like = x[0];
    uint32_t all = x[0]->kind;
    for (int k = 1; k < arity; k++) all &= x[k]->kind;
    if (__builtin_expect(!(all & KIND(0, 0, 0, NODE_PLAIN)) || all & KIND(0, 0, 0, NODE_WEAK), 0)) return NULL;
    for (int k = 1; k < arity; k++)
        if (like->kind & KIND(0, 0, 0, NODE_WEAK)) like = x[k];
        else if (__builtin_expect(!(x[k]->kind & KIND(0, 0, 0, NODE_WEAK)) && !alike(like, x[k]), 0)) return NULL;
    return like;
}

/* x is an operand now: 1 if it was none before. */
static inline uint32_t take_root(node *x)
{
    const uint32_t kind = x->kind;
    x->kind = kind & ~KIND(0, 0, 0, NODE_ROOT);
    return kind / KIND(0, 0, 0, NODE_ROOT) & 1;
}

/* The operator above such operands, as most are, which stand where their serials say. false: they are not such: map() knows. arity is a
 * constant where this is inlined. Each field of the arena is read and written once: they wait for their last writing. */
static inline __attribute__((always_inline)) bool map_plain(arena *a, enum op op, int arity, const duet_expr e[], node *const x[],
                                                            const char *site, duet_expr *made)
{
    const node *like = plain(arity, x);
    if (__builtin_expect(!like, 0)) return false;
    const uint64_t serial = a->next;
    const uint32_t word = KIND(op, 0, 0, 0) | (like->kind & KIND(0, 0xff, 0xff, 0)), length = a->length;
    uint32_t *w = a->words + length, first = x[0]->first, roots = a->roots + 1;
    node *n = &a->nodes[a->count];
    for (int k = 0; k < arity; k++) {
        if (x[k]->first < first) first = x[k]->first;
        roots -= take_root(x[k]);
        w[1 + k] = n->back[k] = (uint32_t)(serial - e[k].serial);
    }
    if (arity < 3) n->back[arity] = 0;
    n->serial = serial, n->kind = word | KIND(0, 0, 0, NODE_ROOT | NODE_PLAIN), n->word = length, n->first = first,
    n->site = site;
    memcpy(n->size, like->size, PLAIN_RANK * sizeof *n->size);
    w[0] = word;
    a->next = serial + 1, a->count++, a->length = length + 1 + (uint32_t)arity, a->roots = roots;
    *made = (duet_expr){ serial };
    return true;
}

static __attribute__((noinline)) duet_expr map1_any(duet_expr x, const char *site, enum op op)
{
    return map(op, 1, (duet_expr[]){ x }, site);
}

static __attribute__((noinline)) duet_expr map2_any(duet_expr x, duet_expr y, const char *site, enum op op)
{
    return map(op, 2, (duet_expr[]){ x, y }, site);
}

static __attribute__((noinline)) duet_expr map3_any(duet_expr x, duet_expr y, duet_expr z, const char *site, enum op op)
{
    return map(op, 3, (duet_expr[]){ x, y, z }, site);
}

static __attribute__((noinline)) duet_expr map1(duet_expr x, const char *site, enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL;
    if (__builtin_expect(p && map_plain(a, op, 1, &x, (node *[]){ p }, site, &made), 1)) return made;
    return map1_any(x, site, op);
}

static __attribute__((noinline)) duet_expr map2(duet_expr x, duet_expr y, const char *site, enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL, *q = p ? at_hand(a, y) : NULL;
    if (__builtin_expect(q && map_plain(a, op, 2, (duet_expr[]){ x, y }, (node *[]){ p, q }, site, &made), 1)) return made;
    return map2_any(x, y, site, op);
}

static __attribute__((noinline)) duet_expr map3(duet_expr x, duet_expr y, duet_expr z, const char *site, enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL, *q = p ? at_hand(a, y) : NULL, *r = q ? at_hand(a, z) : NULL;
    if (__builtin_expect(r && map_plain(a, op, 3, (duet_expr[]){ x, y, z }, (node *[]){ p, q, r }, site, &made), 1)) return made;
    return map3_any(x, y, z, site, op);
}

#define DUET_MAP1(name, ...)                                                                                                     \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site) { return map1(x, site, OP_##name); }                              \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }
#define DUET_MAP2(name, ...)                                                                                                     \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, const char *site) { return map2(x, y, site, OP_##name); }              \
    duet_expr(duet_##name)(duet_expr x, duet_expr y) { return duet_##name##_at(x, y, NULL); }
#define DUET_MAP3(name, ...)                                                                                                     \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, duet_expr z, const char *site)                                         \
    {                                                                                                                            \
        return map3(x, y, z, site, OP_##name);                                                                                   \
    }                                                                                                                            \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, duet_expr z) { return duet_##name##_at(x, y, z, NULL); }
#include <duet/ops.def>

/* ---- reductions and the other operators ---- */

static duet_expr other(enum op op, int arity, const duet_expr e[], const int32_t *attr, const char *site)
{
    arena *a = arena_mine();
    if (__builtin_expect(!a, 0)) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    node rule = { 0 };
    const node *strong = NULL;
    duet_status s = operands(a, op, arity, e, x);
    if (s == DUET_OK) s = settle_type(op, arity, x, &strong);
    if (s == DUET_OK && op_infos[op].kind == KIND_FOLD) s = rule_fold(op, x[0], x[1], attr[0], (enum fold_how)attr[1], &rule);
    else if (s == DUET_OK) s = rule_def(op, x[0], x[1], attr, &rule);
    if (s != DUET_OK) return failed(a, arity, x, s, site);
    const duet_dtype type = op_infos[op].flags & OP_GIVES_INDEX ? DUET_I64 : strong ? (duet_dtype)strong->type : DUET_F64;
    node *n = push_operator(a, kind_of(op, type, rule.rank), arity, x, site);
    if (!n) return failed(a, arity, x, DUET_ARENA_FULL, site);
    memcpy(n->size, rule.size, sizeof n->size), memcpy(n->attr, rule.attr, sizeof n->attr);
    words_put(a, n, NULL);
    return handle_of(n);
}

#define FOLD(name, arity, axis, how, ...) other(OP_##name, arity, (duet_expr[]){ __VA_ARGS__ }, (int32_t[]){ axis, how }, site)

#define DUET_FOLD1(name, ...)                                                                                                    \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site) { return FOLD(name, 1, 0, FOLD_ALL, x); }                         \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }                                                    \
    duet_expr(duet_##name##_axis_at)(duet_expr x, int axis, const char *site) { return FOLD(name, 1, axis, FOLD_AXIS, x); }      \
    duet_expr(duet_##name##_axis)(duet_expr x, int axis) { return duet_##name##_axis_at(x, axis, NULL); }                        \
    duet_expr(duet_##name##_keep_at)(duet_expr x, int axis, const char *site) { return FOLD(name, 1, axis, FOLD_KEEP, x); }      \
    duet_expr(duet_##name##_keep)(duet_expr x, int axis) { return duet_##name##_keep_at(x, axis, NULL); }
#define DUET_MOMENT1 DUET_FOLD1
#define DUET_PLACE1  DUET_FOLD1
#define DUET_FOLD2(name, ...)                                                                                                    \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, const char *site) { return FOLD(name, 2, 0, FOLD_ALL, x, y); }         \
    duet_expr(duet_##name)(duet_expr x, duet_expr y) { return duet_##name##_at(x, y, NULL); }                                    \
    duet_expr(duet_##name##_axis_at)(duet_expr x, duet_expr y, int axis, const char *site)                                       \
    {                                                                                                                            \
        return FOLD(name, 2, axis, FOLD_AXIS, x, y);                                                                             \
    }                                                                                                                            \
    duet_expr(duet_##name##_axis)(duet_expr x, duet_expr y, int axis) { return duet_##name##_axis_at(x, y, axis, NULL); }        \
    duet_expr(duet_##name##_keep_at)(duet_expr x, duet_expr y, int axis, const char *site)                                       \
    {                                                                                                                            \
        return FOLD(name, 2, axis, FOLD_KEEP, x, y);                                                                             \
    }                                                                                                                            \
    duet_expr(duet_##name##_keep)(duet_expr x, duet_expr y, int axis) { return duet_##name##_keep_at(x, y, axis, NULL); }

#define GIVE_plain
#define GIVE_conv   , options
#define GIVE_pool   , options
#define ATTRS_plain NULL
#define ATTRS_conv                                                                                                               \
    options ? (const int32_t *)options : (int32_t[4]) { 0 }
#define ATTRS_pool                                                                                                               \
    options ? (const int32_t *)options : (int32_t[6]) { 0 }
_Static_assert(sizeof(duet_conv) == 4 * sizeof(int32_t) && sizeof(duet_pool) == 6 * sizeof(int32_t),
               "options are attributes in order");

#define DUET_DEF1(name, options_, ...)                                                                                           \
    duet_expr(duet_##name##_at)(duet_expr x DUET_OPTIONS_##options_, const char *site)                                           \
    {                                                                                                                            \
        return other(OP_##name, 1, (duet_expr[]){ x }, ATTRS_##options_, site);                                                  \
    }                                                                                                                            \
    duet_expr(duet_##name)(duet_expr x DUET_OPTIONS_##options_) { return duet_##name##_at(x GIVE_##options_, NULL); }
#define DUET_DEF2(name, options_, ...)                                                                                           \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y DUET_OPTIONS_##options_, const char *site)                              \
    {                                                                                                                            \
        return other(OP_##name, 2, (duet_expr[]){ x, y }, ATTRS_##options_, site);                                               \
    }                                                                                                                            \
    duet_expr(duet_##name)(duet_expr x, duet_expr y DUET_OPTIONS_##options_)                                                     \
    {                                                                                                                            \
        return duet_##name##_at(x, y GIVE_##options_, NULL);                                                                     \
    }
#include <duet/ops.def>

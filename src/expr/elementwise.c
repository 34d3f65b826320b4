/* elementwise.c - the operators that work element by element. Each determines the type and the
 * shape of the result, and appends a node. */
#include "call_text.h"
#include "fp_environment.h"
#include "operands.h"
#include "status.h"

/* ---- any operands ---- */

static __attribute__((noinline, cold)) duet_status no_broadcast(void)
{
    return fail(DUET_BAD_SHAPE, "the shapes of the operands do not broadcast");
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

/* Broadcasts all operands by NumPy's rule. None may be NULL. */
static __attribute__((noinline)) duet_status broadcast(int arity, node *const x[], duet_dtype type,
                                                       shape *out)
{
    take_shape(x[0], out);
    for (int k = 1; k < arity; k++) {
        shape y;
        take_shape(x[k], &y);
        if (!shape_broadcast(out, &y, out)) return no_broadcast();
    }
    return check_size(type, out->rank, out->size);
}

static bool one_shape(int arity, node *const x[], const node *strong)
{
    for (int k = 0; k < arity; k++)
        if (x[k]->rank && !same_sizes(x[k], strong)) return false;
    return true;
}

static duet_status shape_of_map(int arity, node *const x[], duet_dtype type, shape *out)
{
    const node *strong = x[0];
    for (int k = 1; k < arity && strong->flags & NODE_WEAK; k++) strong = x[k];
    if (likely(one_shape(arity, x, strong))) {
        take_shape(strong, out);
        return DUET_OK;
    }
    return broadcast(arity, x, type, out);
}

static double operand_number(int arity, node *const x[], int k) { return k < arity ? node_number(x[k]) : 0; }

static double folded(enum op op, int arity, node *const x[])
{
    IN_DEFAULT_FP_ENVIRONMENT;
    return reduce_numbers(op, operand_number(arity, x, 0), operand_number(arity, x, 1),
                          operand_number(arity, x, 2));
}

static __attribute__((noinline)) duet_expr map(enum op op, int arity, const duet_expr e[], const char *site)
{
    arena *a = arena_mine();
    if (unlikely(!a)) return no_room(DUET_NO_MEMORY);
    node *x[3] = { 0 };
    duet_dtype type = DUET_DTYPE_COUNT;
    shape out;
    duet_status s = operands(a, op, arity, e, x);
    if (likely(s == DUET_OK)) s = settle_type(op, arity, x, &type);
    const bool strong = type != DUET_DTYPE_COUNT;
    if (likely(s == DUET_OK && strong)) s = shape_of_map(arity, x, type, &out);
    if (unlikely(s != DUET_OK)) return call_failed(a, op_infos[op].name, arity, x, s, site);
    bool holes = !strong && (x[0]->op == OP_HOLE_NUMBER || (arity > 1 && x[1]->op == OP_HOLE_NUMBER));
    const uint32_t weak = KIND(holes ? op : OP_NUMBER, DUET_F64, 0, NODE_WEAK);
    const uint32_t kind = strong ? kind_of(op, type, out.rank) : weak;
    node *n = push_operator(a, kind, arity, x, site);
    if (!n) return call_failed(a, op_infos[op].name, arity, x, DUET_ARENA_FULL, site);
    if (strong) copy_sizes(n->size, out.size, out.rank);
    else if (!holes) n->number = folded(op, arity, x);
    words_put(a, n, NULL);
    return handle_of(n);
}

/* ---- the fast path: it makes no calls, so that few registers are saved ---- */

/* The node of e if its serial gives its index, else NULL. The serials of all nodes of a formula that is
 * being built do. */
static inline node *at_hand(const arena *a, duet_expr e)
{
    const uint64_t i = e.serial - (a->next - a->count);
    return likely(i < a->count && a->nodes[i].serial == e.serial) ? &a->nodes[i] : NULL;
}

/* Do x and y have the same type and shape? They have at most PLAIN_RANK axes. */
static inline bool alike(const node *x, const node *y)
{
    if ((x->kind ^ y->kind) & KIND(0, 0xff, 0xff, 0)) return false;
    return (!x->rank || x->size[0] == y->size[0]) &&
           (!(x->kind & KIND(0, 0, PLAIN_RANK, 0)) || x->size[1] == y->size[1]);
}

/* Returns the operand that has the type and shape of the result. NULL: an operand is not plain, or two
 * matrices differ in type or shape. */
static inline __attribute__((always_inline)) const node *plain(int arity, node *const x[])
{
    const node *like = x[0];
    uint32_t all = x[0]->kind;
    for (int k = 1; k < arity; k++) all &= x[k]->kind;
    if (unlikely(!(all & KIND(0, 0, 0, NODE_PLAIN)) || all & KIND(0, 0, 0, NODE_WEAK))) return NULL;
    for (int k = 1; k < arity; k++)
        if (like->kind & KIND(0, 0, 0, NODE_WEAK)) like = x[k];
        else if (unlikely(!(x[k]->kind & KIND(0, 0, 0, NODE_WEAK)) && !alike(like, x[k]))) return NULL;
    return like;
}

/* Marks x as an operand. Returns 1 if x was a root until now, else 0. */
static inline uint32_t take_root(node *x)
{
    const uint32_t kind = x->kind;
    x->kind = kind & ~KIND(0, 0, 0, NODE_ROOT);
    return kind / KIND(0, 0, 0, NODE_ROOT) & 1;
}

/* The fast path of map(), for plain operands. Returns false if an operand is not plain. `arity` is a
 * constant where this is inlined. Each field of the arena is read and written only once, because a
 * load would wait for the last store to it. */
static inline __attribute__((always_inline)) bool map_plain(arena *a, enum op op, int arity,
                                                            const duet_expr e[], node *const x[],
                                                            const char *site, duet_expr *made)
{
    const node *like = plain(arity, x);
    if (unlikely(!like)) return false;
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
    n->serial = serial;
    n->kind = word | KIND(0, 0, 0, NODE_ROOT | NODE_PLAIN);
    n->word = length;
    n->first = first;
    n->site = site;
    memcpy(n->size, like->size, PLAIN_RANK * sizeof *n->size);
    w[0] = word;
    a->next = serial + 1;
    a->count++;
    a->length = length + 1 + (uint32_t)arity;
    a->roots = roots;
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

static __attribute__((noinline)) duet_expr map3_any(duet_expr x, duet_expr y, duet_expr z, const char *site,
                                                    enum op op)
{
    return map(op, 3, (duet_expr[]){ x, y, z }, site);
}

static __attribute__((noinline)) duet_expr map1(duet_expr x, const char *site, enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL;
    if (likely(p && map_plain(a, op, 1, &x, (node *[]){ p }, site, &made))) return made;
    return map1_any(x, site, op);
}

static __attribute__((noinline)) duet_expr map2(duet_expr x, duet_expr y, const char *site, enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL, *q = p ? at_hand(a, y) : NULL;
    if (likely(q && map_plain(a, op, 2, (duet_expr[]){ x, y }, (node *[]){ p, q }, site, &made))) return made;
    return map2_any(x, y, site, op);
}

static __attribute__((noinline)) duet_expr map3(duet_expr x, duet_expr y, duet_expr z, const char *site,
                                                enum op op)
{
    arena *a = arena_ready();
    duet_expr made;
    node *p = a ? at_hand(a, x) : NULL, *q = p ? at_hand(a, y) : NULL, *r = q ? at_hand(a, z) : NULL;
    if (likely(r && map_plain(a, op, 3, (duet_expr[]){ x, y, z }, (node *[]){ p, q, r }, site, &made)))
        return made;
    return map3_any(x, y, z, site, op);
}

/* Integer operators, and those whose result has another type than the operands, take the general
 * path. */
#define MAP1(name, make)                                                                                     \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site) { return make(x, site, OP_##name); }          \
    duet_expr(duet_##name)(duet_expr x) { return duet_##name##_at(x, NULL); }
#define MAP2(name, make)                                                                                     \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, const char *site)                                  \
    {                                                                                                        \
        return make(x, y, site, OP_##name);                                                                  \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y) { return duet_##name##_at(x, y, NULL); }
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, ...)                                            \
    MAP1(name, ((flags)&DUET_TRUTH ? map1_any : map1))
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, ...)                                            \
    MAP2(name, ((flags)&DUET_TRUTH ? map2_any : map2))
#define DUET_INT1(name, ...) MAP1(name, map1_any)
#define DUET_INT2(name, ...) MAP2(name, map2_any)
#define DUET_MAP3(name, ...)                                                                                 \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, duet_expr z, const char *site)                     \
    {                                                                                                        \
        return map3(x, y, z, site, OP_##name);                                                               \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, duet_expr z) { return duet_##name##_at(x, y, z, NULL); }
#include <duet/ops.def>

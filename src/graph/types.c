/* types.c - chooses the type in which each value is computed and the type of its elements in
 * memory, and makes casts. */
#include "canonicalize.h"
#include "dtype.h"

/* ---- the type of computation ---- */

static duet_dtype computing(uint8_t type) { return dtypes[type].computed; }

/* A value that a program only moves in its own type cannot be fused: its users read it from
 * memory. */
bool value_is_fusable(const graph *g, int v)
{
    const value *u = value_at(g, v);
    return value_is_map(g, v) && !u->stored && (u->comp == COMP_ANY || computing(u->comp) == u->comp);
}

/* The common type of all operands but numbers; DUET_DTYPE_COUNT: all are numbers. */
static duet_dtype operands_type(const graph *g, const value *v)
{
    duet_dtype t = DUET_DTYPE_COUNT;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        if (x->weak) continue;
        if (t == DUET_DTYPE_COUNT) t = (duet_dtype)x->type;
        else t = dtype_promote(t, (duet_dtype)x->type);
    }
    return t;
}

/* An operator on bools is computed in the type of the first operand that a program computes in a
 * type of its own. */
static uint8_t computed_of_bools(const graph *g, const value *v)
{
    bool weak = false;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        if (value_is_fusable(g, v->arg[k]) && x->comp != COMP_ANY) return x->comp;
        weak |= x->weak;
    }
    if (weak) return DUET_F32;
    return COMP_ANY; /* numbers are bound either as f32 or as integers */
}

uint8_t value_computed_type(const graph *g, const value *v)
{
    if (v->op >= OPS || op_infos[v->op].kind == KIND_DEF) return (uint8_t)computing(v->type);
    const duet_dtype t = v->op == OP_where ? (duet_dtype)v->type : operands_type(g, v);
    if (t == DUET_DTYPE_COUNT) return (uint8_t)computing(v->type);
    if (dtype_kind(t) != TYPE_BOOL) return (uint8_t)dtypes[t].computed;
    if (v->type == DUET_BOOL || v->op == OP_argmin || v->op == OP_argmax) return computed_of_bools(g, v);
    return DUET_I64; /* sums */
}

/* Operators that move elements, like gather, keep them as they are in memory, unless they add them
 * up. */
bool value_moves_elements(const value *v)
{
    const op_info *info = &op_infos[v->op];
    return info->kind == KIND_DEF && info->flags & OP_ANY_TYPES && !(info->flags & OP_COMPUTES);
}

uint8_t value_memory_type(const graph *g, const value *v)
{
    if (is_view(v->op)) return value_at(g, v->arg[0])->mem;
    if (value_moves_elements(v)) return v->type;
    if (v->op != OP_LEAF && dtype_is_half((duet_dtype)v->type)) return DUET_F32;
    return v->type;
}

/* Users come after their operands in the table. */
void resolve_computed_types(graph *g)
{
    for (int v = g->count; v-- > 0;) {
        value *u = value_at(g, v);
        if (u->comp == COMP_ANY) u->comp = DUET_F32;
        for (int k = 0; k < u->args && u->uses; k++) {
            value *x = value_at(g, u->arg[k]);
            if (x->comp == COMP_ANY && u->comp <= DUET_U64) x->comp = u->comp;
        }
    }
}

bool value_wraps(const graph *g, int v)
{
    const value *u = value_at(g, v);
    if (!dtype_is_integer((duet_dtype)u->type) || dtypes[u->type].bytes == 8 || u->stored) return false;
    if (u->op == OP_LOAD) {
        const value *x = value_at(g, u->arg[0]);
        return u->attr.load.purpose == LOAD_CAST && !x->weak &&
               dtype_promote((duet_dtype)x->type, (duet_dtype)u->type) != (duet_dtype)u->type;
    }
    return value_is_map(g, v) && !(op_infos[u->op].flags & DUET_WITHIN);
}

/* ---- casts ---- */

/* Does storing lose what was computed? Then users must read the element back from memory. */
static bool is_lossy(uint8_t comp, uint8_t mem)
{
    return dtype_is_half((duet_dtype)mem) ||
           (dtype_kind((duet_dtype)mem) != TYPE_BOOL && comp != mem && comp != computing(mem));
}

int load_as(graph *g, int x, const value *like, int what, uint8_t comp)
{
    value load = value_init(OP_LOAD, like);
    load.weak = false;
    load.args = 1;
    load.arg[0] = x;
    load.attr.load.purpose = what;
    load.comp = comp;
    load.join = like->join;
    memcpy(load.start, like->start, sizeof load.start);
    return intern(g, &load);
}

/* Like load_as, but the elements in memory have the type of `like`: they are converted when they are
 * stored. */
static int store_as(graph *g, int x, const value *like, int what, uint8_t comp)
{
    value load = value_init(OP_LOAD, like);
    load.weak = false;
    load.args = 1;
    load.arg[0] = x;
    load.attr.load.purpose = what;
    load.join = like->join;
    memcpy(load.start, like->start, sizeof load.start);
    load.comp = comp;
    load.mem = like->type;
    load.stored = is_lossy(comp, like->type);
    return intern(g, &load);
}

int make_stored(graph *g, int v)
{
    const value x = copy_of(g, v);
    if (x.mem == x.type) return v;
    return store_as(g, v, &x, LOAD_CAST, value_is_fusable(g, v) ? x.comp : computing(x.type));
}

int load_number(graph *g, int v, const value *like, int what)
{
    const duet_dtype type = (duet_dtype)like->type;
    /* f64, so that it is rounded once */
    const uint8_t comp = dtype_is_half(type) ? DUET_F64 : (uint8_t)dtypes[type].computed;
    const int number = dtype_is_integer(type) ? integer_number(g, v, comp) : v;
    if (dtype_is_half(type) || what >= LOAD_ROOT) return store_as(g, number, like, what, comp);
    return load_as(g, number, like, what, comp);
}

/* Is it better to convert x, which a program computes, as it is stored? */
static bool converts_early(const value *x, const value *to)
{
    return x->comp != COMP_ANY && x->comp != computing(to->type) &&
           dtypes[to->type].bytes <= dtypes[x->mem].bytes;
}

/* Must x be converted as it is stored? Halves are rounded then, and floats are clamped to the
 * limits of a narrow integer type. */
static bool converts_late(const value *x, const value *to)
{
    const bool narrow = dtype_is_integer((duet_dtype)to->type) && dtypes[to->type].bytes < 8;
    return (dtype_is_half((duet_dtype)to->type) && x->type != DUET_BOOL) ||
           (narrow && dtype_kind((duet_dtype)x->type) == TYPE_FLOAT);
}

int make_cast(graph *g, const value *to, int v)
{
    const value x = copy_of(g, v);
    const bool computed = value_is_fusable(g, v);
    if (x.op == OP_NUMBER) return load_number(g, v, to, LOAD_CAST);
    if (x.type == to->type) return v;
    if (to->type == DUET_BOOL) return make_truth(g, v);
    if (converts_late(&x, to))
        return store_as(g, v, to, LOAD_CAST, computed ? x.comp : (uint8_t)computing(x.type));
    if (computed && converts_early(&x, to)) return store_as(g, v, to, LOAD_CAST, x.comp);
    return load_as(g, v, to, LOAD_CAST, (uint8_t)computing(to->type));
}

/* ---- roots ---- */

/* If v is a cast that would need a program of its own, return its operand: the destination converts
 * it as it stores. */
static int before_cast(const graph *g, int v, const value *to)
{
    const value *u = value_at(g, v);
    const bool cast =
        u->op == OP_LOAD && u->attr.load.purpose == LOAD_CAST && !u->stored && u->type == to->type;
    if (cast && value_is_fusable(g, u->arg[0]) && value_at(g, u->arg[0])->comp != u->comp) return u->arg[0];
    return v;
}

int load_root(graph *g, int v, const value *like, int what)
{
    const int from = before_cast(g, v, like);
    const value x = copy_of(g, from);
    if (x.op == OP_NUMBER) return load_number(g, from, like, what);
    if (!value_is_fusable(g, from) && x.mem == like->type)
        return store_as(g, from, like, what, like->type); /* moved unchanged */
    const bool own = value_is_fusable(g, from) && (x.comp != COMP_ANY || like->type == DUET_BOOL);
    return store_as(g, from, like, what, own ? x.comp : (uint8_t)computing(like->type));
}

static bool is_movable_reduction(const graph *g, int root, int v)
{
    const value *x = value_at(g, v);
    return op_infos[x->op].kind == KIND_REDUCE && x->uses == 1 && same_shape(g, v, root);
}

/* If the LOAD at `root` loads a reduction, replace it by the reduction. */
static void move_reduction(graph *g, int root)
{
    value *r = value_at(g, root), *x = value_at(g, r->arg[0]);
    if (!is_movable_reduction(g, root, r->arg[0])) return;
    const uint8_t type = r->type, mem = r->mem;
    const int uses = r->uses, join = r->join;
    int64_t start[DUET_RANK_MAX];
    memcpy(start, r->start, sizeof start);
    *r = *x;
    memcpy(r->start, start, sizeof start);
    r->type = type;
    r->mem = mem;
    r->uses = uses;
    r->join = join;
    x->uses = 0;
}

/* Let reductions write straight to a destination, converted, or to a piece of a join. */
void move_reductions_to_roots(graph *g)
{
    for (int i = 0; i < g->roots; i++) {
        const value *r = g->root[i] < 0 ? NULL : value_at(g, g->root[i]);
        const bool loads = r && r->op == OP_LOAD && r->attr.load.purpose >= LOAD_ROOT;
        if (loads && value_at(g, r->arg[0])->mem != r->mem) move_reduction(g, g->root[i]);
    }
    for (int v = 0; v < g->count; v++)
        if (value_is_piece(g, v) && value_at(g, v)->uses && value_at(g, v)->op == OP_LOAD)
            move_reduction(g, v);
}

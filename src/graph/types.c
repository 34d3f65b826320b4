/* types.c - which type each value is computed in, and which it has in memory; casts. */
#include "canonicalize.h"
#include "dtype.h"
#include "index_ops.h"

/* ---- what a value is computed in ---- */

static duet_dtype computing(uint8_t type) { return dtypes[type].computed; }

/* What is moved alone, in its own type, is read where it goes. */
bool value_passes(const graph *g, int v)
{
    const value *u = value_at(g, v);
    return value_is_map(g, v) && !u->stored && (u->comp == COMP_ANY || computing(u->comp) == u->comp);
}

/* What the operands have in common that settle the type; DUET_DTYPE_COUNT: all are numbers. */
static duet_dtype operands_type(const graph *g, const value *v)
{
    duet_dtype t = DUET_DTYPE_COUNT;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        if (!x->weak) t = t == DUET_DTYPE_COUNT ? (duet_dtype)x->type : dtype_promote(t, (duet_dtype)x->type);
    }
    return t;
}

/* Bools are guests: of the first operand that a program computes in a type of its own. */
static uint8_t computed_of_bools(const graph *g, const value *v)
{
    bool weak = false;
    for (int k = 0; k < v->args; k++) {
        const value *x = value_at(g, v->arg[k]);
        if (value_passes(g, v->arg[k]) && x->comp != COMP_ANY) return x->comp;
        weak |= x->weak;
    }
    return weak ? DUET_F32 : COMP_ANY; /* numbers are bound in the one or the other way */
}

uint8_t computed_in(const graph *g, const value *v)
{
    if (v->op >= OPS || op_infos[v->op].kind == KIND_DEF) return (uint8_t)computing(v->type);
    const duet_dtype t = v->op == OP_where ? (duet_dtype)v->type : operands_type(g, v);
    if (t == DUET_DTYPE_COUNT) return (uint8_t)computing(v->type);
    if (dtype_kind(t) != TYPE_BOOL) return (uint8_t)dtypes[t].computed;
    return v->type == DUET_BOOL || v->op == OP_argmin || v->op == OP_argmax ? computed_of_bools(g, v)
                                                                            : DUET_I64; /* sums */
}

/* What moves elements by data moves them as they are in memory, unless it adds them up on the way. */
bool value_moves(const value *v)
{
    return v->op < OPS && op_infos[v->op].kind == KIND_DEF && op_infos[v->op].flags & OP_ANY_TYPES &&
           !order_computes(v->op);
}

uint8_t memory_type(const graph *g, const value *v)
{
    if (is_view(v->op)) return value_at(g, v->arg[0])->mem;
    if (value_moves(v)) return v->type;
    return v->op != OP_LEAF && dtype_is_half((duet_dtype)v->type) ? DUET_F32 : v->type;
}

/* Users stand after what they use. */
void settle_computed(graph *g)
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

/* What a program of the one type converts as it stores may be read as the other alone from there. */
static bool is_lossy(uint8_t comp, uint8_t mem)
{
    return dtype_is_half((duet_dtype)mem) ||
           (dtype_kind((duet_dtype)mem) != TYPE_BOOL && comp != mem && comp != computing(mem));
}

int load_as(graph *g, int x, const value *like, int what, uint8_t comp)
{
    value load = blank(OP_LOAD, like);
    load.weak = false, load.args = 1, load.arg[0] = x, load.attr.load.purpose = what, load.comp = comp,
    load.join = like->join;
    return intern(g, &load);
}

/* The same, whose elements are in memory as of that type: converted as they are stored. */
static int store_as(graph *g, int x, const value *like, int what, uint8_t comp)
{
    value load = blank(OP_LOAD, like);
    load.weak = false, load.args = 1, load.arg[0] = x, load.attr.load.purpose = what, load.join = like->join;
    load.comp = comp, load.mem = like->type, load.stored = is_lossy(comp, like->type);
    return intern(g, &load);
}

int make_stored(graph *g, int v)
{
    const value x = copy_of(g, v);
    if (x.mem == x.type) return v;
    return store_as(g, v, &x, LOAD_CAST, value_passes(g, v) ? x.comp : computing(x.type));
}

int load_number(graph *g, int v, const value *like, int what)
{
    const duet_dtype type = (duet_dtype)like->type;
    const uint8_t comp = dtype_is_half(type) ? DUET_F64 : (uint8_t)dtypes[type].computed; /* rounded once */
    const int number = dtype_is_integer(type) ? whole_number(g, v, comp) : v;
    return dtype_is_half(type) || what >= LOAD_ROOT ? store_as(g, number, like, what, comp)
                                                    : load_as(g, number, like, what, comp);
}

/* Is x, whose elements a program computes, better converted as it is stored? */
static bool converts_early(const value *x, const value *to)
{
    return x->comp != COMP_ANY && x->comp != computing(to->type) &&
           dtypes[to->type].bytes <= dtypes[x->mem].bytes;
}

/* Must x be converted as it is stored: to halves, which are rounded then, or by the limits of a narrow type? */
static bool converts_late(const value *x, const value *to)
{
    const bool narrow = dtype_is_integer((duet_dtype)to->type) && dtypes[to->type].bytes < 8;
    return (dtype_is_half((duet_dtype)to->type) && x->type != DUET_BOOL) ||
           (narrow && dtype_kind((duet_dtype)x->type) == TYPE_FLOAT);
}

int make_cast(graph *g, const value *to, int v)
{
    const value x = copy_of(g, v);
    const bool computed = value_passes(g, v);
    if (x.op == OP_NUMBER) return load_number(g, v, to, LOAD_CAST);
    if (x.type == to->type) return v;
    if (to->type == DUET_BOOL) return make_truth(g, v);
    if (converts_late(&x, to))
        return store_as(g, v, to, LOAD_CAST, computed ? x.comp : (uint8_t)computing(x.type));
    if (computed && converts_early(&x, to)) return store_as(g, v, to, LOAD_CAST, x.comp);
    return load_as(g, v, to, LOAD_CAST, (uint8_t)computing(to->type));
}

/* ---- roots ---- */

/* What a dest takes of v: of a cast that another program would make, its operand. */
static int before_cast(const graph *g, int v, const value *to)
{
    const value *u = value_at(g, v);
    const bool cast =
        u->op == OP_LOAD && u->attr.load.purpose == LOAD_CAST && !u->stored && u->type == to->type;
    return cast && value_passes(g, u->arg[0]) && value_at(g, u->arg[0])->comp != u->comp ? u->arg[0] : v;
}

int load_root(graph *g, int v, const value *like, int what)
{
    const int from = before_cast(g, v, like);
    const value x = copy_of(g, from);
    if (x.op == OP_NUMBER) return load_number(g, from, like, what);
    if (!value_passes(g, from) && x.mem == like->type)
        return store_as(g, from, like, what, like->type); /* moved */
    const bool own = value_passes(g, from) && (x.comp != COMP_ANY || like->type == DUET_BOOL);
    return store_as(g, from, like, what, own ? x.comp : (uint8_t)computing(like->type));
}

static bool is_reduce_of(const graph *g, int root, int v)
{
    const value *x = value_at(g, v);
    return op_infos[x->op].kind == KIND_REDUCE && x->uses == 1 && same_shape(g, v, root);
}

/* The LOAD at `root` becomes the reduction that it loads, if it does. */
static void reduce_there(graph *g, int root)
{
    value *r = value_at(g, root), *x = value_at(g, r->arg[0]);
    if (!is_reduce_of(g, root, r->arg[0])) return;
    const uint8_t type = r->type, mem = r->mem;
    const int uses = r->uses, join = r->join;
    *r = *x, r->type = type, r->mem = mem, r->uses = uses, r->join = join, x->uses = 0;
}

/* Reductions are converted, and halves of complex numbers written, where they go. */
void reduce_roots(graph *g)
{
    for (int i = 0; i < g->roots; i++) {
        const value *r = g->root[i] < 0 ? NULL : value_at(g, g->root[i]);
        const bool loads = r && r->op == OP_LOAD && r->attr.load.purpose >= LOAD_ROOT;
        if (loads && value_at(g, r->arg[0])->mem != r->mem) reduce_there(g, g->root[i]);
    }
    for (int v = 0; v < g->count; v++)
        if (value_is_half(g, v) && value_at(g, v)->uses && value_at(g, v)->op == OP_LOAD) reduce_there(g, v);
}

/* type_rules.c - of what type a result is: what the operands' types have in common, and what the row makes of that. */
#include "operands.h"
#include "status.h"
#include <math.h>

/* ---- why not ---- */

static const char *operands_text(enum op op, int arity, const node *const x[], char *text, size_t room)
{
    char one[SHAPE_TEXT];
    int at = snprintf(text, room, "duet_%s(", op_infos[op].name);
    for (int k = 0; k < arity; k++) {
        if (x[k]->flags & NODE_WEAK) snprintf(one, sizeof one, "a number");
        else shape_text(one, (duet_dtype)x[k]->type, x[k]->rank, x[k]->size);
        at += snprintf(text + at, room - (size_t)at, "%s%s", k ? ", " : "", one);
    }
    snprintf(text + at, room - (size_t)at, ")");
    return text;
}

static __attribute__((cold)) duet_status refuse(enum op op, int arity, const node *const x[], const char *why)
{
    char text[3 * SHAPE_TEXT + 40];
    return fail(DUET_BAD_TYPE, "%s %s", operands_text(op, arity, x, text, sizeof text), why);
}

/* ---- numbers ---- */

static bool in_range(const node *n, duet_dtype t)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    const double x = node_number(n);
    if (dtype_kind(t) == TYPE_BOOL) return x == 0 || x == 1;
    if (n->type == DUET_U64) return t == DUET_U64;
    if (n->type == DUET_I64) return t == DUET_I64 || (t == DUET_U64 && n->integer > 0);
    return dtype_kind(t) == TYPE_SIGNED ? x >= -ldexp(1, bits - 1) && x < ldexp(1, bits - 1)
                                        : x >= 0 && x < ldexp(1, bits);
}

static bool is_whole(double x) { return x == floor(x) && fabs(x) < INFINITY; }

/* All of its digits, also where no double has them. */
static const char *digits_of(const node *n, char text[40])
{
    if (n->type == DUET_F64) snprintf(text, 40, "%.20g", n->number);
    else snprintf(text, 40, n->type == DUET_I64 ? "%lld" : "%llu", (long long)n->integer);
    return text;
}

static __attribute__((noinline)) duet_status integer_fits(const char *who, const node *n, duet_dtype t)
{
    char text[40];
    const double x = node_number(n);
    if (n->type == DUET_F64 && !is_whole(x))
        return fail(DUET_BAD_TYPE, "%s: %g is no number of %s: duet_cast makes elements that take it", who, x,
                    dtypes[t].name);
    if (in_range(n, t)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s: %s is out of the range of %s", who, digits_of(n, text),
                dtypes[t].name);
}

duet_status number_fits(const char *who, const node *n, duet_dtype t)
{
    return n->op != OP_NUMBER || dtype_kind(t) >= TYPE_FLOAT ? DUET_OK : integer_fits(who, n, t);
}

static duet_status numbers_fit(enum op op, int arity, const node *const x[], duet_dtype t)
{
    char who[60];
    if (dtype_kind(t) >= TYPE_FLOAT) return DUET_OK;
    snprintf(who, sizeof who, "duet_%s", op_infos[op].name);
    for (int k = 0; k < arity; k++)
        if (x[k]->flags & NODE_WEAK) TRY(number_fits(who, x[k], t));
    return DUET_OK;
}

/* ---- operands ---- */

/* Where numbers are chosen among, the condition says what they are, but of bool it says nothing. */
static duet_dtype type_of_choice(const node *const x[])
{
    const duet_dtype c = (duet_dtype)x[0]->type;
    if (x[0]->flags & NODE_WEAK) return DUET_DTYPE_COUNT;
    if (dtype_kind(c) != TYPE_BOOL) return c;
    for (int k = 1; k < 3; k++)
        if (x[k]->type == DUET_F64 && !is_whole(x[k]->number)) return DUET_F64;
    return DUET_I64;
}

static bool is_complex_number(const node *x)
{
    return x->flags & NODE_WEAK && dtype_is_complex((duet_dtype)x->type);
}

static duet_status no_complex_numbers(enum op op, int arity, const node *const x[])
{
    for (int k = 0; k < arity; k++)
        if (is_complex_number(x[k]))
            return refuse(op, arity, x, "needs matrices: a complex number may meet one element by element");
    return DUET_OK;
}

duet_status check_free_types(enum op op, int arity, node *const operands[])
{
    return op == OP_cast ? DUET_OK : no_complex_numbers(op, arity, (const node *const *)operands);
}

/* A complex number makes complex what it meets. */
static duet_status meet_complex_numbers(enum op op, int arity, const node *const x[], duet_dtype *t)
{
    bool any = false;
    for (int k = 0; k < arity; k++) any |= is_complex_number(x[k]);
    if (!any) return DUET_OK;
    if (op_infos[op].kind != KIND_MAP || *t == DUET_DTYPE_COUNT) return no_complex_numbers(op, arity, x);
    if (dtype_kind(*t) < TYPE_FLOAT)
        return refuse(op, arity, x,
                      "needs elements that are floating point or complex: duet_cast makes them so");
    *t = dtype_promote(*t, DUET_C64);
    return DUET_OK;
}

/* What those operands have in common that are no numbers; DUET_DTYPE_COUNT: there are only numbers. */
static duet_status in_common(enum op op, int arity, const node *const x[], duet_dtype *t)
{
    *t = DUET_DTYPE_COUNT;
    for (int k = op == OP_where; k < arity; k++) {
        if (x[k]->flags & NODE_WEAK) continue;
        *t = *t == DUET_DTYPE_COUNT ? (duet_dtype)x[k]->type : dtype_promote(*t, (duet_dtype)x[k]->type);
        if (*t == DUET_DTYPE_COUNT)
            return refuse(op, arity, x,
                          "needs operands that have a type in common: duet_cast gives them one");
    }
    TRY(meet_complex_numbers(op, arity, x, t));
    if (op == OP_where && dtype_is_complex((duet_dtype)x[0]->type))
        return refuse(op, arity, x, "needs a condition that is real");
    if (op == OP_where && *t == DUET_DTYPE_COUNT) *t = type_of_choice(x);
    return DUET_OK;
}

/* Why operators with a definition of their own have not this type; NULL: they have it. Transpose has any; convolutions
 * and pooling of integers have to be exact in f64, linear algebra is LAPACK's. */
static const char *definition_refuses(enum op op, duet_dtype t)
{
    const int flags = op_infos[op].flags;
    if (op == OP_transpose) return NULL;
    if (dtype_is_complex(t)) return op_complex[op] ? NULL : "is not for complex numbers";
    if (flags & OP_ASKS && t >= FLOAT_TYPES)
        return "needs elements of f32, f64, c64 or c128: duet_cast makes them so";
    if (dtype_kind(t) == TYPE_FLOAT) return NULL;
    if (dtype_kind(t) == TYPE_BOOL && flags & OP_INTEGERS && !(flags & DUET_BOOLS))
        return "needs elements that are numbers: duet_cast makes them so";
    if (!(flags & OP_INTEGERS)) return "needs elements that are floating point: duet_cast makes them so";
    if (op == OP_max_pool2d && dtypes[t].bytes > 4)
        return "needs integers of up to 32 bits, or floating point: duet_cast makes them so";
    if (is_conv(op) && dtypes[t].bytes > 2)
        return "needs integers of up to 16 bits, or floating point: duet_cast makes them so";
    return NULL;
}

static duet_status check_definition(enum op op, int arity, const node *const x[], duet_dtype t)
{
    const char *why = definition_refuses(op, t);
    const bool one_type = op_infos[op].flags & OP_ASKS || (dtype_is_complex(t) && op != OP_transpose);
    for (int k = 0; k < arity && one_type && !why; k++)
        if (!(x[k]->flags & NODE_WEAK) && x[k]->type != t)
            why = "needs operands of one type: duet_cast gives them one";
    return why ? refuse(op, arity, x, why) : DUET_OK;
}

static duet_status check_kind(enum op op, int arity, const node *const x[], duet_dtype t)
{
    static const int wanted[] = { [TYPE_BOOL] = DUET_BOOLS,
                                  [TYPE_SIGNED] = OP_INTEGERS,
                                  [TYPE_UNSIGNED] = OP_INTEGERS,
                                  [TYPE_FLOAT] = OP_FLOATS };
    const int flags = op_infos[op].flags;
    if (op_infos[op].kind == KIND_DEF) return check_definition(op, arity, x, t);
    if (dtype_is_complex(t) && op_complex[op]) return DUET_OK;
    if (dtype_is_complex(t)) return refuse(op, arity, x, "is not for complex numbers");
    if (flags & wanted[dtype_kind(t)]) return DUET_OK;
    if (flags & OP_INTEGERS && flags & OP_FLOATS)
        return refuse(op, arity, x, "needs elements that are numbers: duet_cast makes them so");
    if (flags & OP_INTEGERS)
        return refuse(op, arity, x, "needs elements that are integers: duet_cast makes them so");
    return refuse(op, arity, x, "needs elements that are floating point: duet_cast makes them so");
}

static bool adds_up(enum op op) { return op == OP_sum || op == OP_prod || op == OP_dot; }

static duet_dtype result_of(enum op op, duet_dtype t)
{
    if (op_infos[op].flags & OP_GIVES_INDEX) return DUET_I64;
    if (op_infos[op].flags & DUET_TRUTH) return DUET_BOOL;
    if (op_complex[op] == COMPLEX_PART) return dtype_part(t);
    return adds_up(op) ? dtype_of_sums(t) : t;
}

duet_status settle_type(enum op op, int arity, node *const operands[], duet_dtype *result)
{
    const node *const *x = (const node *const *)operands;
    duet_dtype t;
    TRY(in_common(op, arity, x, &t));
    *result = t;
    if (t == DUET_DTYPE_COUNT && op_infos[op].flags & OP_FLOATS) return DUET_OK;
    if (t == DUET_DTYPE_COUNT) return refuse(op, arity, x, "needs a matrix of integers");
    TRY(check_kind(op, arity, x, t));
    TRY(numbers_fit(op, arity, x, t));
    *result = result_of(op, t);
    return DUET_OK;
}

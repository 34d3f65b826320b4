/* type_rules.c - the element type of a result: the common type of the operands, changed by the rule
 * of the row. */
#include "c_locale.h"
#include "fp_environment.h"
#include "operands.h"
#include "status.h"
#include <math.h>
#include <stdlib.h>

/* ---- numbers ---- */

static bool in_range(const node *n, duet_dtype t)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    const double x = node_number(n);
    if (dtype_kind(t) == TYPE_BOOL) return x == 0 || x == 1;
    if (n->type == DUET_U64) return t == DUET_U64;
    if (n->type == DUET_I64) return t == DUET_I64 || (t == DUET_U64 && n->integer > 0);
    if (dtype_kind(t) == TYPE_SIGNED) return x >= -ldexp(1, bits - 1) && x < ldexp(1, bits - 1);
    return x >= 0 && x < ldexp(1, bits);
}

static bool is_integer(double x) { return x == floor(x) && fabs(x) < INFINITY; }

const char *number_text(const node *n, char text[40])
{
    if (n->type != DUET_F64) {
        snprintf(text, 40, n->type == DUET_I64 ? "%lld" : "%llu", (long long)n->integer);
        return text;
    }
    const plain_numbers plain = plain_numbers_begin();
    snprintf(text, 40, "%.15g", n->number);
    if (strtod(text, NULL) != n->number) snprintf(text, 40, "%.17g", n->number);
    plain_numbers_end(plain);
    return text;
}

static __attribute__((noinline)) duet_status integer_fits(const node *n, duet_dtype t)
{
    IN_DEFAULT_FP_ENVIRONMENT;
    char text[40];
    const char *name = dtypes[t].name;
    number_text(n, text);
    if (n->type == DUET_F64 && !is_integer(node_number(n)))
        return fail(DUET_BAD_TYPE, "%s is not a value of %s; convert the %s elements with duet_cast", text,
                    name, name);
    if (in_range(n, t)) return DUET_OK;
    return fail(DUET_BAD_ARGUMENT, "%s is out of the range of %s", text, name);
}

duet_status number_fits(const node *n, duet_dtype t)
{
    if (n->op != OP_NUMBER || dtype_kind(t) >= TYPE_FLOAT) return DUET_OK;
    return integer_fits(n, t);
}

static duet_status numbers_fit(int arity, const node *const x[], duet_dtype t)
{
    if (dtype_kind(t) >= TYPE_FLOAT) return DUET_OK;
    for (int k = 0; k < arity; k++)
        if (x[k]->flags & NODE_WEAK) TRY(number_fits(x[k], t));
    return DUET_OK;
}

/* ---- operands ---- */

/* If where() chooses between two numbers, they take the type of the condition, unless that is bool. */
static duet_dtype type_of_choice(const node *const x[])
{
    const duet_dtype c = (duet_dtype)x[0]->type;
    if (x[0]->flags & NODE_WEAK) return DUET_DTYPE_COUNT;
    if (dtype_kind(c) != TYPE_BOOL) return c;
    IN_DEFAULT_FP_ENVIRONMENT;
    for (int k = 1; k < 3; k++)
        if (x[k]->type == DUET_F64 && !is_integer(x[k]->number)) return DUET_F64;
    return DUET_I64;
}

static bool is_complex_number(const node *x)
{
    return x->flags & NODE_WEAK && dtype_is_complex((duet_dtype)x->type);
}

static __attribute__((cold)) duet_status wrong_type(const char *rule)
{
    return fail(DUET_BAD_TYPE, "%s", rule);
}

static duet_status no_complex_numbers(int arity, const node *const x[])
{
    for (int k = 0; k < arity; k++)
        if (is_complex_number(x[k]))
            return wrong_type(
                "a complex number can be an operand only of operators that work element by element");
    return DUET_OK;
}

duet_status check_free_types(enum op op, int arity, node *const operands[])
{
    if (op == OP_cast) return DUET_OK;
    return no_complex_numbers(arity, (const node *const *)operands);
}

/* If an operand is a complex number, the result is complex. */
static duet_status meet_complex_numbers(enum op op, int arity, const node *const x[], duet_dtype *t)
{
    bool any = false;
    for (int k = 0; k < arity; k++) any |= is_complex_number(x[k]);
    if (!any) return DUET_OK;
    if (op_infos[op].kind != KIND_MAP || *t == DUET_DTYPE_COUNT) return no_complex_numbers(arity, x);
    if (dtype_kind(*t) < TYPE_FLOAT)
        return wrong_type(
            "the elements must be floating point or complex to be combined with a complex number; "
            "convert them with duet_cast");
    *t = dtype_promote(*t, DUET_C64);
    return DUET_OK;
}

/* The common type of all operands that are not numbers; DUET_DTYPE_COUNT: all are numbers. */
static duet_status in_common(enum op op, int arity, const node *const x[], duet_dtype *t)
{
    *t = DUET_DTYPE_COUNT;
    for (int k = op == OP_where; k < arity; k++) {
        if (x[k]->flags & NODE_WEAK) continue;
        *t = *t == DUET_DTYPE_COUNT ? (duet_dtype)x[k]->type : dtype_promote(*t, (duet_dtype)x[k]->type);
        if (*t == DUET_DTYPE_COUNT)
            return wrong_type("the operands have no common element type; convert one with duet_cast");
    }
    TRY(meet_complex_numbers(op, arity, x, t));
    if (op == OP_where && dtype_is_complex((duet_dtype)x[0]->type))
        return wrong_type("condition must be real, not complex");
    if (op == OP_where && *t == DUET_DTYPE_COUNT) *t = type_of_choice(x);
    return DUET_OK;
}

#define NO_COMPLEX  "complex elements are not supported"
#define NO_BOOL     "bool elements are not supported; convert them with duet_cast"
#define FLOATS_ONLY "the elements must be floating point; convert them with duet_cast"

/* The rule that type t breaks for an operator with a definition; NULL: none. Convolutions and
 * pooling of integers must be exact in f64. Linear algebra takes the types that LAPACK takes. */
static const char *broken_rule(enum op op, duet_dtype t)
{
    const int flags = op_infos[op].flags;
    if (op == OP_transpose) return NULL;
    if (dtype_is_complex(t)) return op_complex[op] ? NULL : NO_COMPLEX;
    if (flags & OP_ASKS && !dtype_is_f32_or_f64(t))
        return "the elements must be f32, f64, c64 or c128; convert them with duet_cast";
    if (dtype_kind(t) == TYPE_FLOAT) return NULL;
    if (dtype_kind(t) == TYPE_BOOL && flags & OP_INTEGERS && !(flags & DUET_BOOLS)) return NO_BOOL;
    if (!(flags & OP_INTEGERS)) return FLOATS_ONLY;
    if (op == OP_max_pool2d && dtypes[t].bytes > 4)
        return "integer elements must have at most 32 bits; convert them with duet_cast";
    if (is_conv(op) && dtypes[t].bytes > 2)
        return "integer elements must have at most 16 bits; convert them with duet_cast";
    return NULL;
}

static duet_status check_definition(enum op op, int arity, const node *const x[], duet_dtype t)
{
    const char *why = broken_rule(op, t);
    const bool one_type = op_infos[op].flags & OP_ASKS || (dtype_is_complex(t) && op != OP_transpose);
    for (int k = 0; k < arity && one_type && !why; k++)
        if (!(x[k]->flags & NODE_WEAK) && x[k]->type != t)
            why = "the operands must have the same element type; convert one with duet_cast";
    if (why) return wrong_type(why);
    return DUET_OK;
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
    if (dtype_is_complex(t)) return wrong_type(NO_COMPLEX);
    if (flags & wanted[dtype_kind(t)]) return DUET_OK;
    if (flags & OP_INTEGERS && flags & OP_FLOATS) return wrong_type(NO_BOOL);
    if (flags & OP_INTEGERS) return wrong_type("the elements must be integers; convert them with duet_cast");
    return wrong_type(FLOATS_ONLY);
}

static bool adds_up(enum op op) { return op == OP_sum || op == OP_prod || op == OP_dot; }

static duet_dtype result_of(enum op op, duet_dtype t)
{
    if (op_infos[op].flags & OP_GIVES_INDEX) return DUET_I64;
    if (op_infos[op].flags & DUET_TRUTH) return DUET_BOOL;
    if (op_complex[op] == COMPLEX_PART) return dtype_part(t);
    if (op_complex[op] == COMPLEX_MADE) return dtype_promote(t, DUET_C64);
    if (!adds_up(op)) return t;
    return dtype_of_sums(t);
}

duet_status settle_type(enum op op, int arity, node *const operands[], duet_dtype *result)
{
    const node *const *x = (const node *const *)operands;
    duet_dtype t;
    TRY(in_common(op, arity, x, &t));
    *result = t;
    if (t == DUET_DTYPE_COUNT && op_infos[op].flags & OP_FLOATS) return DUET_OK;
    if (t == DUET_DTYPE_COUNT) return wrong_type("one operand must be an integer matrix");
    TRY(check_kind(op, arity, x, t));
    TRY(numbers_fit(arity, x, t));
    *result = result_of(op, t);
    return DUET_OK;
}

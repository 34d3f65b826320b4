/* x86_operations.c - the instructions of each operation. */
#include "dtype.h"
#include "x86_generator.h"

const vector_instruction x86_add_bits[2] = { { MAP_0F, PREFIX_66, 0xfe, W_TYPE },
                                             { MAP_0F, PREFIX_66, 0xd4, W_TYPE } };
const vector_instruction x86_sub_bits[2] = { { MAP_0F, PREFIX_66, 0xfa, W_TYPE },
                                             { MAP_0F, PREFIX_66, 0xfb, W_TYPE } };

static bool is_last_use(const generator *g, int i, int v) { return value_next_use(g, i, v) < 0; }

/* Value v as second operand of node i. */
static operand second_operand(generator *g, int i, int v)
{
    return value_operand(g, v, is_last_use(g, i, v));
}

static void binary(generator *g, int i, vector_instruction ins, bool commutes, int immediate)
{
    const code_node *n = node(g, i);
    int a = n->arg[0], b = n->arg[1];
    if (commutes && !value_has_register(g, a) && value_has_register(g, b)) a = n->arg[1], b = n->arg[0];
    else if (commutes && !value_has_register(g, a) && is_readable(node(g, a)) && is_last_use(g, i, a) &&
             !is_last_use(g, i, b))
        a = n->arg[1], b = n->arg[0];
    const int first = value_register(g, a);
    const operand second = second_operand(g, i, b);
    value_pass(g, i);
    x86_vector(g->x, ins, value_result(g, i), first, second, 0, false, immediate);
}

static void unary(generator *g, int i, vector_instruction ins, int immediate)
{
    const int a = node(g, i)->arg[0];
    const operand from = second_operand(g, i, a);
    value_pass(g, i);
    x86_vector(g->x, ins, value_result(g, i), 0, from, 0, false, immediate);
}

/* The operand combined with a constant, such as a sign. */
static void with_constant(generator *g, int i, vector_instruction ins, uint64_t bits)
{
    const int from = value_register(g, node(g, i)->arg[0]);
    value_pass(g, i);
    emit(g, ins, value_result(g, i), from, x86_pool(x86_constant(g->x, bits)));
}

/* ---- fused multiply-add ----
 * The instruction overwrites one of its operands. The form (132, 213, 231) says which one, and which of
 * the others may be in memory. */

static vector_instruction fma_form(const generator *g, int i, int form)
{
    const int operation = node(g, i)->operation;
    const int opcode = operation == FORMULA_FMA ? 0x98
                       : operation == CODE_FMS  ? 0x9a
                       : operation == CODE_FNMA ? 0x9c
                                                : 0x9e;
    return (vector_instruction){ MAP_0F38, PREFIX_66, (uint8_t)(opcode + form), W_TYPE };
}
enum { FORM_132 = 0, FORM_213 = 0x10, FORM_231 = 0x20 };

/* Is operand k in a register that the result may have? `hint`: the register that the result prefers. */
static bool may_overwrite(const generator *g, int i, int k, int hint)
{
    const code_node *n = node(g, i);
    const int v = n->arg[k];
    for (int j = 0; j < 3; j++)
        if (j != k && n->arg[j] == v) return false;
    return (g->fixed[v] < 0 || g->fixed[v] == hint) && value_has_register(g, v) && is_last_use(g, i, v);
}

/* Writes the instruction; its result replaces a value in register r, whose last use this is. */
static void fma_in_place(generator *g, int i, int form, int r, int a, operand b)
{
    value_pass(g, i);
    if (value_take(g, i, r) != r) g->failed = true;
    emit(g, fma_form(g, i, form), r, a, b);
}

/* x y + z in the register of the factor x. */
static void replace_factor(generator *g, int i, int x, int y, int z)
{
    const int r = value_register(g, x);
    const bool swap =
        value_may_be_memory(g, y, is_last_use(g, i, y)) && !value_may_be_memory(g, z, is_last_use(g, i, z));
    const int a = value_register(g, swap ? z : y);
    fma_in_place(g, i, swap ? FORM_132 : FORM_213, r, a, second_operand(g, i, swap ? y : z));
}

/* x y + z in the register of z. */
static void replace_addend(generator *g, int i, int x, int y, int z)
{
    const int a = value_register(g, x);
    const operand b = second_operand(g, i, y);
    fma_in_place(g, i, FORM_231, value_register(g, z), a, b);
}

/* x y + z in a copy of z. */
static void replace_copy(generator *g, int i, int x, int y, int z, int hint)
{
    const bool loads = value_may_be_memory(g, z, is_last_use(g, i, z));
    const int from = loads ? -1 : value_register(g, z), a = value_register(g, x);
    const int r = value_take(g, i, hint);
    if (loads) value_load(g, r, z);
    else move(g, r, from);
    emit(g, fma_form(g, i, FORM_231), r, a, second_operand(g, i, y));
    value_pass(g, i);
}

static void multiply_add(generator *g, int i)
{
    const code_node *n = node(g, i);
    int x = n->arg[0], y = n->arg[1];
    const int z = n->arg[2], hint = value_wish(g, i);
    for (int k = 0; k < 3; k++) /* so that none of them is spilled for another one */
        if (value_has_register(g, n->arg[k])) value_register(g, n->arg[k]);
    const bool first = may_overwrite(g, i, 0, hint), second = may_overwrite(g, i, 1, hint),
               addend = may_overwrite(g, i, 2, hint), factor = !addend && (first || second);
    if (factor ? !first : !value_has_register(g, x) && value_has_register(g, y)) {
        x = n->arg[1];
        y = n->arg[0];
    }
    if (addend) replace_addend(g, i, x, y, z);
    else if (factor) replace_factor(g, i, x, y, z);
    else replace_copy(g, i, x, y, z, hint);
}

/* The least or greatest, where -0 < +0 and NaN is the result if there is one. For equal operands
 * and for NaN the instructions give the second operand. So both orders are computed, and combined by OR
 * for the least and by AND for the greatest. */
static void extreme(generator *g, int i, bool least)
{
    static const vector_instruction V_RANGE = { MAP_0F3A, PREFIX_66, 0x50, W_TYPE };
    const code_node *n = node(g, i);
    const int a = value_register(g, n->arg[0]), b = value_register(g, n->arg[1]);
    const int t = value_borrow(g), r = value_take(g, i, -1);
    if (least) {
        emit(g, V_MIN, t, a, x86_register(b));
        emit(g, V_MIN, r, b, x86_register(a));
        emit(g, V_OR, r, r, x86_register(t));
    } else if (g->r->wide) {
        const int m = value_borrow_mask(g);
        emit_immediate(g, V_RANGE, r, a, x86_register(b), 5);
        emit_immediate(g, V_COMPARE, m, a, x86_register(b), 3);
        x86_vector(g->x, V_ADD, r, a, x86_register(b), m, false, -1);
    } else {
        emit(g, V_MAX, t, a, x86_register(b));
        emit(g, V_MAX, r, b, x86_register(a));
        emit(g, V_AND, r, r, x86_register(t));
        emit_immediate(g, V_COMPARE, t, a, x86_register(b), 3);
        emit(g, V_OR, r, r, x86_register(t));
    }
    g->pinned &= ~(1u << t);
    value_pass(g, i);
}

/* A comparison of elements. */
static void compare(generator *g, int i)
{
    static const uint8_t predicates[] = { [FORMULA_LT] = 0x11, [FORMULA_LE] = 0x12, [FORMULA_EQ] = 0,
                                          [FORMULA_NE] = 4,    [FORMULA_GT] = 0x1e, [FORMULA_GE] = 0x1d };
    const code_node *n = node(g, i);
    if (!g->r->wide) {
        binary(g, i, V_COMPARE, false, predicates[n->operation]);
        return;
    }
    const int a = value_register(g, n->arg[0]);
    const operand b = second_operand(g, i, n->arg[1]);
    value_pass(g, i);
    emit_immediate(g, V_COMPARE, value_take_mask(g, i), a, b, predicates[n->operation]);
}

/* A comparison of bits. */
static void compare_bits(generator *g, int i)
{
    const code_node *n = node(g, i);
    const bool equal = n->operation == FORMULA_BIT_EQ;
    const int a = value_register(g, n->arg[0]);
    const operand b = second_operand(g, i, n->arg[1]);
    value_pass(g, i);
    if (g->r->wide) {
        const vector_instruction compare = { MAP_0F3A, PREFIX_66, 0x1f, W_TYPE };
        emit_immediate(g, compare, value_take_mask(g, i), a, b, equal ? 0 : 4);
        return;
    }
    const vector_instruction f32 = { MAP_0F, PREFIX_66, 0x76, W_0 }, f64 = { MAP_0F38, PREFIX_66, 0x29, W_0 };
    const int r = value_result(g, i);
    emit(g, is_eight(g) ? f64 : f32, r, a, b);
    if (!equal) emit(g, V_XOR, r, r, x86_pool(x86_constant(g->x, all_bits(g))));
}

/* Logical AND or OR of two conditions. */
static void combine(generator *g, int i)
{
    const code_node *n = node(g, i);
    const bool both = n->operation == FORMULA_BOTH;
    if (!g->r->wide) {
        binary(g, i, both ? V_AND : V_OR, true, -1);
        return;
    }
    const int a = value_register(g, n->arg[0]), b = value_register(g, n->arg[1]);
    value_pass(g, i);
    const int r = value_take_mask(g, i);
    const uint8_t code[4] = { 0xc5, (uint8_t)(0x80 | (~a & 15) << 3 | 4), both ? 0x41 : 0x45,
                              (uint8_t)(0xc0 | r << 3 | b) };
    x86_bytes(g->x, code, 4);
}

static void select_value(generator *g, int i)
{
    const vector_instruction wide = { MAP_0F38, PREFIX_66, 0x65, W_TYPE },
                             narrow = { MAP_0F3A, PREFIX_66, is_eight(g) ? 0x4b : 0x4a, W_0 };
    const code_node *n = node(g, i);
    const int c = value_register(g, n->arg[0]), other = value_register(g, n->arg[2]);
    const operand chosen = second_operand(g, i, n->arg[1]);
    value_pass(g, i);
    const int r = value_result(g, i);
    if (g->r->wide) x86_vector(g->x, wide, r, other, chosen, c, false, -1);
    else emit_immediate(g, narrow, r, other, chosen, c << 4);
}

/* Shifts by a constant. The register of the result is in the field of the first operand. */
static void shift(generator *g, int i)
{
    const code_node *n = node(g, i);
    const vector_instruction shift = { MAP_0F, PREFIX_66, is_eight(g) ? 0x73 : 0x72, W_TYPE };
    const int a = value_register(g, n->arg[0]);
    value_pass(g, i);
    emit_immediate(g, shift, n->operation == FORMULA_LEFT ? 6 : 2, value_result(g, i), x86_register(a),
                   n->index);
}

static void multiply_bits(generator *g, int i)
{
    const vector_instruction multiply = { MAP_0F38, PREFIX_66, 0x40, W_WIDE };
    if (is_eight(g) && !g->r->wide) g->failed = true; /* AVX2 has no such instruction */
    binary(g, i, multiply, true, -1);
}

/* ---- stores and states ---- */

static void store(generator *g, int i)
{
    const code_node *n = node(g, i);
    const int r = value_register(g, n->arg[0]);
    const operand to = value_element(g, PROGRAM_INPUTS + n->index);
    if (g->tail) x86_store_masked(g, r, to);
    else emit(g, g->r->streams >> n->index & 1 ? V_STREAM : V_STORE, r, 0, to);
    value_pass(g, i);
}

static void update(generator *g, int i)
{
    const code_node *n = node(g, i);
    const int r = value_register(g, n->arg[0]);
    for (int s = 0; s < g->states; s++)
        if (g->state[s].output == n->index && g->state[s].part == n->arg[1]) move(g, g->state[s].reg, r);
    value_pass(g, i);
}

/* ---- integers ---- */

/* The low half of a product. AVX2 multiplies only halves of elements. */
static void multiply(generator *g, int i)
{
    static const vector_instruction V_HALVES = { MAP_0F, PREFIX_66, 0xf4, W_TYPE },
                                    V_SHIFT = { MAP_0F, PREFIX_66, 0x73, W_TYPE };
    const code_node *n = node(g, i);
    if (g->r->wide) {
        multiply_bits(g, i);
        return;
    }
    const int a = value_register(g, n->arg[0]), b = value_register(g, n->arg[1]);
    const int s = value_borrow(g), t = value_borrow(g), r = value_take(g, i, -1);
    emit_immediate(g, V_SHIFT, 2, s, x86_register(a), 32);
    emit(g, V_HALVES, s, s, x86_register(b));
    emit_immediate(g, V_SHIFT, 2, t, x86_register(b), 32);
    emit(g, V_HALVES, t, t, x86_register(a));
    emit(g, x86_add_bits[1], s, s, x86_register(t));
    emit_immediate(g, V_SHIFT, 6, s, x86_register(s), 32);
    emit(g, V_HALVES, r, a, x86_register(b));
    emit(g, x86_add_bits[1], r, r, x86_register(s));
    g->pinned &= ~(1u << s | 1u << t);
    value_pass(g, i);
}

static void negate(generator *g, int i)
{
    const int x = value_register(g, node(g, i)->arg[0]), zero = value_borrow(g);
    x86_load_pool(g, zero, 0);
    value_pass(g, i);
    g->pinned &= ~(1u << zero);
    emit(g, x86_sub_bits[1], value_result(g, i), zero, x86_register(x));
}

/* r = a > b by AVX2, which has this comparison for signed integers only. Unsigned ones are in the order
 * of signed ones whose sign bits are inverted. r is neither a nor b. */
static void is_greater(generator *g, int r, int a, int b)
{
    static const vector_instruction V_GREATER = { MAP_0F38, PREFIX_66, 0x37, W_0 };
    if (g->r->type == DUET_I64) {
        emit(g, V_GREATER, r, a, x86_register(b));
        return;
    }
    const operand sign = x86_pool(x86_constant(g->x, sign_bit(g)));
    const int t = value_borrow(g);
    emit(g, V_XOR, r, a, sign);
    emit(g, V_XOR, t, b, sign);
    emit(g, V_GREATER, r, r, x86_register(t));
    g->pinned &= ~(1u << t);
}

/* A comparison by AVX2. */
static void compare_narrow(generator *g, int i)
{
    static const vector_instruction V_EQUAL = { MAP_0F38, PREFIX_66, 0x29, W_0 };
    const code_node *n = node(g, i);
    const int how = n->operation;
    const int a = value_register(g, n->arg[0]), b = value_register(g, n->arg[1]), r = value_take(g, i, -1);
    if (how == FORMULA_EQ || how == FORMULA_NE) emit(g, V_EQUAL, r, a, x86_register(b));
    else if (how == FORMULA_GT || how == FORMULA_LE) is_greater(g, r, a, b);
    else is_greater(g, r, b, a);
    if (how == FORMULA_NE || how == FORMULA_LE || how == FORMULA_GE)
        emit(g, V_XOR, r, r, x86_pool(x86_constant(g->x, all_bits(g))));
    value_pass(g, i);
}

static void compare_integers(generator *g, int i)
{
    static const uint8_t predicates[] = { [FORMULA_LT] = 1, [FORMULA_LE] = 2, [FORMULA_EQ] = 0,
                                          [FORMULA_NE] = 4, [FORMULA_GT] = 6, [FORMULA_GE] = 5 };
    const code_node *n = node(g, i);
    if (!g->r->wide) {
        compare_narrow(g, i);
        return;
    }
    const vector_instruction compare = { MAP_0F3A, PREFIX_66, g->r->type == DUET_I64 ? 0x1f : 0x1e, W_TYPE };
    const int a = value_register(g, n->arg[0]);
    const operand b = second_operand(g, i, n->arg[1]);
    value_pass(g, i);
    emit_immediate(g, compare, value_take_mask(g, i), a, b, predicates[n->operation]);
}

/* AVX2 has no minimum and maximum of 64 bits. */
static void extreme_integers(generator *g, int i)
{
    static const vector_instruction V_CHOOSE = { MAP_0F3A, PREFIX_66, 0x4b, W_0 };
    const code_node *n = node(g, i);
    const bool least = n->operation == FORMULA_MIN;
    if (g->r->wide) {
        const int opcode = 0x39 + 2 * (g->r->type == DUET_U64) + 4 * !least;
        binary(g, i, (vector_instruction){ MAP_0F38, PREFIX_66, (uint8_t)opcode, W_TYPE }, true, -1);
        return;
    }
    const int a = value_register(g, n->arg[0]), b = value_register(g, n->arg[1]), r = value_take(g, i, -1);
    is_greater(g, r, a, b);
    emit_immediate(g, V_CHOOSE, r, least ? a : b, x86_register(least ? b : a), r << 4);
    value_pass(g, i);
}

/* The low bits of an element, with the sign of the highest one for signed types. */
static void wrap(generator *g, int i)
{
    static const vector_instruction V_LEFT = { MAP_0F, PREFIX_66, 0x73, W_TYPE },
                                    V_RIGHT_SIGNED = { MAP_0F, PREFIX_66, 0x72, W_TYPE };
    const code_node *n = node(g, i);
    const int bits = 8 * (int)dtypes[n->index].bytes, from = value_register(g, n->arg[0]);
    const uint64_t all = UINT64_MAX >> (64 - bits);
    const bool has_sign = dtypes[n->index].kind == TYPE_SIGNED;
    value_pass(g, i);
    const int r = value_result(g, i);
    if (has_sign && g->r->wide) {
        emit_immediate(g, V_LEFT, 6, r, x86_register(from), 64 - bits);
        emit_immediate(g, V_RIGHT_SIGNED, 4, r, x86_register(r), 64 - bits);
        return;
    }
    emit(g, V_AND, r, from, x86_pool(x86_constant(g->x, all)));
    if (!has_sign) return;
    const operand top = x86_pool(x86_constant(g->x, all / 2 + 1)); /* AVX2 has no such shift */
    emit(g, V_XOR, r, r, top);
    emit(g, x86_sub_bits[1], r, r, top);
}

/* Writes an operation whose instructions differ for integers. Returns false for other operations. */
static bool integer_operation(generator *g, int i)
{
    switch (node(g, i)->operation) {
    case FORMULA_ADD: binary(g, i, x86_add_bits[1], true, -1); return true;
    case FORMULA_SUB: binary(g, i, x86_sub_bits[1], false, -1); return true;
    case FORMULA_MUL: multiply(g, i); return true;
    case FORMULA_NEG: negate(g, i); return true;
    case FORMULA_MIN:
    case FORMULA_MAX: extreme_integers(g, i); return true;
    case CODE_WRAP: wrap(g, i); return true;
    case FORMULA_LT:
    case FORMULA_LE:
    case FORMULA_EQ:
    case FORMULA_NE:
    case FORMULA_GT:
    case FORMULA_GE: compare_integers(g, i); return true;
    default: return false;
    }
}

static void read_input(generator *g, int i)
{
    const int from = value_register(g, node(g, i)->arg[0]);
    value_pass(g, i);
    move(g, value_take(g, i, from), from);
}

void x86_operation(generator *g, int i)
{
    static const vector_instruction V_ROUND_F32 = { MAP_0F3A, PREFIX_66, 0x08, W_TYPE },
                                    V_ROUND_F64 = { MAP_0F3A, PREFIX_66, 0x09, W_TYPE };
    const vector_instruction round = is_eight(g) ? V_ROUND_F64 : V_ROUND_F32;
    const vector_instruction add_bits = x86_add_bits[is_eight(g)], sub_bits = x86_sub_bits[is_eight(g)];
    g->pinned = g->pinned_masks = 0;
    if (has_integers(g) && integer_operation(g, i)) return;
    switch (node(g, i)->operation) {
    case CODE_INPUT:
    case CODE_NUMBER:
    case FORMULA_CONSTANT:
    case CODE_ROW:
    case CODE_STATE: break; /* read where they are used */
    case FORMULA_ADD: binary(g, i, V_ADD, true, -1); break;
    case FORMULA_SUB: binary(g, i, V_SUB, false, -1); break;
    case FORMULA_MUL: binary(g, i, V_MUL, true, -1); break;
    case FORMULA_DIV: binary(g, i, V_DIV, false, -1); break;
    case FORMULA_FMA:
    case CODE_FMS:
    case CODE_FNMA:
    case CODE_FNMS: multiply_add(g, i); break;
    case FORMULA_SQRT: unary(g, i, V_SQRT, -1); break;
    case FORMULA_INVERSE: {
        const int x = value_register(g, node(g, i)->arg[0]), one = value_borrow(g);
        x86_load_pool(g, one, one_bits(g));
        value_pass(g, i);
        g->pinned &= ~(1u << one);
        emit(g, V_DIV, value_result(g, i), one, x86_register(x));
        break;
    }
    case FORMULA_NEG: with_constant(g, i, V_XOR, sign_bit(g)); break;
    case FORMULA_ABS: with_constant(g, i, V_AND, all_bits(g) & ~sign_bit(g)); break;
    case FORMULA_BIT_NOT: with_constant(g, i, V_XOR, all_bits(g)); break;
    case FORMULA_MIN: extreme(g, i, true); break;
    case FORMULA_MAX: extreme(g, i, false); break;
    case FORMULA_RINT: unary(g, i, round, 8); break;
    case FORMULA_FLOOR: unary(g, i, round, 9); break;
    case FORMULA_LT:
    case FORMULA_LE:
    case FORMULA_EQ:
    case FORMULA_NE:
    case FORMULA_GT:
    case FORMULA_GE: compare(g, i); break;
    case FORMULA_BIT_EQ:
    case FORMULA_BIT_NE: compare_bits(g, i); break;
    case FORMULA_BOTH:
    case FORMULA_EITHER: combine(g, i); break;
    case FORMULA_SELECT: select_value(g, i); break;
    case FORMULA_BIT_AND: binary(g, i, V_AND, true, -1); break;
    case FORMULA_BIT_OR: binary(g, i, V_OR, true, -1); break;
    case FORMULA_BIT_XOR: binary(g, i, V_XOR, true, -1); break;
    case FORMULA_BIT_ADD: binary(g, i, add_bits, true, -1); break;
    case FORMULA_BIT_SUB: binary(g, i, sub_bits, false, -1); break;
    case FORMULA_BIT_MUL: multiply_bits(g, i); break;
    case FORMULA_LEFT:
    case FORMULA_RIGHT: shift(g, i); break;
    case FORMULA_LEFT_BY: binary(g, i, V_LEFT_BY, false, -1); break;
    case FORMULA_RIGHT_BY: binary(g, i, V_RIGHT_BY, false, -1); break;
    case CODE_READ: read_input(g, i); break;
    case CODE_STORE: store(g, i); break;
    case CODE_UPDATE: update(g, i); break;
    case CODE_CALL: x86_call(g, i); break;
    case CODE_GUARD: x86_guard(g, i); break;
    default: g->failed = true;
    }
}

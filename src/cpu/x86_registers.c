/* x86_registers.c - the registers of values (x86_generator.h). Values get registers in the order of the
 * list. If none is free, the value whose next use is farthest leaves its register: inputs, numbers
 * and constants are read again, other values are stored in the stack frame. Conditions of AVX-512 have mask
 * registers, with the same rules. */
#include "x86_generator.h"

/* ---- addresses ---- */

/* The register with the address of input k, or of an output. */
static int pointer_of(generator *g, int k)
{
    if (g->pointer[k] >= 0) return g->pointer[k];
    x86_load(g->x, R11, RSP, g->general + FRAME_POINTERS + 8 * k);
    return R11;
}

operand value_element(generator *g, int k) { return x86_memory(pointer_of(g, k), RAX, g->disp); }
operand value_spilled(const generator *g, int v)
{
    return x86_memory(RSP, -1, g->spills + g->slot[v] * g->bytes);
}

operand value_copy(const generator *g, int v)
{
    return x86_memory(RSP, -1, g->scalar_copies + g->scalar[v] * g->bytes);
}

/* ---- registers ---- */

void value_release(generator *g, int v)
{
    const int r = g->reg[v];
    if (in_mask(g, v)) {
        if (r >= 0) g->mask_holder[r] = -1;
    } else if (r >= 0 && g->holder[r] == v) {
        g->holder[r] = -1;
        g->used--;
    }
    g->reg[v] = -1;
    if (g->slot[v] >= 0) g->slot_busy[g->slot[v]] = 0;
    g->slot[v] = -1;
}

static int free_slot(generator *g)
{
    for (int s = 0; s < (int)sizeof g->slot_busy; s++)
        if (!g->slot_busy[s]) {
            g->slot_busy[s] = 1;
            if (s >= g->most_slots) g->most_slots = s + 1;
            return s;
        }
    g->failed = true;
    return 0;
}

void x86_mask_memory(generator *g, int mask, int32_t at, bool store)
{
    const uint8_t code[2] = { 0xc5, 0xf8 };
    const uint8_t rest[3] = { store ? 0x91 : 0x90, (uint8_t)(0x84 | mask << 3), 0x24 };
    x86_bytes(g->x, code, 2);
    x86_bytes(g->x, rest, 3);
    x86_u32(g->x, (uint32_t)at);
}

/* Stores a value in the frame if it could not be read again. */
static void spill(generator *g, int v)
{
    if (is_readable(node(g, v)) || g->slot[v] >= 0) return;
    g->slot[v] = (int16_t)free_slot(g);
    if (in_mask(g, v)) x86_mask_memory(g, g->reg[v], value_spilled(g, v).offset, true);
    else x86_vector(g->x, V_STORE, g->reg[v], 0, value_spilled(g, v), 0, false, -1);
}

/* Spills the value whose next use is farthest, and returns its register. */
static int evict(generator *g)
{
    int best = -1, far = -1;
    for (int r = 0; r < g->registers; r++) {
        if (!(g->allowed >> r & 1) || g->pinned >> r & 1 || g->holder[r] < 0) continue;
        /* a value that can be read again is cheaper to lose */
        const int v = g->holder[r], use = 2 * g->upcoming[v] + is_readable(node(g, v));
        if (use > far) {
            far = use;
            best = r;
        }
    }
    if (best < 0) {
        g->failed = true;
        return 0;
    }
    const int v = g->holder[best];
    spill(g, v);
    g->reg[v] = -1;
    g->holder[best] = -1;
    g->used--;
    return best;
}

int value_take(generator *g, int v, int wish)
{
    int r = wish;
    if (r < 0 || g->holder[r] >= 0 || g->pinned >> r & 1) {
        for (r = 0; r < g->registers; r++)
            if (g->allowed >> r & 1 && g->holder[r] < 0 && !(g->pinned >> r & 1)) break;
        if (r == g->registers) r = evict(g);
    }
    g->holder[r] = (int16_t)v;
    g->reg[v] = (int8_t)r;
    g->pinned |= 1u << r;
    if (++g->used > g->most_used) g->most_used = g->used;
    return r;
}

int value_borrow(generator *g)
{
    int r = 0;
    while (r < g->registers && (!(g->allowed >> r & 1) || g->holder[r] >= 0 || g->pinned >> r & 1)) r++;
    if (r == g->registers) r = evict(g);
    g->pinned |= 1u << r;
    if (g->used + 1 > g->most_used) g->most_used = g->used + 1;
    return r;
}

/* Spills the condition whose next use is farthest, and returns its mask register. */
static int evict_mask(generator *g)
{
    int best = 1, far = -1;
    for (int m = 1; m < TAIL_MASK; m++) {
        const int v = g->mask_holder[m];
        if (g->pinned_masks >> m & 1 || g->upcoming[v] <= far) continue;
        far = g->upcoming[v];
        best = m;
    }
    const int v = g->mask_holder[best];
    spill(g, v);
    g->reg[v] = -1;
    g->mask_holder[best] = -1;
    return best;
}

int value_borrow_mask(generator *g)
{
    for (int m = 1; m < TAIL_MASK; m++)
        if (g->mask_holder[m] < 0) return m;
    return evict_mask(g);
}

int value_take_mask(generator *g, int v)
{
    const int m = value_borrow_mask(g);
    g->mask_holder[m] = (int16_t)v;
    g->reg[v] = (int8_t)m;
    return m;
}

/* ---- reading values ---- */

void x86_load_masked(generator *g, int reg, operand from)
{
    static const vector_instruction V_MASKED_LOAD_F32 = { MAP_0F38, PREFIX_66, 0x2c, W_0 },
                                    V_MASKED_LOAD_F64 = { MAP_0F38, PREFIX_66, 0x2d, W_0 };
    if (g->r->wide) x86_vector(g->x, V_LOAD, reg, 0, from, TAIL_MASK, true, -1);
    else emit(g, is_eight(g) ? V_MASKED_LOAD_F64 : V_MASKED_LOAD_F32, reg, NARROW_TAIL, from);
}

void x86_store_masked(generator *g, int reg, operand to)
{
    static const vector_instruction V_MASKED_STORE_F32 = { MAP_0F38, PREFIX_66, 0x2e, W_0 },
                                    V_MASKED_STORE_F64 = { MAP_0F38, PREFIX_66, 0x2f, W_0 };
    if (g->r->wide) x86_vector(g->x, V_STORE, reg, 0, to, TAIL_MASK, false, -1);
    else emit(g, is_eight(g) ? V_MASKED_STORE_F64 : V_MASKED_STORE_F32, reg, NARROW_TAIL, to);
}

/* All elements of reg = a constant. */
void x86_load_pool(generator *g, int reg, uint64_t bits)
{
    const operand from = x86_pool(x86_constant(g->x, bits));
    if (g->r->wide) x86_broadcast(g->x, reg, from);
    else emit(g, V_LOAD, reg, 0, from);
}

void value_load(generator *g, int reg, int v)
{
    const code_node *n = node(g, v);
    if (g->slot[v] >= 0) emit(g, V_LOAD, reg, 0, value_spilled(g, v));
    else if (is_scalar(g, v)) emit(g, V_LOAD, reg, 0, value_copy(g, v));
    else if (n->operation == CODE_INPUT && g->tail) x86_load_masked(g, reg, value_element(g, n->index));
    else if (n->operation == CODE_INPUT) emit(g, V_LOAD, reg, 0, value_element(g, n->index));
    else if (n->operation == FORMULA_CONSTANT) x86_load_pool(g, reg, n->bits);
    else g->failed = true;
}

/* The mask register that has condition v. */
static int mask_register(generator *g, int v)
{
    int m = g->reg[v];
    if (m < 0) {
        m = value_take_mask(g, v);
        x86_mask_memory(g, m, value_spilled(g, v).offset, false);
    }
    g->pinned_masks |= (uint8_t)(1 << m);
    return m;
}

int value_register(generator *g, int v)
{
    int r = g->fixed[v] >= 0 ? g->fixed[v] : g->reg[v];
    if (in_mask(g, v)) return mask_register(g, v);
    if (r < 0) {
        r = value_take(g, v, -1);
        value_load(g, r, v);
    } else g->pinned |= 1u << r;
    return r;
}

bool value_has_register(const generator *g, int v) { return g->fixed[v] >= 0 || g->reg[v] >= 0; }

bool value_may_be_memory(const generator *g, int v, int last)
{
    const code_node *n = node(g, v);
    if (value_has_register(g, v)) return false;
    if (n->operation == FORMULA_CONSTANT || is_scalar(g, v)) return true;
    if (n->operation == CODE_INPUT) return last && !g->tail;
    return g->slot[v] >= 0;
}

operand value_operand(generator *g, int v, bool last)
{
    const code_node *n = node(g, v);
    if (!value_may_be_memory(g, v, last)) return x86_register(value_register(g, v));
    if (g->slot[v] >= 0) return value_spilled(g, v);
    if (is_scalar(g, v)) return value_copy(g, v);
    if (n->operation == FORMULA_CONSTANT) return x86_pool(x86_constant(g->x, n->bits));
    return value_element(g, n->index);
}

int value_next_use(const generator *g, int i, int v)
{
    const code_node *n = node(g, i);
    for (int k = 0; k < n->arity; k++)
        if (n->arg[k] == v) return g->next[3 * i + k];
    return -1;
}

void value_pass(generator *g, int i)
{
    const code_node *n = node(g, i);
    for (int k = 0; k < n->arity; k++) {
        const int v = n->arg[k];
        g->upcoming[v] = (int16_t)value_next_use(g, i, v);
        if (g->upcoming[v] >= 0) continue;
        const int r = in_mask(g, v) ? -1 : g->fixed[v] >= 0 ? g->fixed[v] : g->reg[v];
        if (r >= 0) g->pinned &= ~(1u << r); /* the result may replace it */
        if (g->fixed[v] < 0) value_release(g, v);
    }
}

int value_wish(const generator *g, int i)
{
    const int use = g->first[i];
    if (use < 0 || g->next[3 * use] >= 0 || node(g, use)->operation != CODE_UPDATE) return -1;
    for (int s = 0; s < g->states; s++) {
        const struct state *t = &g->state[s];
        if (t->output != node(g, use)->index || t->part != node(g, use)->arg[1]) continue;
        const int state_use = t->value >= 0 ? g->upcoming[t->value] : -1;
        return state_use > i || (state_use == i && value_next_use(g, i, t->value) >= 0) ? -1 : t->reg;
    }
    return -1;
}

int value_result(generator *g, int i) { return value_take(g, i, value_wish(g, i)); }

/* x86_calls.c - calls of compiled functions: always, or for operands that are not moderate. */
#include "x86_generator.h"
#include <stdlib.h>

/* Stores or loads the general registers in use that a function may change: the position, its end, and
 * addresses of operands. */
static void save_general(generator *g, bool store)
{
    static const uint8_t volatile_registers[] = { RAX, RDX, RCX, RSI, RDI, R8, R9, R10 };
    for (int k = 0; k < (int)sizeof volatile_registers; k++) {
        const int reg = volatile_registers[k];
        bool used = reg == RAX || reg == RDX;
        for (int i = 0; i < PROGRAM_INPUTS + PROGRAM_OUTPUTS; i++) used |= g->pointer[i] == reg;
        if (used) (store ? x86_store : x86_load)(g->x, reg, RSP, g->general + SAVED_REGISTERS + 8 * k);
    }
}

/* Calls a function with the operands in the scratch part of the frame. Vector and mask registers are
 * lost. */
static void call(generator *g, int op)
{
    static const uint8_t call_rax[2] = { 0xff, 0xd0 };
    uint64_t address;
    memcpy(&address, &g->r->functions[2 * op + 1], sizeof address);
    save_general(g, true);
    x86_load_constant(g->x, RAX, address);
    static const uint8_t rdi_rsp[3] = { 0x48, 0x89, 0xe7 }; /* scratch is at the stack pointer */
    x86_bytes(g->x, rdi_rsp, 3);
    x86_bytes(g->x, call_rax, 2);
    save_general(g, false);
}

/* Stores or loads registers, each at its own place. */
static void save_registers(generator *g, uint32_t vectors, uint8_t masks, bool store)
{
    for (int r = 0; r < g->registers; r++)
        if (vectors >> r & 1)
            emit(g, store ? V_STORE : V_LOAD, r, 0, x86_memory(RSP, -1, g->saved + r * g->bytes));
    for (int m = 1; m < MASKS && g->r->wide; m++)
        if (masks >> m & 1) x86_mask_memory(g, m, g->general + SAVED_MASKS + 2 * m, store);
}

/* The registers in use now: those of values, of the whole run, and of the states. */
static uint32_t live_vectors(const generator *g)
{
    uint32_t live = 0;
    for (int r = 0; r < g->registers; r++)
        if (g->holder[r] >= 0 || !(g->allowed >> r & 1)) live |= 1u << r;
    return live;
}

static uint8_t live_masks(const generator *g)
{
    uint8_t live = (uint8_t)(g->tail ? 1 << TAIL_MASK : 0);
    for (int m = 1; m < TAIL_MASK; m++)
        if (g->mask_holder[m] >= 0) live |= (uint8_t)(1 << m);
    return live;
}

/* Functions of integers for which the interpreter is faster, because it computes several vectors with
 * each call: powers, and for u64 without AVX-512 also divisions. */
static bool is_slow(const generator *g, int op)
{
    return has_integers(g) && (op == OP_pow || (g->r->type == DUET_U64 && !g->r->wide));
}

void x86_call(generator *g, int i)
{
    const code_node *n = node(g, i);
    g->failed |= is_slow(g, n->index);
    for (int k = 0; k < n->arity; k++)
        emit(g, V_STORE, value_register(g, n->arg[k]), 0, x86_memory(RSP, -1, 8 * k * g->bytes));
    value_pass(g, i);
    const uint32_t live = live_vectors(g);
    const uint8_t masks = live_masks(g);
    save_registers(g, live, masks, true);
    call(g, n->index);
    save_registers(g, live, masks, false);
    emit(g, V_LOAD, value_result(g, i), 0, x86_memory(RSP, -1, 0));
}

void x86_guard(generator *g, int i)
{
    const code_node *n = node(g, i);
    const formula_table *t = is_eight(g) ? &formulas_f64 : &formulas_f32;
    const double reach = t->reach[n->index];
    const float narrow = (float)reach;
    uint64_t limit = 0;
    if (is_eight(g)) memcpy(&limit, &reach, 8);
    else memcpy(&limit, &narrow, 4);
    const int x = value_register(g, n->arg[0]), y = value_register(g, n->arg[1]), a = value_borrow(g);
    emit(g, V_AND, a, x, x86_pool(x86_constant(g->x, all_bits(g) & ~sign_bit(g))));
    const operand most = x86_pool(x86_constant(g->x, limit));
    if (g->r->wide) { /* any that is not <= limit, which includes NaN */
        const int m = value_borrow_mask(g);
        emit_immediate(g, V_COMPARE, m, a, most, 0x16);
        const uint8_t test[4] = { 0xc5, 0xf8, 0x98, (uint8_t)(0xc0 | m << 3 | m) };
        x86_bytes(g->x, test, 4);
    } else {
        static const vector_instruction V_TEST = { MAP_0F38, PREFIX_66, 0x17, W_0 };
        emit_immediate(g, V_COMPARE, a, a, most, 0x16);
        emit(g, V_TEST, a, 0, x86_register(a));
    }
    g->pinned &= ~(1u << a);
    value_pass(g, i);
    /* The result is in the register of the moderate formula's. If something else uses that too, there
     * is no code. */
    const int r = value_take(g, i, y);
    if (r != y) g->failed = true;
    static const uint8_t jump_if_any[2] = { 0x0f, 0x85 };
    x86_bytes(g->x, jump_if_any, 2);
    if (g->detour_count == g->detour_capacity) {
        const int more = g->detour_capacity ? 2 * g->detour_capacity : 16;
        detour *moved = realloc(g->detours, (size_t)more * sizeof *moved);
        if (!moved) {
            g->failed = true;
            return;
        }
        g->detours = moved;
        g->detour_capacity = more;
    }
    g->detours[g->detour_count++] =
        (detour){ g->x->length, g->x->length + 4, live_vectors(g) & ~(1u << r), live_masks(g), n->index, x, r,
                  g->tail };
    x86_u32(g->x, 0);
}

static void jump(generator *g, int target)
{
    static const uint8_t opcode = 0xe9;
    x86_bytes(g->x, &opcode, 1);
    x86_u32(g->x, 0);
    x86_patch(g, g->x->length - 4, target);
}

void x86_detours(generator *g)
{
    for (int k = 0; k < g->detour_count; k++) {
        const detour *d = &g->detours[k];
        x86_patch(g, d->jump, g->x->length);
        emit(g, V_STORE, d->x, 0, x86_memory(RSP, -1, 0));
        save_registers(g, d->vectors, d->masks, true);
        call(g, d->op);
        save_registers(g, d->vectors, d->masks, false);
        emit(g, V_LOAD, d->result, 0, x86_memory(RSP, -1, 0));
        jump(g, d->back);
    }
}

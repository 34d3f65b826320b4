/* x86_kernel.c - machine code for x86-64 from a list of operations.
 *
 * A kernel goes over the elements one vector register at a time; a loop contains the code for one
 * to four of them, one after the other. The last elements are computed under a mask.
 *
 * The frame, from the stack pointer on: operands of called functions, registers saved during
 * calls, a copy of each number and scalar, general registers, and stored values. */
#include "dtype.h"
#include "x86_generator.h"
#include <stdlib.h>

static const uint8_t pointer_registers[POINTERS] = { RCX, RBX, RSI, R8, R9, R10, R12, R13, R14, R15, RDI };

/* ---- loops ---- */

static int log2_of(int n) { return __builtin_ctz((unsigned)n); }

/* Shifts a register of 64 bits by a constant. */
static void shift_general(generator *g, int reg, bool left, int by)
{
    const uint8_t code[4] = { (uint8_t)(0x48 | reg >> 3), 0xc1, (uint8_t)((left ? 0xe0 : 0xe8) | (reg & 7)),
                              (uint8_t)by };
    x86_bytes(g->x, code, 4);
}

static void and_general(generator *g, int reg, int32_t mask)
{
    const uint8_t code[3] = { (uint8_t)(0x48 | reg >> 3), 0x81, (uint8_t)(0xe0 | (reg & 7)) };
    x86_bytes(g->x, code, 3);
    x86_u32(g->x, (uint32_t)mask);
}

static void add_offset(generator *g, int32_t bytes)
{
    static const uint8_t add_rax[2] = { 0x48, 0x05 };
    x86_bytes(g->x, add_rax, 2);
    x86_u32(g->x, (uint32_t)bytes);
}

/* Jumps; returns the place of the offset. */
enum { IF_BELOW = 0x82, IF_NOT_BELOW = 0x83, IF_ZERO = 0x84, IF_NOT_ZERO = 0x85 };
static int jump_if(generator *g, int condition)
{
    const uint8_t code[2] = { 0x0f, (uint8_t)condition };
    x86_bytes(g->x, code, 2);
    x86_u32(g->x, 0);
    return g->x->length - 4;
}

/* Compares RAX with RDX and jumps. */
static int compare_and_jump(generator *g, int condition)
{
    static const uint8_t compare_rax_rdx[3] = { 0x48, 0x39, 0xd0 };
    x86_bytes(g->x, compare_rax_rdx, 3);
    return jump_if(g, condition);
}

static void begin_body(generator *g, int disp, bool tail)
{
    g->disp = disp;
    g->tail = tail;
    g->used = 0;
    memset(g->slot_busy, 0, sizeof g->slot_busy);
    memset(g->holder, 0xff, sizeof g->holder);
    memset(g->mask_holder, 0xff, sizeof g->mask_holder);
    for (int v = 0; v < g->l->length; v++) {
        g->reg[v] = -1;
        g->slot[v] = -1;
        g->upcoming[v] = g->first[v];
    }
}

/* The code for vector `vector` of an unrolled loop. */
static void body(generator *g, int vector, bool tail)
{
    begin_body(g, vector * g->bytes, tail);
    for (int s = 0; s < g->states; s++) {
        g->state[s].reg = g->state_base - vector * g->states - s;
        if (g->state[s].value >= 0) g->fixed[g->state[s].value] = (int8_t)g->state[s].reg;
    }
    for (int i = 0; i < g->l->length && !g->failed && !g->x->full; i++) x86_operation(g, i);
}

/* Makes the mask of the tail. R11 has the number of its elements. */
static void make_tail_mask(generator *g)
{
    static const uint8_t wide[] = { 0xba, 0xff, 0xff, 0xff, 0xff, 0xc4, 0xe2,
                                    0x20, 0xf5, 0xd2, 0xc5, 0xf8, 0x92, 0xfa };
    static const uint8_t negate_r11[3] = { 0x49, 0xf7, 0xdb };
    if (g->r->wide) { /* edx = the lowest r11 bits of -1; k7 = edx */
        x86_bytes(g->x, wide, sizeof wide);
        return;
    }
    /* ones, then zeros: the first two constants */
    shift_general(g, R11, true, log2_of(g->size));
    x86_bytes(g->x, negate_r11, 3);
    x86_lea_pool(g->x, RDX, x86_constant(g->x, all_bits(g)));
    emit(g, V_LOAD, NARROW_TAIL, 0, x86_memory(RDX, R11, g->bytes));
}

/* RDX = the bytes of whole groups of `vectors` vectors in a row. */
static void load_end(generator *g, int vectors)
{
    x86_load(g->x, RDX, RSP, g->general + ARGUMENT_N);
    and_general(g, RDX, -(vectors * g->bytes / g->size));
    shift_general(g, RDX, true, log2_of(g->size));
}

/* ---- reductions ---- */

static void load_value(generator *g, int reg, int place)
{
    x86_load(g->x, reg, RSP, g->general + ARGUMENT_VALUES);
    x86_load(g->x, reg, reg, 8 * place);
}

/* Loads or stores the states of some vectors. */
static void move_states(generator *g, int vectors, bool tail, bool store)
{
    g->tail = tail;
    for (int v = 0; v < vectors; v++)
        for (int s = 0; s < g->states; s++) {
            const int reg = g->state_base - v * g->states - s;
            load_value(g, R11, g->r->outputs + g->state[s].output);
            const operand at = x86_memory(R11, RAX, g->state[s].part * g->r->part * g->size + v * g->bytes);
            if (store && tail) x86_store_masked(g, reg, at);
            else if (tail) x86_load_masked(g, reg, at);
            else emit(g, store ? V_STORE : V_LOAD, reg, 0, at);
        }
}

static void load_pointers(generator *g)
{
    for (int k = 0; k < PROGRAM_INPUTS; k++)
        if (g->pointer[k] >= 0) load_value(g, g->pointer[k], g->r->inputs + k);
    if (!g->counts_rows) return;
    load_value(g, R11, g->r->row);
    x86_broadcast(g->x, g->row_reg, x86_memory(R11, -1, 0));
}

/* All rows of some vectors; rows >= 1. The number of rows left is in the frame. */
static void reduce_columns(generator *g, int vectors, bool tail)
{
    static const uint8_t count_down[4] = { 0x48, 0xff, 0x8c, 0x24 }; /* dec qword [rsp + offset] */
    const int32_t left = g->general + ROWS_LEFT;
    move_states(g, vectors, tail, false);
    load_pointers(g);
    x86_load(g->x, R11, RSP, g->general + ARGUMENT_ROWS);
    x86_store(g->x, R11, RSP, left);
    const int top = g->x->length;
    for (int v = 0; v < vectors; v++) body(g, v, tail);
    for (int k = 0; k < PROGRAM_INPUTS; k++)
        if (g->pointer[k] >= 0) x86_add_memory(g->x, g->pointer[k], RSP, g->general + STEPS + 8 * k);
    const vector_instruction add = has_integers(g) ? x86_add_bits[1] : V_ADD;
    if (g->counts_rows) emit(g, add, g->row_reg, g->row_reg, x86_pool(x86_constant(g->x, one_bits(g))));
    x86_bytes(g->x, count_down, 4);
    x86_u32(g->x, (uint32_t)left);
    x86_patch(g, jump_if(g, IF_NOT_ZERO), top);
    move_states(g, vectors, tail, true);
}

/* ---- rows ---- */

static void some_vectors(generator *g, int vectors, bool tail)
{
    if (g->reduces) reduce_columns(g, vectors, tail);
    else
        for (int v = 0; v < vectors; v++) body(g, v, tail);
}

static void loop(generator *g, int vectors)
{
    load_end(g, vectors);
    const int skip = compare_and_jump(g, IF_NOT_BELOW), top = g->x->length;
    some_vectors(g, vectors, false);
    add_offset(g, vectors * g->bytes);
    x86_patch(g, compare_and_jump(g, IF_BELOW), top);
    x86_patch(g, skip, g->x->length);
}

/* Groups of vectors, then single ones, then the elements that do not fill one. */
static void loops(generator *g, int vectors)
{
    if (vectors > 1) loop(g, vectors);
    loop(g, 1);
    x86_load(g->x, R11, RSP, g->general + ARGUMENT_N);
    and_general(g, R11, g->bytes / g->size - 1);
    const int skip = jump_if(g, IF_ZERO);
    make_tail_mask(g);
    some_vectors(g, 1, true);
    x86_patch(g, skip, g->x->length);
}

/* ---- the beginning and the end of a kernel ---- */

static const uint8_t entry[] = { 0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
                                 0x55, 0x48, 0x89, 0xe5, /* push rbp; mov rbp, rsp */
                                 0x53, 0x41, 0x54, 0x41, 0x55,
                                 0x41, 0x56, 0x41, 0x57,         /* push rbx, r12 .. r15 */
                                 0x48, 0x81, 0xec };             /* sub rsp, */
static const uint8_t align_stack[] = { 0x48, 0x83, 0xe4, 0xc0 }; /* and rsp, -64 */
static const uint8_t leave[] = { 0xc5, 0xf8, 0x77,               /* vzeroupper */
                                 0x48, 0x8d, 0x65, 0xd8,         /* lea rsp, [rbp - 40] */
                                 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3 };

static void load_scalars(generator *g)
{
    for (int s = 0; s < g->scalars; s++) {
        const int v = g->scalar_value[s];
        const code_node *n = node(g, v);
        const int place = (n->operation == CODE_NUMBER ? g->r->numbers : g->r->inputs) + n->index;
        const int reg = g->fixed[v] >= 0 ? g->fixed[v] : 0;
        x86_load(g->x, RAX, RDI, 8 * place);
        x86_broadcast(g->x, reg, x86_memory(RAX, -1, 0));
        if (g->fixed[v] < 0) emit(g, V_STORE, reg, 0, value_copy(g, v));
    }
}

static void load_steps(generator *g)
{
    for (int k = 0; k < PROGRAM_INPUTS; k++) {
        if (g->pointer[k] < 0) continue;
        x86_load(g->x, RAX, RCX, 8 * (g->r->inputs + k));
        shift_general(g, RAX, true, log2_of(g->size));
        x86_store(g->x, RAX, RSP, g->general + STEPS + 8 * k);
    }
}

/* Addresses of operands, where RDI has the table; RDI is the last one to be replaced. */
static void load_addresses(generator *g)
{
    int last = -1;
    for (int k = 0; k < PROGRAM_INPUTS + PROGRAM_OUTPUTS; k++) {
        const int place = k < PROGRAM_INPUTS ? g->r->inputs + k : g->r->outputs + k - PROGRAM_INPUTS;
        if (g->pointer[k] == -2) continue; /* not used */
        if (g->pointer[k] == RDI) last = place;
        else if (g->pointer[k] >= 0) x86_load(g->x, g->pointer[k], RDI, 8 * place);
        else {
            x86_load(g->x, RAX, RDI, 8 * place);
            x86_store(g->x, RAX, RSP, g->general + FRAME_POINTERS + 8 * k);
        }
    }
    if (last >= 0) x86_load(g->x, RDI, RDI, 8 * last);
}

static void write_kernel(generator *g, int vectors)
{
    static const uint8_t clear_rax[2] = { 0x31, 0xc0 };
    g->x->length = g->x->uses = g->detour_count = 0;
    g->most_used = g->most_slots = 0;
    if (!g->r->wide) { /* the mask of the tail is read from these two */
        x86_constant(g->x, all_bits(g));
        x86_constant(g->x, 0);
    }
    x86_bytes(g->x, entry, sizeof entry);
    const int frame = g->x->length;
    x86_u32(g->x, 0);
    x86_bytes(g->x, align_stack, sizeof align_stack);
    x86_store(g->x, RDI, RSP, g->general + ARGUMENT_VALUES);
    x86_store(g->x, RSI, RSP, g->general + ARGUMENT_N);
    x86_store(g->x, RDX, RSP, g->general + ARGUMENT_ROWS);
    load_scalars(g);
    if (g->reduces) load_steps(g);
    else load_addresses(g);
    x86_bytes(g->x, clear_rax, 2);
    loops(g, vectors);
    x86_bytes(g->x, leave, sizeof leave);
    x86_detours(g);
    const uint32_t bytes = (uint32_t)(g->spills + g->most_slots * g->bytes + 64);
    if (!g->x->full) memcpy(g->x->byte + frame, &bytes, sizeof bytes);
}

/* ---- preparation ---- */

static bool find_uses(generator *g)
{
    const int n = g->l->length;
    int16_t *memory = malloc((size_t)n * 6 * sizeof *memory);
    int8_t *bytes = malloc((size_t)n * 3);
    g->next = memory;
    g->reg = bytes;
    if (!memory || !bytes) return false;
    g->first = memory + 3 * n;
    g->upcoming = memory + 4 * n;
    g->slot = memory + 5 * n;
    g->fixed = bytes + n;
    g->scalar = bytes + 2 * n;
    memset(g->first, 0xff, (size_t)n * sizeof *g->first);
    memset(g->fixed, 0xff, (size_t)n * 2);
    for (int i = n; i-- > 0;) {
        const code_node *a = node(g, i);
        for (int k = 0; k < a->arity; k++) g->next[3 * i + k] = g->first[a->arg[k]];
        for (int k = 0; k < a->arity; k++) g->first[a->arg[k]] = (int16_t)i;
    }
    return true;
}

static void add_state(generator *g, int output, int part, int value)
{
    int s = 0;
    while (s < g->states && (g->state[s].output != output || g->state[s].part != part)) s++;
    if (s == MOST_STATES) {
        g->failed = true;
        return;
    }
    if (s == g->states) g->state[g->states++] = (struct state){ output, part, -1, -1 };
    if (value >= 0) g->state[s].value = value;
}

/* Finds the scalars, addresses and states that the list uses. */
static void survey(generator *g)
{
    for (int k = 0; k < PROGRAM_INPUTS + PROGRAM_OUTPUTS; k++) g->pointer[k] = -2;
    int pointers = 0;
    for (int i = 0; i < g->l->length; i++) {
        const code_node *n = node(g, i);
        const bool once =
            n->operation == CODE_NUMBER || (n->operation == CODE_INPUT && g->r->scalars >> n->index & 1);
        g->calls |= n->operation == CODE_CALL || n->operation == CODE_GUARD;
        g->counts_rows |= n->operation == CODE_ROW;
        if (once && g->scalars == MOST_SCALARS) g->failed = true;
        else if (once) {
            g->scalar[i] = (int8_t)g->scalars;
            g->scalar_value[g->scalars++] = i;
        }
        if ((n->operation == CODE_INPUT && !once) || n->operation == CODE_STORE) {
            int *p = &g->pointer[n->operation == CODE_INPUT ? n->index : PROGRAM_INPUTS + n->index];
            if (*p == -2) *p = pointers < POINTERS ? pointer_registers[pointers++] : -1;
        }
        if (n->operation == CODE_STATE) add_state(g, n->index, n->arg[1], i);
        if (n->operation == CODE_UPDATE) add_state(g, n->index, n->arg[1], -1);
    }
    g->reduces = g->states > 0;
    for (int k = 0; k < PROGRAM_INPUTS && g->reduces; k++) g->failed |= g->pointer[k] == -1;
}

static void lay_out_frame(generator *g)
{
    g->saved = g->calls ? SCRATCH_VECTORS * g->bytes : 0;
    g->scalar_copies = g->saved + (g->calls ? g->registers * g->bytes : 0);
    g->general = g->scalar_copies + g->scalars * g->bytes;
    g->spills = g->general + GENERAL_BYTES;
}

/* How many vectors a loop computes in one turn. More for short lists, to reduce the cost of the loop. */
static int choose_vectors(const generator *g)
{
    int operations = 0;
    for (int i = 0; i < g->l->length; i++) {
        const code_node *n = node(g, i);
        operations += !is_readable(n) && n->operation != CODE_STATE && n->operation != CODE_UPDATE;
    }
    const int vectors = operations <= 20 ? 4 : operations <= 40 ? 2 : 1;
    const int room = g->r->wide ? 16 : 8; /* registers for states */
    if (!g->states) return vectors;
    return vectors * g->states <= room ? vectors : 2 * g->states <= room && vectors > 1 ? 2 : 1;
}

/* Reserves registers: for the states of all vectors, for the row, and for as many scalars as the
 * list leaves free. */
static void reserve_registers(generator *g, int vectors, int most_used)
{
    const uint32_t all = g->registers == 32 ? ~0u : (1u << NARROW_TAIL) - 1;
    int top = (g->registers == 32 ? 32 : NARROW_TAIL) - 1;
    g->state_base = top;
    top -= g->states * vectors;
    if (g->counts_rows) g->row_reg = top--;
    for (int i = 0; i < g->l->length; i++)
        if (node(g, i)->operation == CODE_ROW) g->fixed[i] = (int8_t)g->row_reg;
    const int least = most_used > LEAST_REGISTERS ? most_used : LEAST_REGISTERS;
    for (int s = 0; s < g->scalars && most_used >= 0; s++)
        if (top >= least) g->fixed[g->scalar_value[s]] = (int8_t)top--;
    if (top + 1 < LEAST_REGISTERS) {
        g->failed = true;
        return;
    }
    g->allowed = all & (top >= 31 ? ~0u : (2u << top) - 1);
}

bool x86_kernel(x86_code *x, const kernel_request *r)
{
    generator g = { .x = x, .r = r, .l = r->list };
    *x = (x86_code){ .wide = r->wide, .f64 = dtypes[r->type].bytes == 8, .byte = malloc(4096) };
    if (x->byte) x->capacity = 4096;
    g.registers = r->wide ? 32 : 16;
    g.bytes = x86_vector_bytes(x);
    g.size = (int)dtypes[r->type].bytes;
    if (find_uses(&g)) {
        survey(&g);
        lay_out_frame(&g);
        const int vectors = choose_vectors(&g);
        reserve_registers(&g, vectors, -1);
        if (g.scalars && !g.failed && !x->full) { /* once to find how many registers it needs */
            write_kernel(&g, 1);
            reserve_registers(&g, vectors, g.most_used);
        }
        if (!g.failed) write_kernel(&g, vectors);
        x86_finish(x);
    } else g.failed = true;
    free(g.next);
    free(g.reg);
    free(g.detours);
    return !g.failed && !x->full;
}

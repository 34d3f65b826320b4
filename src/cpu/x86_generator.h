/* x86_generator.h - the state of the generator of machine code, and what its files share.
 *
 * x86_kernel.c writes the loops, x86_operations.c an operation, x86_calls.c calls of compiled
 * functions; x86_registers.c chooses registers. */
#ifndef X86_GENERATOR_H
#define X86_GENERATOR_H

#include "x86_kernel.h"
#include <string.h>

enum {
    MASKS = 8,
    TAIL_MASK = 7,
    NARROW_TAIL = 15,
    POINTERS = 11,
    MOST_SCALARS = 64,
    MOST_STATES = 16,
    SCRATCH_VECTORS = 24,
    LEAST_REGISTERS = 6 /* that values may use */
};

/* A place outside of the loops where a function is called for operands that are not moderate. */
typedef struct detour {
    int jump, back;   /* the places of the jump's offset and of the instruction after it */
    uint32_t vectors; /* the registers to save */
    uint8_t masks;
    int op, x, result; /* registers of the operand and the result */
    bool tail;
} detour;

typedef struct generator {
    x86_code *x;
    const kernel_request *r;
    const code_list *l;
    bool failed, calls, reduces, counts_rows;
    int registers, bytes, size; /* vector registers; bytes of one; of an element */

    /* values: by their place in the list */
    int16_t *next;             /* [3 i + k]: the next use of operand k of node i after i, or -1 */
    int16_t *first, *upcoming; /* the first use; the next one from here on */
    int8_t *reg;               /* the register that has it, or -1 */
    int16_t *slot;             /* where it is stored in the frame, or -1 */
    int8_t *fixed;             /* a register that has it during the whole run, or -1 */
    int8_t *scalar;            /* its number among the scalars, or -1 */

    int16_t holder[32]; /* the value in each register, or -1 */
    int16_t mask_holder[MASKS];
    uint32_t allowed, pinned; /* registers that may be used; that the current node needs */
    uint8_t pinned_masks;     /* mask registers that it needs */
    int used, most_used;      /* registers in use now, and the most so far */
    int most_slots;
    uint8_t slot_busy[128]; /* places of stored values; with more, there is no code */

    int pointer[PROGRAM_INPUTS +
                PROGRAM_OUTPUTS]; /* registers of inputs, then outputs; -1: in the frame; -2: not used */
    int scalars, scalar_value[MOST_SCALARS];
    int states; /* of all reductions, for one vector */
    struct state {
        int output, part, value; /* value: its STATE node, or -1 */
        int reg;                 /* of the current vector */
    } state[MOST_STATES];
    int state_base; /* the register of the first state; those of the others precede it */
    int row_reg;

    int32_t saved, scalar_copies, general, spills; /* offsets in the frame */
    int disp;                                      /* offset of the current vector */
    bool tail;
    detour *detours;
    int detour_count, detour_capacity;
} generator;

/* Places of general registers and arguments in the frame, after `general`. */
enum {
    SAVED_REGISTERS = 0,
    ARGUMENT_VALUES = 128,
    ARGUMENT_N = 136,
    ARGUMENT_ROWS = 144,
    STEPS = 152,
    ROWS_LEFT = STEPS + 8 * PROGRAM_INPUTS,
    FRAME_POINTERS = ROWS_LEFT + 8,
    SAVED_MASKS = FRAME_POINTERS + 8 * (PROGRAM_INPUTS + PROGRAM_OUTPUTS),
    GENERAL_BYTES = 512
};
_Static_assert(SAVED_MASKS + 2 * MASKS <= GENERAL_BYTES, "all of them fit");

static inline bool is_condition(const code_node *n)
{
    return (n->operation >= FORMULA_LT && n->operation <= FORMULA_GE) || n->operation == FORMULA_BIT_EQ ||
           n->operation == FORMULA_BIT_NE || n->operation == FORMULA_BOTH || n->operation == FORMULA_EITHER;
}

/* Can the value be read again from memory? */
static inline bool is_readable(const code_node *n)
{
    return n->operation == CODE_INPUT || n->operation == CODE_NUMBER || n->operation == FORMULA_CONSTANT;
}

/* Has an element eight bytes? Otherwise it has four. */
static inline bool is_eight(const generator *g) { return g->size == 8; }
static inline bool has_integers(const generator *g)
{
    return g->r->type == DUET_I64 || g->r->type == DUET_U64;
}
static inline const code_node *node(const generator *g, int v) { return &g->l->node[v]; }
static inline bool in_mask(const generator *g, int v) { return g->r->wide && is_condition(node(g, v)); }
static inline bool is_scalar(const generator *g, int v) { return g->scalar[v] >= 0; }

/* ---- instructions ---- */

static inline void emit(generator *g, vector_instruction i, int reg, int first, operand second)
{
    x86_vector(g->x, i, reg, first, second, 0, false, -1);
}

static inline void emit_immediate(generator *g, vector_instruction i, int reg, int first, operand second,
                                  int immediate)
{
    x86_vector(g->x, i, reg, first, second, 0, false, immediate);
}

static inline void move(generator *g, int to, int from)
{
    if (to != from) emit(g, V_LOAD, to, 0, x86_register(from));
}

static inline uint64_t sign_bit(const generator *g) { return is_eight(g) ? (uint64_t)1 << 63 : 0x80000000u; }

static inline uint64_t all_bits(const generator *g) { return is_eight(g) ? ~(uint64_t)0 : 0xffffffffu; }

static inline uint64_t one_bits(const generator *g)
{
    if (has_integers(g)) return 1;
    return is_eight(g) ? 0x3ff0000000000000u : 0x3f800000u;
}

static inline void x86_patch(generator *g, int at, int target)
{
    const int32_t offset = target - (at + 4);
    if (!g->x->full) memcpy(g->x->byte + at, &offset, sizeof offset);
}

/* ---- values (x86_registers.c) ----
 * A node reads its operands by value_register() and value_operand(), then calls value_pass(), and
 * then value_result(). Operands stay in their registers until value_pass(). If the result must not
 * replace an operand, its register is taken before. */

/* The current vector of an input, or of output k - PROGRAM_INPUTS. Uses R11 if its address is in the
 * frame. */
operand value_element(generator *g, int k);
operand value_spilled(const generator *g, int v); /* where a stored value is */
operand value_copy(const generator *g, int v);    /* the copy of a number or scalar */

void value_load(generator *g, int reg, int v); /* reg = value v, from memory */

/* A register that has value v. */
int value_register(generator *g, int v);
bool value_has_register(const generator *g, int v);

/* Can value v be an operand in memory? Constants, scalars and spilled values can. An input can at its
 * last use (`last`), and not in the tail. */
bool value_may_be_memory(const generator *g, int v, int last);

/* The value as second operand; `last`: this is its last use. */
operand value_operand(generator *g, int v, bool last);

int value_next_use(const generator *g, int i, int v); /* of value v after node i; -1 if there is none */
void value_pass(generator *g, int i);                 /* node i has read its operands */
void value_release(generator *g, int v);              /* value v is not needed any more */

/* A register for value v, or for the result of node i. `wish`: the one to take if it is free, or -1. */
int value_take(generator *g, int v, int wish);
int value_result(generator *g, int i);

/* The register of the state that node i updates and nothing else uses, or -1. */
int value_wish(const generator *g, int i);
int value_take_mask(generator *g, int v); /* a mask register */
int value_borrow_mask(generator *g);      /* one that is free until the next call */
void x86_mask_memory(generator *g, int mask, int32_t at, bool store); /* at: in the frame */

/* A register for an intermediate value of one operation, which gives it back by clearing its bit in
 * `pinned`. */
int value_borrow(generator *g);

/* Load or store only the elements before the end of the row. */
void x86_load_masked(generator *g, int reg, operand from);
void x86_store_masked(generator *g, int reg, operand to);
void x86_load_pool(generator *g, int reg, uint64_t bits); /* all elements = a constant */

/* ---- operations ---- */

extern const vector_instruction x86_add_bits[2], x86_sub_bits[2]; /* of 4 and 8 bytes */

void x86_operation(generator *g, int i); /* the code of node i */
void x86_call(generator *g, int i);
void x86_guard(generator *g, int i);
void x86_detours(generator *g); /* the code outside of the loops for all guards */

#endif

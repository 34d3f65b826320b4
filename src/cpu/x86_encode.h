/* x86_encode.h - writes instructions of AVX-512 or AVX2 for elements of four or eight bytes. */
#ifndef X86_ENCODE_H
#define X86_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* General registers by their numbers. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* The second source of an instruction: a register, or memory at base + index + offset. */
typedef struct operand {
    enum { IN_REGISTER, IN_MEMORY, IN_POOL } kind;
    uint8_t reg;  /* the register, or the base */
    int8_t index; /* a register, or -1 */
    int32_t offset;
    int constant; /* IN_POOL: which */
} operand;

typedef struct x86_code {
    bool wide, f64; /* AVX-512, else AVX2; f64, else f32 */
    bool full;      /* there was no memory for more code */
    uint8_t *byte;
    int length, capacity;
    uint64_t *pool; /* constants, which follow the code */
    int constants, constants_capacity;
    struct pool_use {
        int at, end; /* of the offset, and of its instruction */
        int constant;
    } * use;
    int uses, uses_capacity;
} x86_code;

/* A vector instruction: its opcode map, prefix and opcode. PREFIX_TYPE is 66 for f64,
 * and none for f32. */
enum { MAP_0F = 1, MAP_0F38, MAP_0F3A };
enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2, PREFIX_TYPE };
enum { W_0, W_TYPE, W_WIDE }; /* W_TYPE: 1 for f64; W_WIDE: the same, but 0 for AVX2 */
typedef struct vector_instruction {
    uint8_t map, prefix, opcode, w;
} vector_instruction;

static const vector_instruction V_ADD = { MAP_0F, PREFIX_TYPE, 0x58, W_TYPE },
                                V_MUL = { MAP_0F, PREFIX_TYPE, 0x59, W_TYPE },
                                V_SUB = { MAP_0F, PREFIX_TYPE, 0x5c, W_TYPE },
                                V_MIN = { MAP_0F, PREFIX_TYPE, 0x5d, W_TYPE },
                                V_DIV = { MAP_0F, PREFIX_TYPE, 0x5e, W_TYPE },
                                V_MAX = { MAP_0F, PREFIX_TYPE, 0x5f, W_TYPE },
                                V_SQRT = { MAP_0F, PREFIX_TYPE, 0x51, W_TYPE },
                                V_AND = { MAP_0F, PREFIX_TYPE, 0x54, W_TYPE },
                                V_OR = { MAP_0F, PREFIX_TYPE, 0x56, W_TYPE },
                                V_XOR = { MAP_0F, PREFIX_TYPE, 0x57, W_TYPE },
                                V_COMPARE = { MAP_0F, PREFIX_TYPE, 0xc2, W_TYPE },
                                V_LOAD = { MAP_0F, PREFIX_TYPE, 0x10, W_TYPE },
                                V_STORE = { MAP_0F, PREFIX_TYPE, 0x11, W_TYPE },
                                V_STREAM = { MAP_0F, PREFIX_TYPE, 0x2b, W_TYPE },
                                V_LEFT_BY = { MAP_0F38, PREFIX_66, 0x47, W_TYPE },
                                V_RIGHT_BY = { MAP_0F38, PREFIX_66, 0x45, W_TYPE };

/* Appends an instruction: reg = instruction(first, second). `mask`: a mask register, with other
 * elements 0 if `zero`; 0 for none. `immediate` < 0: none. A constant as second operand is one
 * element for AVX-512. */
void x86_vector(x86_code *x, vector_instruction i, int reg, int first, operand second, int mask, bool zero,
                int immediate);

/* All elements of reg = one element in memory, or the constant. */
void x86_broadcast(x86_code *x, int reg, operand from);

void x86_bytes(x86_code *x, const uint8_t *byte, int count);
void x86_u32(x86_code *x, uint32_t value);

/* Moves between general registers and memory, 64 bits. */
void x86_load(x86_code *x, int reg, int base, int32_t offset);
void x86_store(x86_code *x, int reg, int base, int32_t offset);
void x86_add_memory(x86_code *x, int reg, int base, int32_t offset); /* reg += memory */
void x86_lea_pool(x86_code *x, int reg, int constant);
void x86_load_constant(x86_code *x, int reg, uint64_t value);

/* The number of a constant in the pool. */
int x86_constant(x86_code *x, uint64_t bits);

/* Appends the pool, and completes the instructions that refer to it. */
void x86_finish(x86_code *x);
void x86_free(x86_code *x);

static inline operand x86_register(int reg) { return (operand){ .kind = IN_REGISTER, .reg = (uint8_t)reg }; }
static inline operand x86_memory(int base, int index, int32_t offset)
{
    return (operand){ .kind = IN_MEMORY, .reg = (uint8_t)base, .index = (int8_t)index, .offset = offset };
}
static inline operand x86_pool(int constant) { return (operand){ .kind = IN_POOL, .constant = constant }; }
static inline int x86_vector_bytes(const x86_code *x) { return x->wide ? 64 : 32; }

#endif

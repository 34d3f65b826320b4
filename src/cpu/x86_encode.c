/* x86_encode.c - writes instructions (x86_encode.h). */
#include "x86_encode.h"
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) bool grow(x86_code *x, void **memory, int *capacity, int length,
                                           size_t bytes)
{
    if (length < *capacity) return true;
    if (x->full) return false;
    const int more = *capacity ? 2 * *capacity : 64;
    void *moved = realloc(*memory, (size_t)more * bytes);
    if (!moved) {
        x->full = true;
        return false;
    }
    *memory = moved;
    *capacity = more;
    return true;
}

static inline void byte(x86_code *x, int value)
{
    if (x->length < x->capacity) x->byte[x->length++] = (uint8_t)value;
    else if (grow(x, (void **)&x->byte, &x->capacity, x->length, 1)) x->byte[x->length++] = (uint8_t)value;
}

void x86_bytes(x86_code *x, const uint8_t *from, int count)
{
    for (int i = 0; i < count; i++) byte(x, from[i]);
}

void x86_u32(x86_code *x, uint32_t value)
{
    for (int i = 0; i < 4; i++) byte(x, (int)(value >> 8 * i & 255));
}

int x86_constant(x86_code *x, uint64_t bits)
{
    for (int i = 0; i < x->constants; i++)
        if (x->pool[i] == bits) return i;
    if (!grow(x, (void **)&x->pool, &x->constants_capacity, x->constants, sizeof *x->pool)) return 0;
    x->pool[x->constants] = bits;
    return x->constants++;
}

/* The bytes after the opcode: the operands. unit: offsets of one byte count these units. */
static void operands(x86_code *x, int reg, operand o, int unit, int immediates)
{
    reg = (reg & 7) << 3;
    if (o.kind == IN_REGISTER) {
        byte(x, 0xc0 | reg | (o.reg & 7));
        return;
    }
    if (o.kind == IN_POOL) {
        byte(x, reg | 5);
        if (!grow(x, (void **)&x->use, &x->uses_capacity, x->uses, sizeof *x->use)) return;
        x->use[x->uses++] = (struct pool_use){ x->length, x->length + 4 + immediates, o.constant };
        x86_u32(x, 0);
        return;
    }
    const bool has_index = o.index >= 0 || (o.reg & 7) == RSP;
    const bool is_short = o.offset % unit == 0 && o.offset / unit >= -128 && o.offset / unit <= 127;
    const int mode = o.offset == 0 && (o.reg & 7) != RBP ? 0 : is_short ? 0x40 : 0x80;
    byte(x, mode | reg | (has_index ? 4 : o.reg & 7));
    if (has_index) byte(x, (o.index >= 0 ? o.index & 7 : 4) << 3 | (o.reg & 7));
    if (mode == 0x40) byte(x, o.offset / unit & 255);
    if (mode == 0x80) x86_u32(x, (uint32_t)o.offset);
}

static int prefix_of(const x86_code *x, vector_instruction i)
{
    return i.prefix == PREFIX_TYPE ? x->f64 ? PREFIX_66 : NO_PREFIX : i.prefix;
}

/* Bits 3 and 4 of the registers of an operand, where bit 4 of a vector register is called X. */
static void high_bits(operand o, int *b, int *x)
{
    *b = *x = 0;
    if (o.kind == IN_POOL) return;
    *b = o.reg >> 3 & 1;
    *x = o.kind == IN_REGISTER ? o.reg >> 4 & 1 : o.index >= 0 ? o.index >> 3 & 1 : 0;
}

static void vex(x86_code *x, vector_instruction i, int reg, int first, operand second, int immediates)
{
    int b, index;
    high_bits(second, &b, &index);
    byte(x, 0xc4);
    byte(x, (~reg >> 3 & 1) << 7 | (!index) << 6 | (!b) << 5 | i.map);
    byte(x, (i.w == W_TYPE && x->f64) << 7 | (~first & 15) << 3 | 1 << 2 | prefix_of(x, i));
    byte(x, i.opcode);
    operands(x, reg, second, 1, immediates);
}

/* one: the second operand is one element for all; unit: what offsets of one byte count. */
static void evex(x86_code *x, vector_instruction i, int reg, int first, operand second, int mask, bool zero,
                 bool one, int unit, int immediates)
{
    int b, index;
    high_bits(second, &b, &index);
    byte(x, 0x62);
    byte(x, (~reg >> 3 & 1) << 7 | (!index) << 6 | (!b) << 5 | (~reg >> 4 & 1) << 4 | i.map);
    byte(x, (i.w != W_0 && x->f64) << 7 | (~first & 15) << 3 | 1 << 2 | prefix_of(x, i));
    byte(x, zero << 7 | 2 << 5 | one << 4 | (~first >> 4 & 1) << 3 | mask);
    byte(x, i.opcode);
    operands(x, reg, second, unit, immediates);
}

void x86_vector(x86_code *x, vector_instruction i, int reg, int first, operand second, int mask, bool zero,
                int immediate)
{
    if (x->wide) evex(x, i, reg, first, second, mask, zero, second.kind == IN_POOL, 64, immediate >= 0);
    else vex(x, i, reg, first, second, immediate >= 0);
    if (immediate >= 0) byte(x, immediate);
}

void x86_broadcast(x86_code *x, int reg, operand from)
{
    const vector_instruction i = { MAP_0F38, PREFIX_66, x->f64 ? 0x19 : 0x18, W_WIDE };
    if (x->wide) evex(x, i, reg, 0, from, 0, false, false, x->f64 ? 8 : 4, 0);
    else vex(x, i, reg, 0, from, 0);
}

/* ---- general registers ---- */

static void general(x86_code *x, int opcode, int reg, operand o)
{
    int b, index;
    high_bits(o, &b, &index);
    byte(x, 0x48 | (reg >> 3) << 2 | index << 1 | b);
    byte(x, opcode);
    operands(x, reg, o, 1, 0);
}

void x86_load(x86_code *x, int reg, int base, int32_t offset)
{
    general(x, 0x8b, reg, x86_memory(base, -1, offset));
}

void x86_store(x86_code *x, int reg, int base, int32_t offset)
{
    general(x, 0x89, reg, x86_memory(base, -1, offset));
}

void x86_add_memory(x86_code *x, int reg, int base, int32_t offset)
{
    general(x, 0x03, reg, x86_memory(base, -1, offset));
}

void x86_lea_pool(x86_code *x, int reg, int constant) { general(x, 0x8d, reg, x86_pool(constant)); }

void x86_load_constant(x86_code *x, int reg, uint64_t value)
{
    byte(x, 0x48 | reg >> 3);
    byte(x, 0xb8 | (reg & 7));
    x86_u32(x, (uint32_t)value);
    x86_u32(x, (uint32_t)(value >> 32));
}

/* ---- the pool ---- */

/* AVX-512 reads one element for all, AVX2 a whole register. */
void x86_finish(x86_code *x)
{
    const int size = x->f64 ? 8 : 4, copies = x->wide ? 1 : 32 / size;
    while (x->length % 64) byte(x, 0xcc);
    const int pool = x->length;
    for (int i = 0; i < x->constants; i++)
        for (int k = 0; k < copies * size; k++) byte(x, (int)(x->pool[i] >> 8 * (k % size) & 255));
    for (int i = 0; i < x->uses && !x->full; i++) {
        const int32_t offset = pool + x->use[i].constant * copies * size - x->use[i].end;
        memcpy(x->byte + x->use[i].at, &offset, sizeof offset);
    }
}

void x86_free(x86_code *x)
{
    free(x->byte);
    free(x->pool);
    free(x->use);
    *x = (x86_code){ 0 };
}

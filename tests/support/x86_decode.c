/* x86_decode.c - decodes machine code (x86_decode.h), as far as needed to check it without running it. It
 * knows the lengths of the instructions, and shares no code with the encoder. */
#include "x86_decode.h"
#include "x86_kernel.h"
#include <stdlib.h>
#include <string.h>

/* An instruction. It ends at `end`; the other places are -1 if it has none.
 *   target   where it jumps to
 *   pool     the place of its operand in the pool
 *   frame    offset from RSP of the end of its operand in the stack frame
 *   grows    by how many bytes it enlarges the stack frame */
typedef struct decoded {
    int end, target, pool, frame, grows;
    bool returns, jumps, vector, evex;
} decoded;

static int32_t decoded_i32(const uint8_t *at)
{
    int32_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

/* The operands after the opcode, without immediates. unit: what an offset of one byte counts; bytes: the size
 * of the operand in memory. The place in the pool is from the end of the offset on. */
static int decode_operands(const uint8_t *code, int at, int unit, int bytes, decoded *d)
{
    const int mode = code[at] >> 6, low = code[at] & 7;
    at++;
    if (mode == 3) return at;
    const int base = low == RSP ? code[at++] & 7 : low;
    if (mode == 0 && low == RBP) {
        d->pool = at + 4 + decoded_i32(code + at);
        return at + 4;
    }
    const bool has_word = mode == 2 || (mode == 0 && base == RBP);
    const int offset = has_word ? decoded_i32(code + at) : mode == 1 ? unit * (int8_t)code[at] : 0;
    if (low == RSP && base == RSP) d->frame = offset + bytes;
    return at + (has_word ? 4 : mode);
}

/* Have vector instructions of this opcode map an immediate operand? */
static bool has_immediate(int map, int opcode)
{
    return map == MAP_0F3A || (map == MAP_0F && (opcode == 0xc2 || (opcode >= 0x70 && opcode <= 0x73)));
}

/* A vector instruction whose opcode is at `at`. */
static bool decode_vector(const uint8_t *code, int at, int map, decoded *d)
{
    const int opcode = code[at++], element = opcode == 0x18 ? 4 : 8;
    const bool broadcasts = map == MAP_0F38 && (opcode == 0x18 || opcode == 0x19);
    const bool mask = map == MAP_0F && (opcode == 0x90 || opcode == 0x91);
    const int bytes = broadcasts ? element : mask ? 2 : d->evex ? 64 : 32;
    if (map < MAP_0F || map > MAP_0F3A) return false;
    d->vector = true;
    d->end = at;
    if (map == MAP_0F && opcode == 0x77) return true; /* vzeroupper */
    d->end = decode_operands(code, at, d->evex ? bytes : 1, bytes, d);
    if (has_immediate(map, opcode)) d->end++, d->pool += d->pool >= 0;
    return true;
}

/* Bytes 1 to 3 after 62: the fixed bits, a length of 512 bits, and no zeroing without a mask. */
static bool decode_evex(const uint8_t *code, int at, decoded *d)
{
    const int map = code[at + 1] & 15, mask = code[at + 3] & 7;
    d->evex = true;
    const bool right = code[at + 2] & 4 && (code[at + 3] >> 5 & 3) == 2 && (mask || !(code[at + 3] >> 7));
    return right && decode_vector(code, at + 4, map, d);
}

/* Jumps, with an offset of 32 bits at `at`. */
static bool decode_jump(const uint8_t *code, int at, decoded *d)
{
    d->end = at + 4;
    d->target = d->end + decoded_i32(code + at);
    return true;
}

/* An instruction of general registers, whose opcode is at `at`. */
static bool decode_general(const uint8_t *code, int at, bool w, decoded *d)
{
    const int opcode = code[at++];
    d->end = at;
    switch (opcode) {
    case 0xc3: d->returns = true; return true;
    case 0x05: d->end = at + 4; return true;
    case 0xe9: d->jumps = true; return decode_jump(code, at, d);
    case 0x81:
        d->grows = (code[at] >> 3 & 7) == 5 ? decoded_i32(code + at + 1) : 0;
        d->end = at + 5;
        return true;
    case 0x83:
    case 0xc1: d->end = at + 2; return true;
    case 0xf7:
    case 0xff:
    case 0x03:
    case 0x31:
    case 0x39:
    case 0x89:
    case 0x8b:
    case 0x8d: d->end = decode_operands(code, at, 1, 8, d); return true;
    case 0x0f:
        if (code[at] == 0x1e) d->end = at + 2; /* endbr64 */
        else if ((code[at] & 0xf0) == 0x80) return decode_jump(code, at + 1, d);
        else return false;
        return true;
    default:
        if ((opcode & 0xf8) == 0xb8) d->end = at + (w ? 8 : 4);
        return (opcode & 0xf0) == 0x50 || (opcode & 0xf8) == 0xb8;
    }
}

/* The instruction at `at`. Returns false if the generator writes no such instruction. */
static bool decode(const uint8_t *code, int at, decoded *d)
{
    *d = (decoded){ .target = -1, .pool = -1, .frame = -1 };
    if (code[at] == 0xc5) return decode_vector(code, at + 2, MAP_0F, d);
    if (code[at] == 0xc4) return decode_vector(code, at + 3, code[at + 1] & 31, d);
    if (code[at] == 0x62) return decode_evex(code, at, d);
    at += code[at] == 0xf3;
    const int rex = (code[at] & 0xf0) == 0x40 ? code[at++] : 0;
    return decode_general(code, at, rex & 8, d);
}

/* ---- the whole code ---- */

typedef struct decoder {
    const x86_code *x;
    int pool, frame;        /* where the pool begins; the size of the stack frame */
    bool *begins, *entered; /* by bytes: does an instruction begin there; is it the target of a jump? */
} decoder;

static const char *decoded_fault(decoder *c, const decoded *d)
{
    const int unit = c->x->wide ? c->x->f64 ? 8 : 4 : 32;
    if (d->end > c->pool) return "an instruction reaches into the pool";
    if (d->evex && !c->x->wide) return "an instruction of AVX-512 in code for AVX2";
    if (d->pool >= 0 && (d->pool < c->pool || d->pool + unit > c->x->length || (d->pool - c->pool) % unit))
        return "an operand is not a constant of the pool";
    if (d->frame > c->frame) return "an operand is beyond the stack frame";
    if (d->target >= c->pool) return "a jump leaves the code";
    if (d->target >= 0) c->entered[d->target] = true;
    return NULL;
}

/* Goes over all instructions up to the padding before the pool. */
static const char *decode_all(decoder *c)
{
    decoded d = { 0 };
    int at = 0, returns = 0;
    while (at < c->pool && !((d.returns || d.jumps) && c->x->byte[at] == 0xcc)) {
        c->begins[at] = true;
        if (!decode(c->x->byte, at, &d)) return "there is an unknown instruction";
        const char *fault = decoded_fault(c, &d);
        if (fault) return fault;
        c->frame += d.grows;
        returns += d.returns;
        at = d.end;
    }
    if (returns != 1 || !(d.returns || d.jumps)) return "the code does not end with a return or a jump";
    if (c->pool - at >= 64) return "there is too much padding";
    for (; at < c->pool; at++)
        if (c->x->byte[at] != 0xcc) return "there is code after the last return or jump";
    for (at = 0; at < c->pool; at++)
        if (c->entered[at] && !c->begins[at]) return "a jump enters the middle of an instruction";
    return NULL;
}

/* What is wrong with complete code, or NULL. */
static const char *code_fault(const x86_code *x)
{
    const int pool = x->length - x->constants * (x->wide ? x->f64 ? 8 : 4 : 32);
    if (pool < 0 || pool % 64) return "the pool is not aligned";
    bool *marks = calloc(2 * (size_t)pool + 1, sizeof *marks);
    if (!marks) return NULL;
    decoder c = { x, pool, 0, marks, marks + pool };
    const char *fault = decode_all(&c);
    free(marks);
    return fault;
}

/* ---- programs ---- */

const char *machine_code_fault(const program *p, duet_dtype type, bool wide, machine_code_choice c)
{
    static void (*const functions[2 * OPS])(void); /* never called */
    code_list l;
    const kernel_request r = { .list = &l,
                               .wide = wide,
                               .type = type,
                               .scalars = c.scalars,
                               .streams = c.streams,
                               .numbers = PROGRAM_INPUTS,
                               .outputs = PROGRAM_INPUTS + PROGRAM_NUMBERS,
                               .row = PROGRAM_INPUTS + PROGRAM_NUMBERS + PROGRAM_OUTPUTS,
                               .part = 128,
                               .functions = functions };
    x86_code x = { 0 };
    const bool listed = code_list_make(&l, p, type);
    if (listed) code_list_drop_wraps(&l, c.bits);
    const char *fault = listed && x86_kernel(&x, &r) ? code_fault(&x) : NULL;
    x86_free(&x);
    code_list_free(&l);
    return fault;
}

/* program_writer.h - writes random programs of floating-point numbers or of integers, instruction by
 * instruction, for trials of machine_trial.h. */
#ifndef PROGRAM_WRITER_H
#define PROGRAM_WRITER_H

#include "machine_trial.h"

static inline bool has_integers(duet_dtype type) { return type == DUET_I64 || type == DUET_U64; }

/* Integers include divisors 0 and -1, and shifts by more than the width. */
static inline double any_number(duet_dtype type, int strange)
{
    if (!has_integers(type)) return number(type, strange);
    return integer_number(chance(50) ? draw(70) - 3 : whole_or_special(type, 30));
}

static inline void write_wrap(writer *w)
{
    static const uint8_t narrow[] = { DUET_I8, DUET_U8, DUET_I16, DUET_U16, DUET_I32, DUET_U32, DUET_BOOL };
    instruction *i = &w->p->code[w->p->length++];
    *i = (instruction){ .op = OP_WRAP, .type = (uint8_t)w->type, .arg = { { FROM_ACC, 0 } } };
    i->arg[1].index = narrow[draw(7)];
}

/* Up to `length` instructions, whose operators any_map draws. */
static inline void write_maps(writer *w, int length, int any_map(duet_dtype type))
{
    for (int n = draw(length) + !w->acc; n-- > 0;) {
        if (w->acc && chance(20)) write_one(w, OP_SAVE, 0);
        else if (chance(5)) write_one(w, OP_LOAD, 0);
        else if (w->acc && has_integers(w->type) && chance(15)) write_wrap(w);
        else write_one(w, any_map(w->type), 0);
    }
}

/* A reduction leaves the accumulator as it is. */
static inline void write_reduce(writer *w, int op, int output)
{
    const bool acc = w->acc;
    write_one(w, op, 0);
    w->acc = acc;
    w->p->code[w->p->length - 1].arg[2].index = (uint8_t)output;
}

#endif

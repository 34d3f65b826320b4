/* ops.c - the facts of the operators and of finished steps, from their rows. */
#include "backend.h"

const op_info op_infos[OPS_ALL] = {
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, known, doc)       { #name, doc, KIND_MAP, 1, flags },
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, known, doc)       { #name, doc, KIND_MAP, 2, flags },
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, known, doc)       { #name, doc, KIND_MAP, 3, flags },
#define DUET_FOLD1(name, start, take, join, finish, needs, oracle, terms, doc) { #name, doc, KIND_FOLD, 1, 0 },
#define DUET_FOLD2(name, start, take, join, finish, needs, oracle, terms, doc) { #name, doc, KIND_FOLD, 2, 0 },
#define DUET_MOMENT1(name, take, join, finish, needs, oracle, terms, doc)      { #name, doc, KIND_FOLD, 1, 0 },
#define DUET_PLACE1(name, better, needs, oracle, doc)                          { #name, doc, KIND_FOLD, 1, OP_GIVES_INDEX },
#define DUET_DEF1(name, options, needs, shape, value, terms, doc)              { #name, doc, KIND_DEF, 1, 0 },
#define DUET_DEF2(name, options, needs, shape, value, terms, doc)              { #name, doc, KIND_DEF, 2, 0 },
#define DUET_CALL(name, arity, types, doc)                                     { #name, doc, KIND_DEF, arity, types },
#define DUET_CALL1(name, options, types, needs, shape, doc)                    DUET_CALL(name, 1, TYPES_##types, doc)
#define DUET_CALL2(name, options, types, needs, shape, doc)                    DUET_CALL(name, 2, TYPES_##types, doc)
#define DUET_CALL3(name, options, types, needs, shape, doc)                    DUET_CALL(name, 3, TYPES_##types, doc)
#define TYPES_SAME                                                             0
#define TYPES_FREE                                                             OP_ANY_TYPES
#include <duet/ops.def>
    [OP_LEAF] = { "leaf", "a matrix", KIND_LEAF, 0, 0 },
    [OP_NUMBER] = { "number", "a number", KIND_LEAF, 0, 0 },
    [OP_HOLE] = { "hole", "any operand", KIND_LEAF, 0, 0 },
    [OP_HOLE_NUMBER] = { "hole_number", "any number", KIND_LEAF, 0, 0 },
    [OP_LOAD] = { "load", "accumulator = operand", KIND_LEAF, 1, 0 },
    [OP_SAVE] = { "save", "slot = accumulator", KIND_LEAF, 1, 0 },
    [OP_STORE] = { "store", "output = accumulator", KIND_LEAF, 1, 0 },
    [OP_WRAP] = { "wrap", "accumulator = operand within a narrower integer type", KIND_LEAF, 1, 0 },
};

const finish_info finish_infos[FINISHES] = {
#define DUET_FINISHED(name, pattern, vendor, act, pooled, doc) [FINISH_##name] = { #name, doc, OP_##vendor, OP_##act, pooled },
#include "fused.def"
};

/* ops.c - the facts of the operators and of finished steps, from their rows. */
#include "backend.h"

_Static_assert(OPS_ALL <= 255, "nodes, values and instructions store an operator in 8 bits");

const op_info op_infos[OPS_ALL] = {
#define MAP_ROW(name, arity, flags, doc)    [OP_##name] = { #name, doc, KIND_MAP, arity, flags },
#define REDUCE_ROW(name, arity, flags, doc) [OP_##name] = { #name, doc, KIND_REDUCE, arity, flags },
#define DUET_MAP1(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 1, (flags) | OP_FLOATS, doc)
#define DUET_MAP2(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 2, (flags) | OP_FLOATS, doc)
#define DUET_MAP3(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 3, (flags) | OP_FLOATS, doc)
#define DUET_ANY1(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 1, (flags) | NUMERIC, doc)
#define DUET_ANY2(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 2, (flags) | NUMERIC, doc)
#define DUET_ANY3(name, formula, oracle, domain, ulp, flags, known, doc)                                     \
    MAP_ROW(name, 3, (flags) | NUMERIC, doc)
#define DUET_INT1(name, formula, oracle, domain, flags, known, doc)                                          \
    MAP_ROW(name, 1, (flags) | OP_INTEGERS, doc)
#define DUET_INT2(name, formula, oracle, domain, flags, known, doc)                                          \
    MAP_ROW(name, 2, (flags) | OP_INTEGERS, doc)
#define DUET_FOLD1(name, start, take, join, epilogue, needs, oracle, terms, doc)                             \
    REDUCE_ROW(name, 1, OP_FLOATS, doc)
#define DUET_FOLD2(name, start, take, join, epilogue, needs, oracle, terms, doc)                             \
    REDUCE_ROW(name, 2, OP_FLOATS, doc)
#define DUET_ANY_FOLD1(name, start, take, join, epilogue, needs, oracle, terms, doc)                         \
    REDUCE_ROW(name, 1, NUMERIC | DUET_BOOLS, doc)
#define DUET_ANY_FOLD2(name, start, take, join, epilogue, needs, oracle, terms, doc)                         \
    REDUCE_ROW(name, 2, NUMERIC | DUET_BOOLS, doc)
#define DUET_TRUTH1(name, start, take, join, epilogue, needs, oracle, terms, doc)                            \
    REDUCE_ROW(name, 1, NUMERIC | DUET_BOOLS | DUET_TRUTH, doc)
#define DUET_MOMENT1(name, take, close, join, epilogue, needs, oracle, terms, doc)                           \
    REDUCE_ROW(name, 1, OP_FLOATS, doc)
#define DUET_PLACE1(name, better, needs, oracle, doc)                                                        \
    REDUCE_ROW(name, 1, NUMERIC | DUET_BOOLS | OP_GIVES_INDEX, doc)
#define NUMERIC (OP_FLOATS | OP_INTEGERS)
#define DUET_DEF1(name, options, needs, shape, value, terms, doc)                                            \
    [OP_##name] = { #name, doc, KIND_DEF, 1, OP_FLOATS },
#define DUET_DEF2(name, options, needs, shape, value, terms, doc)                                            \
    [OP_##name] = { #name, doc, KIND_DEF, 2, OP_FLOATS },
#define DUET_NUMBERS1(name, options, needs, shape, value, terms, doc)                                        \
    [OP_##name] = { #name, doc, KIND_DEF, 1, NUMERIC },
#define DUET_NUMBERS2(name, options, needs, shape, value, terms, doc)                                        \
    [OP_##name] = { #name, doc, KIND_DEF, 2, NUMERIC },
#define DUET_EVERY1(name, options, needs, shape, value, terms, doc)                                          \
    [OP_##name] = { #name, doc, KIND_DEF, 1, NUMERIC | DUET_BOOLS },
#define DUET_EVERY2(name, options, needs, shape, value, terms, doc)                                          \
    [OP_##name] = { #name, doc, KIND_DEF, 2, NUMERIC | DUET_BOOLS },
#define DUET_CALL(name, arity, types, doc)                  [OP_##name] = { #name, doc, KIND_DEF, arity, types },
#define DUET_CALL1(name, options, types, needs, shape, doc) DUET_CALL(name, 1, TYPES_##types, doc)
#define DUET_CALL2(name, options, types, needs, shape, doc) DUET_CALL(name, 2, TYPES_##types, doc)
#define DUET_CALL3(name, options, types, needs, shape, doc) DUET_CALL(name, 3, TYPES_##types, doc)
#include <duet/ops.def>
    [OP_collective] = { "collective", "elements move between ranks", KIND_DEF, 2, OP_ANY_TYPES },
    [OP_LEAF] = { "leaf", "a matrix", KIND_LEAF, 0, 0 },
    [OP_NUMBER] = { "number", "a number", KIND_LEAF, 0, 0 },
    [OP_HOLE] = { "hole", "any operand", KIND_LEAF, 0, 0 },
    [OP_HOLE_NUMBER] = { "hole_number", "any number", KIND_LEAF, 0, 0 },
    [OP_LOAD] = { "load", "accumulator = operand", KIND_LEAF, 1, 0 },
    [OP_SAVE] = { "save", "slot = accumulator", KIND_LEAF, 1, 0 },
    [OP_STORE] = { "store", "output = accumulator", KIND_LEAF, 1, 0 },
    [OP_VIEW] = { "view", "elements of a value in memory", KIND_LEAF, 1, 0 },
    [OP_WRAP] = { "wrap", "accumulator = operand within a narrower integer type", KIND_LEAF, 1, 0 },
};

const uint8_t op_complex[OPS] = {
#define DUET_CALL2(name, options, types, ...)                                                                \
    [OP_##name] = (TYPES_##types) & OP_BILINEAR ? COMPLEX_SAME : COMPLEX_NONE,
#include <duet/ops.def>
#define DUET_OF_COMPLEX(name, gives) [OP_##name] = COMPLEX_##gives,
#define DUET_OF_WHOLE                DUET_OF_COMPLEX
#include "complex.def"
};

const epilogue_info epilogue_infos[FINISHES] = {
#define DUET_FINISHED(name, pattern, vendor, act, pooled, doc)                                               \
    [EPILOGUE_##name] = { #name, doc, OP_##vendor, OP_##act, pooled },
#include "fused.def"
};

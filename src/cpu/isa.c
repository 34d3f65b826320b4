/* isa.c - the choice of an instruction set, and the functions that are compiled for each of them. */
#include "cpu.h"
#include "cpu_kernels.h"
#include "dtype.h"
#include "move_program.h"
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Which instruction sets were built, besides the portable code: -Disa. */
#ifdef BUILT_avx2
#define ROW_avx2(row, type) row(type, avx2)
#else
#define BUILT_avx2 false
#define ROW_avx2(row, type)
#endif
#ifdef BUILT_avx512
#define ROW_avx512(row, type) row(type, avx512)
#else
#define BUILT_avx512 false
#define ROW_avx512(row, type)
#endif
#define EACH_ISA(row, type) row(type, portable) ROW_avx2(row, type) ROW_avx512(row, type)
enum isa { ISA_portable, ISA_avx2, ISA_avx512, ISAS };
static const char *const isa_names[ISAS] = {
    [ISA_portable] = "portable", [ISA_avx2] = "avx2", [ISA_avx512] = "avx512"
};
static const bool is_built[ISAS] = {
    [ISA_portable] = true, [ISA_avx2] = BUILT_avx2, [ISA_avx512] = BUILT_avx512
};

/* ---- the instruction set ---- */

static int isa_used = -1; /* -1: not chosen yet; every thread makes the same choice */

#ifdef __x86_64__
/* clang 14 has no name for this feature. */
static bool has_f16c(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif

static enum isa isa_best(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return ISA_portable;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (wide && is_built[ISA_avx512]) return ISA_avx512;
    return is_built[ISA_avx2] ? ISA_avx2 : ISA_portable;
#else
    return ISA_portable;
#endif
}

static __attribute__((cold)) int isa_choose(void)
{
    const char *wanted = getenv("DUET_ISA");
    enum isa best = isa_best();
    for (int i = 0; wanted && i < (int)best; i++)
        if (!strcmp(wanted, isa_names[i])) {
            while (!is_built[i]) i--; /* to the next lower one: portable code always exists */
            best = (enum isa)i;
        }
    __atomic_store_n(&isa_used, (int)best, __ATOMIC_RELAXED);
    return (int)best;
}

static enum isa isa(void)
{
    int used = __atomic_load_n(&isa_used, __ATOMIC_RELAXED);
    if (unlikely(used < 0)) used = isa_choose();
    return (enum isa)used;
}

const char *cpu_isa(void) { return isa_names[isa()]; }

const char *cpu_choose_isa(void)
{
    isa_choose();
    return cpu_isa();
}

/* ---- the functions, by element type and instruction set ---- */

#define DECLARE(type, isa)                                                                                   \
    run_function run_program_##type##_##isa, run_reduce_##type##_##isa, run_softmax_##type##_##isa,          \
        run_norm_##type##_##isa, run_pool2d_##type##_##isa, run_random_##type##_##isa;                       \
    size_function reduce_memory_##type##_##isa;
#define DECLARE_INTEGER(type, isa)                                                                           \
    run_function run_program_##type##_##isa, run_reduce_##type##_##isa;                                      \
    size_function reduce_memory_##type##_##isa;
#define DECLARE_RANDOM(type, isa)     run_function run_random_##type##_##isa;
#define DUET_DTYPE(NAME, name, ...)   EACH_ISA(DECLARE, name)
#define DUET_INTEGER(NAME, name, ...) EACH_ISA(DECLARE_RANDOM, name)
#include <duet/dtype.def>
EACH_ISA(DECLARE_INTEGER, i64)
EACH_ISA(DECLARE_INTEGER, u64)

#define FUNCTIONS_float(type, isa)                                                                           \
    [ISA_##isa] = { run_program_##type##_##isa,  run_reduce_##type##_##isa, run_softmax_##type##_##isa,      \
                    run_norm_##type##_##isa,     run_pool2d_##type##_##isa, run_random_##type##_##isa,       \
                    reduce_memory_##type##_##isa },
#define FUNCTIONS_i64(type, isa)                                                                             \
    [ISA_##isa] = { .program = run_program_i64_##isa,                                                        \
                    .reduction = run_reduce_i64_##isa,                                                       \
                    .random = run_random_i64_##isa,                                                          \
                    .reduction_scratch = reduce_memory_i64_##isa },
#define FUNCTIONS_u64(type, isa)                                                                             \
    [ISA_##isa] = { .program = run_program_u64_##isa,                                                        \
                    .reduction = run_reduce_u64_##isa,                                                       \
                    .reduction_scratch = reduce_memory_u64_##isa },
#define FUNCTIONS_moves(type, isa) [ISA_##isa] = { .program = run_move_program },
static const isa_functions table[DUET_DTYPE_COUNT][ISAS] = {
#define DUET_DTYPE(NAME, name, ...) [DUET_##NAME] = { EACH_ISA(FUNCTIONS_float, name) },
#define DUET_HALF(NAME, ...)        [DUET_##NAME] = { EACH_ISA(FUNCTIONS_moves, ) },
#define DUET_NARROW                 DUET_HALF
#define DUET_COMPLEX                DUET_HALF
#include <duet/dtype.def>
    [DUET_I64] = { EACH_ISA(FUNCTIONS_i64, ) },
    [DUET_U64] = { EACH_ISA(FUNCTIONS_u64, ) },
};

const isa_functions *isa_functions_of(duet_dtype type) { return &table[type][isa()]; }

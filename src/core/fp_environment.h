/* fp_environment.h - the floating-point environment in which the library computes: rounding to nearest,
 * subnormal numbers kept, no traps. The caller's may be another: programs linked with -ffast-math flush
 * subnormal numbers, others round upward or trap on a division by zero. Functions that compute declare
 *
 *     IN_DEFAULT_FP_ENVIRONMENT;
 *
 * At the end of the block the caller's environment returns, with the exception flags that it had. Threads of
 * OpenMP have environments of their own. */
#ifndef FP_ENVIRONMENT_H
#define FP_ENVIRONMENT_H

#include "compiler.h"
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>

/* The registers of a processor. The first function returns the control bits and the flags, or what there
 * is of them; fp_is_default says whether the control bits are those that the library needs. */
#if defined __x86_64__
#include <immintrin.h>
#define FP_FLAGS 0x3fu /* of exceptions that occurred */
static inline uint64_t fp_registers(void) { return _mm_getcsr(); }
#define FP_DEFAULT 0x1f80u
static inline bool fp_is_default(uint64_t r) { return (r & ~FP_FLAGS) == FP_DEFAULT; }
static inline void fp_set_registers(uint64_t r) { _mm_setcsr((uint32_t)r); }
#elif defined __aarch64__
#define FP_DEFAULT 0
static inline uint64_t fp_registers(void)
{
    uint64_t control, flags;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(flags) : : "memory");
    return control << 32 | (flags & 0xffffffffu);
}
static inline bool fp_is_default(uint64_t r) { return r >> 32 == 0; }
static inline void fp_set_registers(uint64_t r)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(r >> 32), "r"(r & 0xffffffffu) : "memory");
}
#else
#define FP_DEFAULT 0
static inline uint64_t fp_registers(void) { return 0; }
static inline bool fp_is_default(uint64_t r) { return false; }
static inline void fp_set_registers(uint64_t r) {}
#endif

/* caller is valid if is_foreign. It includes the x87 unit, which the C library's conversions ask for the
 * direction of rounding. */
typedef struct fp_scope {
    uint64_t registers;
    bool is_foreign, was_foreign; /* was_foreign: the thread's value before */
    fenv_t caller;
} fp_scope;

/* fp_environment.c: the case that the caller's environment differs. */
void fp_enter_foreign(fp_scope *s) __attribute__((cold));
void fp_leave_foreign(const fp_scope *s) __attribute__((cold));

static inline void fp_enter(fp_scope *s)
{
    s->registers = fp_registers();
    s->is_foreign = false;
    if (unlikely(!fp_is_default(s->registers))) fp_enter_foreign(s);
}

static inline void fp_leave(const fp_scope *s)
{
    if (unlikely(s->is_foreign)) fp_leave_foreign(s);
    else if (unlikely(fp_registers() != s->registers)) fp_set_registers(s->registers);
}

#define IN_DEFAULT_FP_ENVIRONMENT                                                                            \
    __attribute__((cleanup(fp_leave))) fp_scope fp_before;                                                   \
    fp_enter(&fp_before)

#endif

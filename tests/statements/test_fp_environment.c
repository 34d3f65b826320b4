/* test_fp_environment.c - calls of a thread whose floating-point environment is not the default one: it
 * traps, flushes subnormal numbers, or rounds upward. Every call of every_call.h gives the same bits as in
 * the default environment, with one thread and with several, raises no signal, and leaves the caller's
 * environment and its exception flags as they were. */
#define _GNU_SOURCE
#include "every_outcome.h"
#include <fenv.h>
#include <signal.h>

#if defined __x86_64__
#include <immintrin.h>
static unsigned control_bits(void) { return _mm_getcsr(); }
static void flush_subnormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#elif defined __aarch64__
static unsigned control_bits(void)
{
    unsigned long r;
    __asm__ volatile("mrs %0, fpcr" : "=r"(r));
    return (unsigned)r;
}
static void flush_subnormals(void)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)control_bits() | 1ul << 24));
}
#else
static unsigned control_bits(void) { return (unsigned)fegetround(); }
static void flush_subnormals(void) {}
#endif

static void trap(void)
{
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
}
static void round_upward(void) { fesetround(FE_UPWARD); }

static const struct {
    const char *name;
    void (*enter)(void);
} environments[] = { { "traps", trap },
                     { "subnormal numbers flushed", flush_subnormals },
                     { "rounding upward", round_upward } };

static void on_signal(int number) { end_by_signal("# a floating-point exception was raised by "); }

static void (*entered)(void); /* how the call's environment is entered, or NULL */

static duet_status in_environment(const call *c, duet_matrix *const *m, duet_matrix *to)
{
    fenv_t before;
    fegetenv(&before);
    if (entered) entered();
    const unsigned bits = control_bits();
    const duet_status s = make_call(c, m, to);
    const unsigned after = control_bits();
    fesetenv(&before);
    CHECK(after == bits, "%s: the environment is %x, not %x", c->name, after, bits);
    return s;
}

static outcome run(const call *c, duet_matrix *const *m, void (*enter)(void))
{
    entered = enter;
    return outcome_of(c, m, in_environment);
}

static void in_each_environment(const call *c, duet_matrix *const *m, const char *threads)
{
    outcome plain = run(c, m, NULL);
    for (int e = 0; e < LENGTH(environments); e++) {
        outcome other = run(c, m, environments[e].enter);
        CHECK(plain.status == other.status, "%s, %s, %s: status %d, not %d: %s", c->name,
              environments[e].name, threads, other.status, plain.status, duet_error());
        CHECK(same_outcome(&plain, &other), "%s, %s, %s: other bits", c->name, environments[e].name, threads);
        free_outcome(&other);
    }
    free_outcome(&plain);
}

static void test_call(const call *c, bool share)
{
    guess g;
    duet_dtype t;
    duet_matrix *m[MATRICES] = { 0 };
    running = c->name;
    if (!guessed(c, &g, &t, share) || !CHECK(guess_take(m, c, &g, t), "%s", duet_error())) return;
    for (int extreme = 0; extreme < 2; extreme++) {
        for (int k = 0; k < c->operands; k++) fill(m[k], extreme);
        for (int threads = 0; threads < 2; threads++) {
            (void)duet_set_threads(!threads);
            DUET_ON(DUET_CPU) in_each_environment(c, m, threads ? "all threads" : "one thread");
        }
    }
    guess_give(m);
}

/* Numbers that are computed while a formula is built. */
static void test_constants(void)
{
    for (int e = 0; e < LENGTH(environments); e++) {
        double got[2];
        fenv_t before;
        fegetenv(&before);
        for (int k = 0; k < 2; k++) {
            if (k) environments[e].enter();
            duet_matrix *m = duet_full(DUET_F64, duet_div(duet_add(1, 1e-300), 3), 1);
            const double *p = duet_read_f64(m);
            fesetenv(&before);
            memcpy(&got[k], p, sizeof got[k]);
            duet_free(&m);
        }
        CHECK(!memcmp(&got[0], &got[1], sizeof *got), "%s", environments[e].name);
    }
    tap_point("constants");
}

/* Exception flags of the caller stay as they are. */
static void test_flags(void)
{
    duet_matrix *m = duet_full(DUET_F32, 0, 4);
    feclearexcept(FE_ALL_EXCEPT);
    CHECK(duet_set(m, duet_div(m, m)) == DUET_OK, "%s", duet_error());
    CHECK(fetestexcept(FE_ALL_EXCEPT) == 0, "a statement raised %x", fetestexcept(FE_ALL_EXCEPT));
    feraiseexcept(FE_OVERFLOW);
    CHECK(duet_set(m, 1) == DUET_OK, "%s", duet_error());
    CHECK(fetestexcept(FE_OVERFLOW) != 0, "a statement cleared a flag");
    feclearexcept(FE_ALL_EXCEPT);
    duet_free(&m);
    tap_point("exception flags");
}

int main(void)
{
    signal(SIGFPE, on_signal);
    test_flags();
    test_constants();
    test_every_call(test_call);
    return tap_end();
}

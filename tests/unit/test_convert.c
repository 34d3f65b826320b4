/* test_convert.c - conversions between element types: every pair against its definition, with all
 * values of the small types. */
#include "convert.h"
#include "element.h"
#include "quick.h"
#include "tap.h"
#include <math.h>

static uint64_t seed = 88172645463325252u;
static uint64_t any_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* ---- the pairs ---- */

typedef void function(void *to, const void *from);

#define PAIR(C, T, name)                                                                                     \
    static void read_one_##C##name(void *to, const void *from)                                               \
    {                                                                                                        \
        *(T *)to = read_##C##name(*(const stored##name *)from);                                              \
    }                                                                                                        \
    static void write_one_##C##name(void *to, const void *from)                                              \
    {                                                                                                        \
        *(stored##name *)to = write_##C##name(*(const T *)from);                                             \
    }
#define WRAP(C, T, name)                                                                                     \
    static void wrap_one_##C##name(void *to, const void *from)                                               \
    {                                                                                                        \
        *(T *)to = wrap_##C##name(*(const T *)from);                                                         \
    }
#define ALL(name)                                                                                            \
    PAIR(f32, float, name) PAIR(f64, double, name) PAIR(i64, int64_t, name) PAIR(u64, uint64_t, name)
#define DUET_DTYPE(NAME, name, ...)   ALL(_##name)
#define DUET_HALF                     DUET_DTYPE
#define DUET_INTEGER(NAME, name, ...) ALL(_##name) WRAP(i64, int64_t, _##name) WRAP(u64, uint64_t, _##name)
#define DUET_NARROW                   DUET_INTEGER
#include <duet/dtype.def>

static const struct pair {
    duet_dtype computed, stored;
    function *read, *write, *wrap;
} pairs[] = {
#define ENTRY(C, c, NAME, name, wrap)                                                                        \
    { DUET_##C, DUET_##NAME, read_one_##c##name, write_one_##c##name, wrap },
#define FLOATS(NAME, name) ENTRY(F32, f32, NAME, name, NULL) ENTRY(F64, f64, NAME, name, NULL)
#define DUET_DTYPE(NAME, name, ...)                                                                          \
    FLOATS(NAME, _##name) ENTRY(I64, i64, NAME, _##name, NULL) ENTRY(U64, u64, NAME, _##name, NULL)
#define DUET_HALF DUET_DTYPE
#define DUET_INTEGER(NAME, name, ...)                                                                        \
    FLOATS(NAME, _##name)                                                                                    \
    ENTRY(I64, i64, NAME, _##name, wrap_one_i64_##name) ENTRY(U64, u64, NAME, _##name, wrap_one_u64_##name)
#define DUET_NARROW DUET_INTEGER
#include <duet/dtype.def>
};
#define PAIRS ((int)(sizeof pairs / sizeof *pairs))

/* ---- values ---- */

static void check(duet_dtype from, duet_dtype to, function *f, const uint64_t *bits)
{
    uint64_t made = 0;
    const long double x = element_value(from, bits, 0), want = converted(from, to, x);
    f(&made, bits);
    CHECK(same_value(element_value(to, &made, 0), want), "%s %.21Lg is %.21Lg in %s, not %.21Lg",
          dtypes[from].name, x, element_value(to, &made, 0), dtypes[to].name, want);
}

static void check_wrap(const struct pair *p, const uint64_t *bits)
{
    uint64_t made = 0;
    const long double x = element_value(p->computed, bits, 0), narrow = converted(p->computed, p->stored, x);
    p->wrap(&made, bits);
    CHECK(same_value(element_value(p->computed, &made, 0), converted(p->stored, p->computed, narrow)),
          "%s %.21Lg wrapped to %s", dtypes[p->computed].name, x, dtypes[p->stored].name);
}

/* All values of 8 or 16 bits; otherwise random bits of any length. A bool is a byte. */
static void all_values(duet_dtype t, int trials, void (*each)(const struct pair *p, const uint64_t *bits),
                       const struct pair *p)
{
    const int bits = 8 * (int)dtypes[t].bytes;
    if (bits <= 16) trials = 1 << bits;
    for (int n = 0; n < trials; n++) {
        const uint64_t any = any_bits() >> (n % 64) << (n / 64 % 8);
        uint64_t b;
        if (bits <= 16) b = (uint64_t)n;
        else if (is_floating(t) && n % 3) b = any_bits();
        else b = n % 2 ? any : -any;
        each(p, &(uint64_t){ b & (UINT64_MAX >> (64 - bits)) });
    }
}

static void read_one(const struct pair *p, const uint64_t *bits)
{
    check(p->stored, p->computed, p->read, bits);
}
static void write_one(const struct pair *p, const uint64_t *bits)
{
    check(p->computed, p->stored, p->write, bits);
    if (p->wrap) check_wrap(p, bits);
}

/* The nearest value of the type, and its neighbours. */
static void write_near(const struct pair *p, long double x)
{
    const duet_dtype t = p->computed;
    uint64_t bits = 0;
    if (is_floating(t)) element_put(t, &bits, 0, converted(DUET_F64, t, x));
    else if (fabsl(x) < 0x1p62L) element_put(t, &bits, 0, converted(DUET_I64, t, rintl(x)));
    for (int by = -1; by <= 1; by++)
        write_one(p, &(uint64_t){ (bits + (uint64_t)by) & UINT64_MAX >> (64 - 8 * dtypes[t].bytes) });
}

/* Midpoints between neighbouring halves, and the limits of integers. */
static void write_ties(const struct pair *p)
{
    for (int h = 0; h < 65535 && is_floating(p->stored) && dtypes[p->stored].bytes == 2; h++) {
        const uint16_t two[2] = { (uint16_t)h, (uint16_t)(h + 1) };
        const long double a = element_value(p->stored, two, 0), b = element_value(p->stored, two, 1);
        if (!isnan(a) && isfinite(b)) {
            write_near(p, (a + b) / 2);
            write_near(p, a);
        }
    }
    write_near(p, 65520);
    write_near(p, 0x1.ffp127);
    write_near(p, -0x1.ffp127);
    write_near(p, 0x1.ffffffp127);
    for (int power = -150; power < 130; power++)
        for (int half = -4; half <= 4; half++) {
            write_near(p, ldexpl(1, power) + half / 2.0L);
            write_near(p, -ldexpl(1, power) + half / 2.0L);
            write_near(p, ldexpl(8 + half, power));
        }
}

static void test_special(const struct pair *p)
{
    static const long double values[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 0.5, -0.5, 1e30, -1e30 };
    for (int n = 0; n < (int)(sizeof values / sizeof *values) && is_floating(p->computed); n++) {
        uint64_t bits = 0;
        element_put(p->computed, &bits, 0, converted(DUET_F64, p->computed, values[n]));
        write_one(p, &bits);
    }
}

/* ---- against the compiler ---- */

#ifdef __FLT16_MANT_DIG__
static void test_hardware(int trials)
{
    for (int n = 0; n < trials; n++) {
        const uint64_t any = any_bits();
        double d;
        memcpy(&d, &any, sizeof d);
        if (n % 2) d = ldexp((double)(int64_t)any, -(n / 2 % 90) - 30);
        const float s = (float)d;
        const _Float16 want[2] = { (_Float16)s, (_Float16)d };
        const stored_f16 got[2] = { write_f32_f16(s), write_f64_f16(d) };
        for (int k = 0; k < 2; k++)
            CHECK(same_value(element_value(DUET_F16, got, k), (long double)want[k]),
                  "%a converted to f16 is %a", d, (double)want[k]);
    }
    for (int h = 0; h < 65536; h++) {
        const uint16_t bits = (uint16_t)h;
        _Float16 of;
        memcpy(&of, &bits, sizeof of);
        CHECK(same_value(read_f32_f16(bits), (long double)of), "f16 %#x converted to f32 is wrong", h);
    }
    tap_point("f16 conversions equal those of the compiler");
}
#else
static void test_hardware(int trials) {}
#endif

int main(int argc, char **argv)
{
    const int trials = is_quick(argc, argv) ? 20000 : 200000;
    for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
        char name[40];
        all_values(p->stored, trials, read_one, p);
        all_values(p->computed, trials, write_one, p);
        write_ties(p);
        test_special(p);
        snprintf(name, sizeof name, "%s and %s", dtypes[p->computed].name, dtypes[p->stored].name);
        tap_point(name);
    }
    test_hardware(10 * trials);
    return tap_end();
}

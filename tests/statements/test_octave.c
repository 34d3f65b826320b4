/* test_octave.c [PROGRAM] - duet_print_octave: known texts, digits, and, if Octave is installed, what it
 * reads. PROGRAM is by default octave-cli. It gets random matrices of every type and shape, special numbers
 * included, and must return the class, the shape and the bits of each. */
#define _GNU_SOURCE
#include "comma_locale.h"
#include "common.h"
#include "dtype.h"
#include <complex.h>
#include <math.h>
#include <unistd.h>

static rng gen;

static char *octave_text(const duet_matrix *m)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    CHECK(duet_print_octave(f, m) == DUET_OK, "%s", duet_error());
    fclose(f);
    return text;
}

/* Frees m. */
static void prints(duet_matrix *m, const char *want)
{
    char *text = octave_text(m);
    CHECK(!strcmp(text, want), "\"%s\", not \"%s\"", text, want);
    free(text);
    duet_free(&m);
}

static duet_matrix *of_i64(duet_dtype type, int rank, const int64_t *size, const int64_t *x)
{
    duet_matrix *all = duet_from_array_shape(x, DUET_I64, rank, size), *m = duet_eval(duet_cast(all, type));
    duet_free(&all);
    return m;
}

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define LIST(...)                                                                                            \
    (const int64_t[]) { __VA_ARGS__ }

static duet_matrix *of_f64(double x) { return duet_from_array(&x, DUET_F64, 1); }
static duet_matrix *of_f32(float x) { return duet_from_array(&x, DUET_F32, 1); }
static duet_matrix *of_c128(int n, const double *parts) { return duet_from_array(parts, DUET_C128, n); }

static void known(void)
{
    const bool comma = comma_locale_begin();
    prints(of_i64(DUET_F64, SHAPE(2, 2), LIST(1, 2, 3, 4)), "[1, 2; 3, 4]");
    prints(of_i64(DUET_F32, SHAPE(2, 2), LIST(1, 2, 3, 4)), "single([1, 2; 3, 4])");
    prints(of_i64(DUET_BF16, SHAPE(2), LIST(1, -2)), "single([1, -2])");
    prints(of_i64(DUET_I32, SHAPE(1, 3), LIST(1, -2, 3)), "int32([1, -2, 3])");
    prints(of_i64(DUET_U8, SHAPE(3, 1), LIST(1, 2, 255)), "uint8([1; 2; 255])");
    prints(of_i64(DUET_I64, SHAPE(2), LIST(1, -((int64_t)1 << 53))), "int64([1, -9007199254740992])");
    prints(of_i64(DUET_I64, SHAPE(2), LIST(((int64_t)1 << 53) + 1, -1)),
           "(int64([2097152, -1]) * int64(4294967296) + int64([1, 4294967295]))");
    prints(of_i64(DUET_U64, SHAPE(1), LIST(-1)),
           "(uint64(4294967295) * uint64(4294967296) + uint64(4294967295))");
    prints(of_i64(DUET_BOOL, SHAPE(2, 2), LIST(1, 0, 0, 1)), "logical([1, 0; 0, 1])");
    prints(of_i64(DUET_BOOL, SHAPE(1), LIST(1)), "true");
    prints(of_i64(DUET_F64, SHAPE(2, 1, 3), LIST(1, 2, 3, 4, 5, 6)), "reshape([1, 4, 2, 5, 3, 6], 2, 1, 3)");
    prints(of_i64(DUET_I16, SHAPE(1, 1, 2), LIST(1, 2)), "int16(reshape([1, 2], 1, 1, 2))");
    prints(duet_full(DUET_F64, 2.5), "2.5");
    prints(of_f64(0.1), "0.1");
    prints(of_f64(-0.0), "-0");
    prints(of_f64(1e300), "1e+300");
    prints(of_f64(NAN), "NaN");
    prints(of_f64(-INFINITY), "-Inf");
    prints(of_f32(0.1f), "single(0.1)");
    prints(of_f32(INFINITY), "single(Inf)");
    prints(of_f64(1.0 / 3), "0.3333333333333333");
    prints(duet_new(DUET_F64, 0, 3), "zeros(0, 3)");
    prints(duet_new(DUET_F32, 0), "zeros(1, 0, 'single')");
    prints(duet_new(DUET_I8, 2, 0, 3), "zeros(2, 0, 3, 'int8')");
    prints(duet_new(DUET_BOOL, 3, 0), "false(3, 0)");
    prints(duet_new(DUET_C64, 3, 0), "complex(zeros(3, 0, 'single'))");
    prints(of_c128(1, (const double[]){ 1, 2 }), "1+2i");
    prints(of_c128(2, (const double[]){ 1, 2, -3, -4.5 }), "[1+2i, -3-4.5i]");
    prints(of_c128(2, (const double[]){ 1, 0, 2, 0 }), "complex([1, 2], [0, 0])");
    prints(of_c128(2, (const double[]){ 1, 1, NAN, -INFINITY }), "complex([1, NaN], [1, -Inf])");
    prints(of_c128(1, (const double[]){ -0.0, 1 }), "complex(-0, 1)");
    const float parts[] = { 0.1f, 2 };
    prints(duet_from_array(parts, DUET_C64, 1), "single(0.1+2i)");
    duet_matrix *m = of_i64(DUET_F64, SHAPE(2, 3), LIST(1, 2, 3, 4, 5, 6));
    prints(duet_transposed(m), "[1, 4; 2, 5; 3, 6]");
    prints(duet_flipped(m, 1), "[3, 2, 1; 6, 5, 4]");
    prints(duet_stepped(m, 1, 0, DUET_OPEN, 2), "[1, 3; 4, 6]");
    duet_free(&m);
    if (comma) comma_locale_end();
    tap_point(comma ? "known texts, with a decimal comma" : "known texts");
}

static void refused(void)
{
    duet_matrix *m = duet_ones(DUET_F64, 2), *none = NULL;
    FILE *nothing = NULL, *full = fopen("/dev/full", "w"), *f = tmpfile();
    setvbuf(full, NULL, _IONBF, 0);
    CHECK(duet_print_octave(nothing, m) == DUET_BAD_ARGUMENT && strstr(duet_error(), "out must not be NULL"),
          "%s", duet_error());
    CHECK(duet_print_octave(f, none) == DUET_BAD_ARGUMENT && strstr(duet_error(), "test_octave.c:"), "%s",
          duet_error());
    CHECK(duet_print_octave(full, m) == DUET_IO_ERROR, "%s", duet_error());
    CHECK(ftell(f) == 0, "a failed call has printed");
    fclose(full);
    fclose(f);
    duet_free(&m);
    tap_point("errors");
}

/* The number after a bracket or parenthesis. */
static double value_in(const char *text, const char *end)
{
    const char *p = end;
    while (p > text && !strchr("([ ", p[-1])) p--;
    return strtod(p, NULL);
}

/* As few digits as possible, by trying one less; through f64, as Octave reads it. */
static void digits(void)
{
    for (int k = 0; k < 20000; k++) {
        char shorter[40];
        union {
            uint32_t bits;
            float f;
        } x = { (uint32_t)rng_below(&gen, (int64_t)1 << 32) };
        union {
            uint64_t bits;
            double f;
        } y = { (uint64_t)rng_below(&gen, (int64_t)1 << 32) << 32 |
                (uint64_t)rng_below(&gen, (int64_t)1 << 32) };
        if (!isfinite(x.f) || !isfinite(y.f)) continue;
        duet_matrix *m = of_f32(x.f), *n = of_f64(y.f);
        char *a = octave_text(m), *b = octave_text(n);
        CHECK((float)value_in(a, a + strlen(a) - 1) == x.f, "%a is printed as %s", (double)x.f, a);
        CHECK(strtod(b, NULL) == y.f, "%a is printed as %s", y.f, b);
        int count = 0;
        for (const char *p = b; *p && *p != 'e'; p++) count += *p >= '0' && *p <= '9';
        snprintf(shorter, sizeof shorter, "%.*e", count > 2 ? count - 2 : 0, y.f);
        CHECK(count < 3 || strtod(shorter, NULL) != y.f || b[0] == '0' || strstr(b, "-0."), "%s: %s would do",
              b, shorter);
        free(a);
        free(b);
        duet_free(&m);
        duet_free(&n);
    }
    tap_point("digits");
}

/* ---- what Octave reads ---- */

static const char *class_of(duet_dtype type)
{
    static char text[16];
    switch (type) {
    case DUET_F64:
    case DUET_C128: return "double";
    case DUET_F16:
    case DUET_BF16:
    case DUET_F32:
    case DUET_C64: return "single";
    case DUET_BOOL: return "logical";
    default:
        snprintf(text, sizeof text, "%sint%d", dtypes[type].name[0] == 'u' ? "u" : "",
                 (int)dtypes[type].bytes * 8);
        return text;
    }
}

static bool is_complex(duet_dtype t) { return t == DUET_C64 || t == DUET_C128; }

static duet_matrix *draw_matrix(int k)
{
    static const double strange[] = {
        0, -0.0, NAN, INFINITY, -INFINITY, 5e-324, 1.7e308, 1e-45, 3e38, 65504
    };
    const duet_dtype type = (duet_dtype)(k % DUET_DTYPE_COUNT);
    int64_t size[4];
    const int rank = (int)rng_below(&gen, 5);
    for (int a = 0; a < rank; a++) size[a] = rng_chance(&gen, 5) ? 0 : 1 + rng_below(&gen, 4);
    duet_matrix *m = duet_new_shape(type, rank, size);
    const int special = (int)rng_below(&gen, 3) * 20;
    char *p = duet_overwrite(m);
    const size_t each = dtypes[type].bytes;
    for (int64_t i = 0; i < duet_count(m); i++)
        for (int part = 0; part < 1 + is_complex(type); part++) {
            const bool is_strange = rng_chance(&gen, special);
            const double v = is_strange ? strange[rng_below(&gen, 10)]
                                        : rng_real(&gen, -1, 1) * exp(rng_real(&gen, -9, 9));
            if (type == DUET_F64 || type == DUET_C128)
                ((double *)p)[i * (1 + (type == DUET_C128)) + part] = v;
            else if (type == DUET_F32 || type == DUET_C64)
                ((float *)p)[i * (1 + (type == DUET_C64)) + part] = (float)v;
            else
                for (size_t b = 0; b < each; b++)
                    p[(size_t)i * each + b] = (char)(type == DUET_BOOL ? rng_below(&gen, 2)
                                                     : is_strange      ? -(int)rng_below(&gen, 2)
                                                                       : rng_below(&gen, 256));
        }
    if (!rng_chance(&gen, 30)) return m;
    duet_matrix *t = duet_transposed(m);
    duet_free(&m);
    return t;
}

/* An Octave program that checks the class, size and complexness of each matrix, and writes its bytes. */
static void write_program(FILE *f, duet_matrix *const *m, int count, const char *out)
{
    fprintf(f,
            "1;\nfunction put(f, k, x, name, sz, cplx)\n"
            "  if (!strcmp(class(x), name) || !isequal(size(x), sz) || iscomplex(x) != cplx)\n"
            "    printf('# matrix %%d: class %%s, complex %%d, size %%s\\n', k, class(x), iscomplex(x), "
            "mat2str(size(x)));\n  end\n"
            "  if (islogical(x)) x = uint8(x); end\n"
            "  fwrite(f, real(x), class(x));\n  if (cplx) fwrite(f, imag(x), class(x)); end\nend\n"
            "f = fopen('%s', 'wb');\n",
            out);
    for (int k = 0; k < count; k++) {
        fprintf(f, "put(f, %d, ", k);
        CHECK(duet_print_octave(f, m[k]) == DUET_OK, "%s", duet_error());
        fprintf(f, ", '%s', size(zeros(", class_of(duet_type(m[k])));
        if (duet_rank(m[k]) == 0) fprintf(f, "1");
        if (duet_rank(m[k]) == 1) fprintf(f, "1, ");
        for (int a = 0; a < duet_rank(m[k]); a++) fprintf(f, "%s%d", a ? ", " : "", (int)duet_size(m[k], a));
        fprintf(f, ")), %d);\n", is_complex(duet_type(m[k])));
    }
    fprintf(f, "fclose(f);\n");
}

/* An element or a part of one, as Octave stores it. */
static size_t as_read(duet_dtype type, const char *p, int part, char *to)
{
    uint16_t half;
    float v = 0;
    switch (type) {
    case DUET_C64: memcpy(to, p + part * 4, 4); return 4;
    case DUET_C128: memcpy(to, p + part * 8, 8); return 8;
    case DUET_BF16:
        memcpy(&half, p, 2);
        memcpy(to, (uint16_t[]){ 0, half }, 4);
        return 4;
    case DUET_F16:
        memcpy(&half, p, 2);
        const int e = half >> 10 & 31, f = half & 1023;
        if (e == 31) v = f ? NAN : INFINITY;
        else v = ldexpf((float)(e ? f + 1024 : f), (e ? e : 1) - 25);
        if (half >> 15) v = -v;
        memcpy(to, &v, 4);
        return 4;
    default: memcpy(to, p, dtypes[type].bytes); return dtypes[type].bytes;
    }
}

static bool same_number(const char *a, const char *b, size_t bytes, bool is_float)
{
    float x = 0, y = 0;
    double v = 0, w = 0;
    if (is_float && bytes == 4) memcpy(&x, a, 4), memcpy(&y, b, 4);
    if (is_float && bytes == 8) memcpy(&v, a, 8), memcpy(&w, b, 8);
    return (isnan(x) && isnan(y)) || (isnan(v) && isnan(w)) || !memcmp(a, b, bytes);
}

static void compare(FILE *f, int k, const duet_matrix *m)
{
    const duet_dtype type = duet_type(m);
    const bool is_float = is_complex(type) || dtypes[type].roundoff > 0;
    const char *p = duet_read(m);
    for (int part = 0; part < 1 + is_complex(type); part++) {
        int64_t i[DUET_RANK_MAX] = { 0 };
        for (int64_t n = 0; n < duet_count(m); n++) {
            char want[8], got[8];
            int64_t at = 0;
            for (int a = 0; a < duet_rank(m); a++) at += i[a] * duet_stride(m, a);
            const size_t bytes = as_read(type, p + at * (int64_t)dtypes[type].bytes, part, want);
            const bool has = fread(got, 1, bytes, f) == bytes;
            if (!CHECK(has && same_number(want, got, bytes, is_float), "matrix %d (%s), element %d, part %d",
                       k, dtypes[type].name, (int)n, part)) {
                char *text = octave_text(m);
                printf("# %s\n", text);
                free(text);
                return;
            }
            for (int a = 0; a < duet_rank(m); a++) {
                if (++i[a] < duet_size(m, a)) break;
                i[a] = 0;
            }
        }
    }
}

static void read_by(const char *octave)
{
    enum { COUNT = 1500 };
    static duet_matrix *m[COUNT];
    char folder[] = "/tmp/duet-octave-XXXXXX", program[100], out[100], command[600];
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", octave);
    if (system(command)) {
        printf("ok %d - Octave reads the texts # SKIP %s is not installed\n", ++tap_points, octave);
        return;
    }
    if (!CHECK(mkdtemp(folder) != NULL, "no folder")) return;
    snprintf(program, sizeof program, "%s/program.m", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    for (int k = 0; k < COUNT; k++) m[k] = draw_matrix(k);
    FILE *f = fopen(program, "w");
    write_program(f, m, COUNT, out);
    fclose(f);
    snprintf(command, sizeof command, "%s --norc %s >%s/log 2>&1", octave, program, folder);
    CHECK(system(command) == 0, "%s failed", command);
    snprintf(command, sizeof command, "head -20 %s/log; test ! -s %s/log", folder, folder);
    CHECK(system(command) == 0, "the program has printed something");
    f = fopen(out, "rb");
    for (int k = 0; k < COUNT; k++) {
        if (f && !tap_failures) compare(f, k, m[k]);
        duet_free(&m[k]);
    }
    CHECK(f && fgetc(f) == EOF, "Octave has more elements");
    if (f) fclose(f);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s failed", command);
    tap_point("Octave reads the texts");
}

int main(int argc, char **argv)
{
    gen = rng_new(3);
    known();
    refused();
    digits();
    read_by(argc > 1 && argv[1][0] != '-' ? argv[1] : "octave-cli");
    return tap_end();
}

/* octave.c - prints a matrix as an expression that Octave and MATLAB read. */
#include "c_locale.h"
#include "fp_environment.h"
#include "io.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct octave {
    FILE *out;
    layout at;
    int64_t count;
    const char *p; /* the element whose indices are all 0 */
} octave;

/* Prints an element, or a part of one. */
typedef void put_element(const octave *x, const char *element);

/* ---- numbers ---- */

/* The literal is read as f64 and then converted, so the digits are those that survive both roundings. */
static int single_digits(double v)
{
    char text[40];
    int n = 1;
    for (; n < 9; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, v);
        if ((float)strtod(text, NULL) == (float)v) break;
    }
    return n;
}

static void number_text(duet_dtype type, const void *p, char text[40])
{
    const double v = number_of(type, p);
    if (isnan(v)) strcpy(text, "NaN");
    else if (isinf(v)) strcpy(text, v < 0 ? "-Inf" : "Inf");
    else snprintf(text, 40, "%.*g", type == DUET_F64 ? shortest_digits(type, v) : single_digits(v), v);
}

static void put_number(const octave *x, const char *element)
{
    char text[40];
    const duet_dtype part = type_of_part(x->at.type);
    number_text(part, element, text);
    fputs(text, x->out);
}

static void put_imaginary(const octave *x, const char *element)
{
    put_number(x, element + dtypes[type_of_part(x->at.type)].bytes);
}

static void put_complex(const octave *x, const char *element)
{
    char text[40];
    const duet_dtype part = type_of_part(x->at.type);
    put_number(x, element);
    number_text(part, element + dtypes[part].bytes, text);
    fprintf(x->out, "%s%si", *text == '-' ? "" : "+", text);
}

static void put_integer(const octave *x, const char *element)
{
    char text[32];
    fputs(integer_text(x->at.type, element, text), x->out);
}

static void put_bool(const octave *x, const char *element) { fputs(*element ? "true" : "false", x->out); }

/* The upper 32 bits of an integer of 64 bits, rounded down, and the lower ones. */
static void put_upper(const octave *x, const char *element)
{
    if (x->at.type == DUET_I64) fprintf(x->out, "%lld", (long long)(*(const int64_t *)element >> 32));
    else fprintf(x->out, "%llu", (unsigned long long)(*(const uint64_t *)element >> 32));
}

static void put_lower(const octave *x, const char *element)
{
    fprintf(x->out, "%llu", (unsigned long long)(*(const uint64_t *)element & 0xffffffffu));
}

/* ---- the elements ---- */

static const char *next_along(const octave *x, const char *element, int axis, int64_t n)
{
    return element + n * x->at.stride[axis] * (int64_t)dtypes[x->at.type].bytes;
}

static void put_row(const octave *x, const char *first, put_element *put)
{
    const int axis = x->at.rank - 1;
    for (int64_t j = 0; j < x->at.size[axis]; j++) {
        if (j) fputs(", ", x->out);
        put(x, next_along(x, first, axis, j));
    }
}

/* In Octave's order, in which the first index changes fastest. */
static void put_columns(const octave *x, put_element *put)
{
    int64_t i[DUET_RANK_MAX] = { 0 };
    const char *element = x->p;
    for (int64_t n = 0; n < x->count; n++) {
        if (n) fputs(", ", x->out);
        put(x, element);
        for (int a = 0; a < x->at.rank; a++) {
            element = next_along(x, element, a, 1);
            if (++i[a] < x->at.size[a]) break;
            element = next_along(x, element, a, -i[a]);
            i[a] = 0;
        }
    }
}

static void put_all(const octave *x, put_element *put)
{
    if (x->count == 1) {
        put(x, x->p);
        return;
    }
    fputs(x->at.rank > 2 ? "reshape([" : "[", x->out);
    if (x->at.rank > 2) put_columns(x, put);
    else if (x->at.rank == 1) put_row(x, x->p, put);
    else
        for (int64_t i = 0; i < x->at.size[0]; i++) {
            if (i) fputs("; ", x->out);
            put_row(x, next_along(x, x->p, 0, i), put);
        }
    fputs("]", x->out);
    if (x->at.rank <= 2) return;
    for (int a = 0; a < x->at.rank; a++) fprintf(x->out, ", %lld", (long long)x->at.size[a]);
    fputs(")", x->out);
}

/* Does some element hold? */
typedef bool test_element(const octave *x, const char *element);

static bool any_from(const octave *x, const char *element, int axis, test_element *test)
{
    if (axis == x->at.rank) return test(x, element);
    for (int64_t i = 0; i < x->at.size[axis]; i++)
        if (any_from(x, next_along(x, element, axis, i), axis + 1, test)) return true;
    return false;
}
static bool any(const octave *x, test_element *test) { return any_from(x, x->p, 0, test); }

/* ---- types ---- */

/* The name of Octave's type; "" for f64. */
static const char *class_name(duet_dtype type, char text[16])
{
    const duet_dtype part = type_of_part(type);
    if (part == DUET_F64) return "";
    if (part == DUET_BOOL) return "logical";
    if (type_is_float(part)) return "single";
    snprintf(text, 16, "%sint%d", dtypes[part].name[0] == 'u' ? "u" : "", (int)dtypes[part].bytes * 8);
    return text;
}

static void put_cast(const octave *x, put_element *put)
{
    char text[16];
    const char *name = class_name(x->at.type, text);
    if (*name) fprintf(x->out, "%s(", name);
    put_all(x, put);
    if (*name) fputs(")", x->out);
}

/* Is a part NaN, infinite or -0? Sums and products of such parts have other values. */
static bool is_special(const octave *x, const char *element)
{
    const duet_dtype part = type_of_part(x->at.type);
    for (int k = 0; k < 2; k++) {
        const double v = number_of(part, element + (size_t)k * dtypes[part].bytes);
        if (!isfinite(v) || (v == 0 && signbit(v))) return true;
    }
    return false;
}

static bool is_not_real(const octave *x, const char *element)
{
    const duet_dtype part = type_of_part(x->at.type);
    return number_of(part, element + dtypes[part].bytes) != 0;
}

static void put_all_complex(const octave *x)
{
    if (any(x, is_not_real) && !any(x, is_special)) {
        put_cast(x, put_complex);
        return;
    }
    fputs("complex(", x->out);
    put_cast(x, put_number);
    fputs(", ", x->out);
    put_cast(x, put_imaginary);
    fputs(")", x->out);
}

/* Is it beyond the integers that f64 has? */
static bool is_wide(const octave *x, const char *element)
{
    if (x->at.type == DUET_U64) return *(const uint64_t *)element > (uint64_t)1 << 53;
    const int64_t v = *(const int64_t *)element;
    return v > (int64_t)1 << 53 || v < -((int64_t)1 << 53);
}

static void put_wide(const octave *x)
{
    char text[16];
    fputs("(", x->out);
    put_cast(x, put_upper);
    fprintf(x->out, " * %s(4294967296) + ", class_name(x->at.type, text));
    put_cast(x, put_lower);
    fputs(")", x->out);
}

static void put_zeros(const octave *x)
{
    char text[16];
    const char *name = class_name(x->at.type, text);
    const bool is_complex = type_is_complex(x->at.type);
    fprintf(x->out, "%s%s(", is_complex ? "complex(" : "", x->at.type == DUET_BOOL ? "false" : "zeros");
    if (x->at.rank == 1) fputs("1, ", x->out);
    for (int a = 0; a < x->at.rank; a++) fprintf(x->out, "%s%lld", a ? ", " : "", (long long)x->at.size[a]);
    if (*name && x->at.type != DUET_BOOL) fprintf(x->out, ", '%s'", name);
    fputs(is_complex ? "))" : ")", x->out);
}

static void put_expression(const octave *x)
{
    const duet_dtype type = x->at.type;
    const bool has_64_bits = type == DUET_I64 || type == DUET_U64;
    if (x->count == 0) put_zeros(x);
    else if (type_is_complex(type)) put_all_complex(x);
    else if (type_is_float(type)) put_cast(x, put_number);
    else if (type == DUET_BOOL && x->count == 1) put_bool(x, x->p);
    else if (has_64_bits && any(x, is_wide)) put_wide(x);
    else put_cast(x, put_integer);
}

duet_status(duet_print_octave)(FILE *out, const duet_matrix *m)
{
    const char *who = "duet_print_octave";
    const void *p;
    if (!out) return fail(DUET_BAD_ARGUMENT, "%s: out must not be NULL", who);
    TRY(matrix_check(who, m));
    TRY(elements_of(m, &p));
    const octave x = { out, m->at, m->count, p };
    IN_DEFAULT_FP_ENVIRONMENT;
    const plain_numbers plain = plain_numbers_begin();
    put_expression(&x);
    plain_numbers_end(plain);
    if (ferror(out)) return fail(DUET_IO_ERROR, "%s: the file cannot be written", who);
    return DUET_OK;
}

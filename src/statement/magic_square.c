/* magic_square.c - computes magic squares by the three usual constructions: Siamese, by complements, and
 * LUX from four Siamese squares. */
#include "dtype.h"
#include "matrix.h"
#include "statement.h"
#include "status.h"
#include "thread.h"
#include "view.h"

/* ---- the square: element i, j of n x n ---- */

static int64_t siamese(int64_t n, int64_t i, int64_t j)
{
    const int64_t row = (i + j + 2 + n - (n + 3) / 2) % n, column = (i + 2 * j + 1) % n;
    return n * row + column + 1;
}

static int64_t by_fours(int64_t n, int64_t i, int64_t j)
{
    const int64_t count = i * n + j + 1;
    return (i + 1) % 4 / 2 == (j + 1) % 4 / 2 ? n * n + 1 - count : count;
}

/* Four Siamese squares, where the upper and lower halves of some columns are exchanged: k columns on
 * the left and k - 1 on the right. In the middle row of a half, column k replaces column 0. */
static int64_t by_quarters(int64_t n, int64_t i, int64_t j)
{
    static const int64_t more[2][2] = { { 0, 2 }, { 3, 1 } };
    const int64_t p = n / 2, k = (n - 2) / 4;
    const bool outer = j < k || j > n - k, middle = i % p == k && (j == 0 || j == k);
    const int64_t from = outer != middle ? (i + p) % n : i;
    return siamese(p, from % p, j % p) + more[from >= p][j >= p] * p * p;
}

/* There is no magic square of 2 x 2. MATLAB's result is that of the construction by quarters if no columns
 * are exchanged. */
static int64_t magic(int64_t n, int64_t i, int64_t j)
{
    if (n == 2) return i ? 4 - 2 * j : 1 + 2 * j;
    if (n % 2) return siamese(n, i, j);
    if (n % 4) return by_quarters(n, i, j);
    return by_fours(n, i, j);
}

/* ---- storing it in a matrix ---- */

/* The limit up to which the type represents all integers from 0. */
static double most_of(duet_dtype type)
{
    static const double most[] = {
#define DUET_DTYPE(NAME, name, ctype, bits, roundoff, tiny) [DUET_##NAME] = 1 / (roundoff),
#define DUET_INTEGER(NAME, name, ctype)                     [DUET_##NAME] = 0x1p62,
#define DUET_HALF(NAME, name, roundoff, tiny)               [DUET_##NAME] = 1 / (roundoff),
#define DUET_NARROW(NAME, name, ctype)                                                                       \
    [DUET_##NAME] = (double)((uint64_t)-1 >> (64 - 8 * sizeof(ctype) + ((ctype)-1 < (ctype)1))),
#define DUET_COMPLEX(NAME, name, part) [DUET_##NAME] = MOST_##part,
#define MOST_F32                       0x1p24
#define MOST_F64                       0x1p53
#include <duet/dtype.def>
    };
    return type == DUET_BOOL ? 1 : most[type];
}

/* The bits of a positive integer that the 16-bit floating-point type represents exactly. */
static uint16_t half_of(int64_t v, int fraction, int bias)
{
    const int e = 63 - __builtin_clzll((uint64_t)v);
    const uint64_t behind = (uint64_t)v ^ (uint64_t)1 << e;
    return (uint16_t)((uint64_t)(e + bias) << fraction |
                      (e > fraction ? behind >> (e - fraction) : behind << (fraction - e)));
}

static void store(duet_dtype type, void *at, int64_t v)
{
    switch (type) {
    case DUET_F16: *(uint16_t *)at = half_of(v, 10, 15); break;
    case DUET_BF16: *(uint16_t *)at = half_of(v, 7, 127); break;
    case DUET_C64:
        ((float *)at)[0] = (float)v;
        ((float *)at)[1] = 0;
        break;
    case DUET_C128:
        ((double *)at)[0] = (double)v;
        ((double *)at)[1] = 0;
        break;
#define STORE(NAME, ctype)                                                                                   \
    case DUET_##NAME:                                                                                        \
        *(ctype *)at = (ctype)v;                                                                             \
        break;
#define DUET_DTYPE(NAME, name, ctype, bits, roundoff, tiny) STORE(NAME, ctype)
#define DUET_INTEGER(NAME, name, ctype)                     STORE(NAME, ctype)
#define DUET_NARROW(NAME, name, ctype)                      STORE(NAME, ctype)
#include <duet/dtype.def>
    default: break;
    }
}

static duet_status check(const char *who, const duet_matrix *m)
{
    char text[SHAPE_TEXT];
    TRY(view_check_rank(who, m, 2, 2));
    const int64_t n = m->at.size[0];
    if (m->at.size[1] != n)
        return fail(DUET_BAD_SHAPE, "%s(m: %s): m must be square", who, view_text(m, text));
    if ((double)n * (double)n <= most_of(m->at.type)) return DUET_OK;
    return fail(DUET_BAD_TYPE, "%s(m: %s): %s cannot hold all integers up to %lld", who, view_text(m, text),
                dtypes[m->at.type].name, (long long)n * (long long)n);
}

static duet_status write_square(const char *who, duet_matrix *m)
{
    const int queue = thread_get()->queue;
    const int64_t n = m->at.size[0];
    char text[SHAPE_TEXT];
    void *p;
    const duet_status s = matrix_open(m, HOST, OVERWRITE, queue, &p);
    if (s != DUET_OK) return fail_within(s, "%s(m: %s)", who, view_text(m, text));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            store(m->at.type,
                  (char *)p + (i * m->at.stride[0] + j * m->at.stride[1]) * (int64_t)dtypes[m->at.type].bytes,
                  magic(n, i, j));
    matrix_wrote(m, HOST, queue);
    matrix_clear_accrued_cost(m);
    return DUET_OK;
}

/* Recordings do not include writes by the host. So the host writes another matrix, and a recorded
 * statement copies it. */
static duet_status write_and_note(const char *who, duet_matrix *m)
{
    duet_matrix *square = (duet_new_shape)(m->at.type, m->at.rank, m->at.size);
    if (!square) return DUET_NO_MEMORY;
    duet_status s = write_square(who, square);
    if (s == DUET_OK && m->count) s = statement_part(who, m, duet_of_matrix(square));
    return record_own_or_free(square, s);
}

static duet_status set_magic(const char *who, duet_matrix *m)
{
    const thread *t = thread_get();
    char text[SHAPE_TEXT];
    TRY(check(who, m));
    TRY(matrix_check_writable(who, m));
    IN_DEFAULT_FP_ENVIRONMENT;
    if (t->explaining) {
        fprintf(t->explaining, "%s(%s): written by the host\n", who, view_text(m, text));
        return DUET_OK;
    }
    return (t->recording ? write_and_note : write_square)(who, m);
}

duet_status(duet_magic)(duet_matrix *m) { return statement_ends(set_magic("duet_magic", m), NULL); }

/* small_matrix_ops.h - the algorithms of small_matrix.h for one matrix. They are compiled for CUDA, where the
 * threads of a block share the loops, and for the CPU, where one thread runs them.
 *
 * The file that includes this defines E, the type of an element, and R, that of its parts; PARTS;
 * QUALIFIERS, those of functions; NAME(f); LANE, LANES and SYNC(); optionally MAX_OF_LANES(x, i), which
 * gives all lanes the largest x >= 0 and its least i; for elements x, SIZE(x), the sum of the magnitudes
 * of its parts, RE(x), IM(x), MAKE(re, im), CONJ(x); LARGEST and LEAST, the exponents of sizes between
 * which a matrix is factored. There are operators for elements. */

/* The items of a loop are divided among the threads. */
#define EACH(i, first, end) for (int i = (first) + (int)(LANE); i < (end); i += (int)(LANES))

/* Two loops at once: a power of 2 of threads runs along the first one. */
#define GRID(n)                                                                                              \
    int across = 1;                                                                                          \
    while (across < (n) && 2 * across <= (int)(LANES)) across *= 2;                                          \
    const int grid_i = (int)(LANE) % across, grid_j = (int)(LANE) / across, beside = (int)(LANES) / across
#define EACH_I(i, first, end) for (int i = (first) + grid_i; i < (end); i += across)
#define EACH_J(j, first, end) for (int j = (first) + grid_j; j < (end); j += beside)

/* Rows are so far apart that the elements of a column are in different banks. */
QUALIFIERS int NAME(pitch)(int n) { return n | 1; }

/* The sum of a row of magnitudes, of the elements from j = first to end - 1. */
QUALIFIERS R NAME(row_sum)(const E *row, int first, int end)
{
    R sum = 0;
    for (int j = first; j < end; j++) sum += SIZE(row[j]);
    return sum;
}

/* Are n sums finite? Their largest one, and the smallest one that is not 0. Every thread computes it. */
QUALIFIERS bool NAME(range_of)(const R *sum, int n, R *largest, R *smallest)
{
    bool finite = true;
    *largest = 0;
    *smallest = (R)INFINITY;
    for (int i = 0; i < n; i++) {
        finite = finite && sum[i] < (R)INFINITY;
        if (sum[i] > *largest) *largest = sum[i];
        if (sum[i] > 0 && sum[i] < *smallest) *smallest = sum[i];
    }
    return finite;
}

/* Is a matrix far from the limits of the type, and are its rows of about one size? */
QUALIFIERS bool NAME(is_level)(int n, double largest, double smallest)
{
    return largest < ldexp(1.0, LARGEST) && largest > PARTS * n * ldexp(1.0, LEAST) &&
           smallest >= largest * ldexp(1.0, LEAST);
}

/* The row of the largest element of column k, from row k on. */
QUALIFIERS int NAME(find_pivot)(const E *s, int n, int k, R *best)
{
    const int ld = NAME(pitch)(n);
    int p = k;
    *best = 0;
#ifdef MAX_OF_LANES
    EACH(i, k, n)
#else
    for (int i = k; i < n; i++)
#endif
    if (SIZE(s[i * ld + k]) > *best) {
        *best = SIZE(s[i * ld + k]);
        p = i;
    }
#ifdef MAX_OF_LANES
    MAX_OF_LANES(*best, p);
#endif
    return p;
}

/* s = P L U in place, for the transpose s of the matrix. Returns false if s is singular or out of range, or
 * if the largest sum of a row of U is more than `limit` times that of s. */
QUALIFIERS bool NAME(factor)(E *s, int n, int limit, R *sum, int *pivot)
{
    const int ld = NAME(pitch)(n);
    R size, smallest, grown;
    EACH(i, 0, n) sum[i] = NAME(row_sum)(s + i * ld, 0, n);
    SYNC();
    const bool finite = NAME(range_of)(sum, n, &size, &smallest);
    if (!finite || (n && !NAME(is_level)(n, size, smallest))) return false;
    GRID(n);
    for (int k = 0; k < n; k++) {
        R best;
        const int p = NAME(find_pivot)(s, n, k, &best);
        SYNC();
        if (!(best > 0)) return false;
        if (LANE == 0) pivot[k] = p;
        EACH(j, 0, p == k ? 0 : n)
        {
            const E x = s[k * ld + j];
            s[k * ld + j] = s[p * ld + j];
            s[p * ld + j] = x;
        }
        SYNC();
        EACH(i, k + 1, n) s[i * ld + k] = s[i * ld + k] / s[k * ld + k];
        SYNC();
        EACH_I(i, k + 1, n)
        {
            const E m = s[i * ld + k];
            EACH_J(j, k + 1, n) s[i * ld + j] = s[i * ld + j] - m * s[k * ld + j];
        }
        SYNC();
    }
    EACH(i, 0, n) sum[i] = NAME(row_sum)(s + i * ld, i, n);
    SYNC();
    return NAME(range_of)(sum, n, &grown, &smallest) && grown <= (R)limit * size;
}

/* Solves with the transpose U^T L^T P of what was factored, for one column of x. False: a result is not
 * finite. */
QUALIFIERS bool NAME(solve_column)(const E *s, int n, const int *pivot, E *x, int apart)
{
    const int ld = NAME(pitch)(n);
    R total = 0;
    for (int k = 0; k < n; k++) {
        E v = x[k * apart];
        for (int i = 0; i < k; i++) v = v - s[i * ld + k] * x[i * apart];
        x[k * apart] = v / s[k * ld + k];
    }
    for (int k = n - 1; k >= 0; k--) {
        E v = x[k * apart];
        for (int i = k + 1; i < n; i++) v = v - s[i * ld + k] * x[i * apart];
        x[k * apart] = v;
        total += SIZE(v) * 0;
    }
    for (int k = n - 1; k >= 0; k--) {
        const E v = x[k * apart];
        x[k * apart] = x[pivot[k] * apart];
        x[pivot[k] * apart] = v;
    }
    return total == 0;
}

/* The same for all columns of x, in memory that the threads share: element i of column c is x[c * ld + i]. */
QUALIFIERS bool NAME(solve_columns)(const E *s, int n, const int *pivot, E *x, int columns)
{
    const int ld = NAME(pitch)(n);
    R total = 0;
    bool finite = true;
    GRID(n);
    if (2 * columns >= (int)(LANES)) { /* a thread for each column */
        EACH(c, 0, columns) finite = NAME(solve_column)(s, n, pivot, x + c * ld, 1) && finite;
        SYNC();
        return finite;
    }
    for (int k = 0; k < n; k++) {
        EACH(c, 0, columns) x[c * ld + k] = x[c * ld + k] / s[k * ld + k];
        SYNC();
        EACH_J(c, 0, columns)
        {
            const E y = x[c * ld + k];
            EACH_I(i, k + 1, n) x[c * ld + i] = x[c * ld + i] - s[k * ld + i] * y;
        }
        SYNC();
    }
    for (int k = n - 1; k > 0; k--) {
        EACH_J(c, 0, columns)
        {
            const E y = x[c * ld + k];
            EACH_I(i, 0, k) x[c * ld + i] = x[c * ld + i] - s[k * ld + i] * y;
        }
        SYNC();
    }
    EACH(c, 0, columns)
    {
        for (int k = n - 1; k >= 0; k--) {
            const E v = x[c * ld + k];
            total += SIZE(v) * 0;
            x[c * ld + k] = x[c * ld + pivot[k]];
            x[c * ld + pivot[k]] = v;
        }
    }
    SYNC();
    return total == 0;
}

/* s = L L^H in place, in the lower triangle. False: it is not positive definite, or not finite. */
QUALIFIERS bool NAME(cholesky)(E *s, int n, R *sum)
{
    const int ld = NAME(pitch)(n);
    R size, smallest;
    EACH(i, 0, n)
    {
        s[i * ld + i] = MAKE(RE(s[i * ld + i]), 0);
        sum[i] = NAME(row_sum)(s + i * ld, 0, i + 1);
    }
    SYNC();
    if (!NAME(range_of)(sum, n, &size, &smallest)) return false;
    GRID(n);
    for (int k = 0; k < n; k++) {
        const R d = RE(s[k * ld + k]);
        if (!(d > 0 && d < (R)INFINITY)) return false;
        const R root = (R)sqrt(d);
        SYNC();
        EACH(i, k, n)
        s[i * ld + k] = i == k ? MAKE(root, 0) : MAKE(RE(s[i * ld + k]) / root, IM(s[i * ld + k]) / root);
        SYNC();
        EACH_I(i, k + 1, n)
        {
            const E m = s[i * ld + k];
            EACH_J(j, k + 1, i + 1)
            {
                const E x = s[i * ld + j] - m * CONJ(s[j * ld + k]);
                s[i * ld + j] = i == j ? MAKE(RE(x), 0) : x;
            }
        }
        SYNC();
    }
    return true;
}

/* One column of a triangular system with the matrix a in global memory. */
QUALIFIERS bool NAME(substitute)(const small_args *how, const E *a, E *x, int apart)
{
    const int n = how->n, row = how->transposed ? 1 : n, col = how->transposed ? n : 1;
    const bool down = how->lower != how->transposed;
    R total = 0;
    for (int c = 0; c < n; c++) {
        const int k = down ? c : n - 1 - c, first = down ? 0 : k + 1, end = down ? k : n;
        E v = x[k * apart];
        for (int i = first; i < end; i++) v = v - a[k * row + i * col] * x[i * apart];
        if (!how->unit) v = v / a[k * row + k * col];
        x[k * apart] = v;
        total += SIZE(v) * 0;
    }
    return total == 0;
}

/* Is the part of row i of the triangle finite, without a zero on the diagonal? */
QUALIFIERS bool NAME(row_regular)(const small_args *how, const E *a, int i)
{
    const int first = how->lower ? 0 : i + how->unit, end = how->lower ? i + !how->unit : how->n;
    const R sum = NAME(row_sum)(a + (int64_t)i * how->n, first, end);
    return sum < (R)INFINITY && (how->unit || SIZE(a[(int64_t)i * how->n + i]) > 0);
}

/* ---- determinants ---- */

/* Stores those of matrix m, from the factors. Computed by one thread, as (re, im) 2^exponent. */
QUALIFIERS void NAME(put_determinant)(const small_args *how, const E *s, const int *pivot, int64_t m)
{
    const int ld = NAME(pitch)(how->n);
    double re = 1, im = 0;
    int exponent = 0, e, f;
    for (int k = 0; k < how->n; k++) {
        const E x = s[k * ld + k];
        const double sign = pivot[k] == k ? 1 : -1;
        (void)frexp(fmax(fabs((double)RE(x)), fabs((double)IM(x))), &e);
        const double a = ldexp(sign * (double)RE(x), -e), b = ldexp(sign * (double)IM(x), -e),
                     c = re * a - im * b, d = re * b + im * a;
        (void)frexp(fmax(fabs(c), fabs(d)), &f);
        re = ldexp(c, -f);
        im = ldexp(d, -f);
        exponent += e + f;
    }
    const double size = PARTS > 1 ? hypot(re, im) : fabs(re),
                 log_size = log(size) + (double)exponent * 0.6931471805599453;
    if (how->what == SMALL_DET) ((E *)how->out[0])[m] = MAKE((R)ldexp(re, exponent), (R)ldexp(im, exponent));
    if (how->what == SMALL_LOGDET) ((R *)how->out[0])[m] = (R)log_size;
    if (how->what == SMALL_SLOGDET) {
        ((E *)how->out[0])[m] = MAKE((R)(re / size), (R)(im / size));
        ((R *)how->out[1])[m] = (R)log_size;
    }
}

QUALIFIERS void NAME(start)(const small_args *how, int64_t m)
{
    if (LANE == 0) how->left[m] = 0;
    SYNC();
}
QUALIFIERS void NAME(leave)(const small_args *how, int64_t m) { how->left[m] = *how->some_left = 1; }

#include "small_factors_ops.h"

/* ---- one matrix ---- */

QUALIFIERS void NAME(small_triangular)(const small_args *how, int64_t m)
{
    const int n = how->n, sides = how->sides;
    const E *a = (const E *)how->a + m * n * n, *b = (const E *)how->b + m * n * sides;
    E *x = (E *)how->out[0] + m * n * sides;
    EACH(i, 0, n)
    if (!NAME(row_regular)(how, a, i)) NAME(leave)(how, m);
    EACH(c, 0, sides)
    {
        bool finite = true;
        for (int i = 0; i < n; i++) x[i * sides + c] = b[i * sides + c];
        finite = NAME(substitute)(how, a, x + c, sides);
        if (!finite) NAME(leave)(how, m);
    }
}

QUALIFIERS void NAME(small_cholesky)(const small_args *how, int64_t m, E *s, R *sum)
{
    const int n = how->n, ld = NAME(pitch)(n);
    const E *a = (const E *)how->a + m * n * n;
    E *x = (E *)how->out[0] + m * n * n;
    EACH(k, 0, n * n) s[k / n * ld + k % n] = a[k];
    SYNC();
    if (!NAME(cholesky)(s, n, sum)) {
        NAME(leave)(how, m);
        return;
    }
    SYNC();
    EACH(k, 0, n * n) x[k] = k % n <= k / n ? s[k / n * ld + k % n] : MAKE(0, 0);
}

QUALIFIERS void NAME(small_lu)(const small_args *how, int64_t m, E *s, E *y, R *sum, int *pivot)
{
    const int n = how->n, ld = NAME(pitch)(n), sides = how->what == SMALL_INV ? n : how->sides;
    const E *a = (const E *)how->a + m * n * n, *b = (const E *)how->b + m * n * sides;
    E *x = (E *)how->out[0] + m * n * sides;
    EACH(k, 0, n * n) s[k % n * ld + k / n] = a[k];
    SYNC();
    if (!NAME(factor)(s, n, how->growth, sum, pivot)) {
        NAME(leave)(how, m);
        return;
    }
    if (how->what != SMALL_INV && how->what != SMALL_SOLVE) {
        if (LANE == 0) NAME(put_determinant)(how, s, pivot, m);
        return;
    }
    if (small_held_sides(how)) {
        EACH(k, 0, n * sides)
        y[k % sides * ld + k / sides] = how->what == SMALL_INV ? MAKE(k / n == k % n, 0) : b[k];
        SYNC();
        if (!NAME(solve_columns)(s, n, pivot, y, sides)) NAME(leave)(how, m);
        EACH(k, 0, n * sides) x[k] = y[k % sides * ld + k / sides];
        return;
    }
    EACH(c, 0, sides)
    {
        for (int i = 0; i < n; i++)
            x[i * sides + c] = how->what == SMALL_INV ? MAKE(i == c, 0) : b[i * sides + c];
        if (!NAME(solve_column)(s, n, pivot, x + c, sides)) NAME(leave)(how, m);
    }
}

/* `memory` has small_bytes() bytes. The two functions have the work of different kinds. */
QUALIFIERS void NAME(small_system)(const small_args *how, int64_t m, void *memory)
{
    const int n = how->n;
    E *s = (E *)memory;
    E *y = s + n * NAME(pitch)(n);
    R *sum = (R *)(y + small_held_sides(how) * NAME(pitch)(n));
    int *pivot = (int *)(sum + n);
    NAME(start)(how, m);
    if (how->what == SMALL_TRIANGULAR) NAME(small_triangular)(how, m);
    else if (how->what == SMALL_CHOLESKY) NAME(small_cholesky)(how, m, s, sum);
    else NAME(small_lu)(how, m, s, y, sum, pivot);
}

QUALIFIERS void NAME(small_factors)(const small_args *how, int64_t m, void *memory)
{
    NAME(start)(how, m);
    if (how->what == SMALL_QR) NAME(small_qr)(how, m, memory);
    else if (how->what == SMALL_EIGH || how->what == SMALL_EIGVALSH) NAME(small_eigen)(how, m, memory);
    else NAME(small_svd)(how, m, memory);
}
#undef EACH
#undef GRID
#undef EACH_I
#undef EACH_J

/* small_factors_ops.h - the factorisations of small_matrix.h with orthonormal factors, for one matrix: QR by
 * reflections; by Jacobi's rotations the eigenvalues of Hermitian matrices, from both sides, and singular
 * values, from one side. small_matrix_ops.h includes this and says what must be defined.
 *
 * Matrices are first scaled by a power of 2, so that squares neither overflow nor, where it matters,
 * underflow. Columns lie one behind the other. */

/* The limit of sweeps. Finite matrices need far fewer. */
#define SWEEPS_MOST 24

#define SCALED(x, by) MAKE(RE(x) * (by), IM(x) * (by))
#define SQUARE(x)     (RE(x) * RE(x) + IM(x) * IM(x))
#define EPS           (sizeof(R) == 4 ? (R)0x1p-23 : (R)0x1p-52)
#define TINY_SQUARE   (sizeof(R) == 4 ? (R)0x1p-80 : (R)0x1p-600) /* of a column of the scaled matrix */

/* The memory of a factorisation. */
typedef struct {
    int rows, cols, pitch, second_pitch; /* of the columns in `first` */
    E *first, *second, *turn;
    R *sum, *cosine, *change;
    int *turned, *pair; /* by pair: has it turned in this sweep; its two columns */
} NAME(factoring);

QUALIFIERS NAME(factoring) NAME(divide)(const small_args *how, void *memory)
{
    const int rows = small_is_wide(how) ? how->n : how->m, cols = small_is_wide(how) ? how->m : how->n,
              items = small_items(how);
    NAME(factoring) d;
    d.rows = rows;
    d.cols = cols;
    d.pitch = NAME(pitch)(rows);
    d.second_pitch = NAME(pitch)(cols);
    d.first = (E *)memory;
    d.second = d.first + cols * d.pitch;
    d.turn = d.second + (small_has_vectors(how) ? cols * d.second_pitch : 0);
    d.sum = (R *)(d.turn + items);
    d.cosine = d.sum + items;
    d.change = d.cosine + items;
    d.turned = (int *)(d.change + items);
    d.pair = d.turned + items;
    return d;
}

/* Scales d->first and returns the exponent of 2 by which results must be scaled back. False: some element is
 * not finite, or the matrix is 0 or near the limits of the type. */
QUALIFIERS bool NAME(scale)(const NAME(factoring) * d, int *exponent)
{
    R largest, smallest;
    EACH(j, 0, d->cols) d->sum[j] = NAME(row_sum)(d->first + j * d->pitch, 0, d->rows);
    SYNC();
    const bool finite = NAME(range_of)(d->sum, d->cols, &largest, &smallest);
    if (!finite || !NAME(is_level)(d->cols, largest, largest)) return false;
    (void)frexp((double)largest, exponent);
    const R by = (R)ldexp(1.0, -*exponent);
    SYNC();
    EACH(k, 0, d->cols * d->rows)
    {
        E *x = d->first + k / d->rows * d->pitch + k % d->rows;
        *x = SCALED(*x, by);
    }
    SYNC();
    return true;
}

/* ---- QR ---- */

/* Reflectors below the diagonal, R on and above it, as LAPACK has them; their factors are in d->turn. */
QUALIFIERS bool NAME(reflect)(const NAME(factoring) * d)
{
    const int m = d->rows, n = d->cols, ld = d->pitch;
    E *s = d->first;
    for (int k = 0; k < m && k < n; k++) {
        const E top = s[k * ld + k];
        R size = 0, squares = 0;
        for (int i = k + 1; i < m; i++) {
            const E x = s[k * ld + i];
            size += SIZE(x);
            squares += SQUARE(x);
        }
        SYNC();
        if (size == 0 && IM(top) == 0) {
            if (LANE == 0) d->turn[k] = MAKE(0, 0);
            SYNC();
            continue;
        }
        squares += SQUARE(top);
        if (squares < TINY_SQUARE) return false;
        const R norm = (R)sqrt(squares), beta = RE(top) < 0 ? norm : -norm;
        const E v = MAKE(RE(top) - beta, IM(top)), tau = MAKE((beta - RE(top)) / beta, -IM(top) / beta);
        EACH(i, k + 1, m) s[k * ld + i] = s[k * ld + i] / v;
        if (LANE == 0) {
            s[k * ld + k] = MAKE(beta, 0);
            d->turn[k] = tau;
        }
        SYNC();
        EACH(j, k + 1, n)
        {
            E w = s[j * ld + k];
            for (int i = k + 1; i < m; i++) w = w + CONJ(s[k * ld + i]) * s[j * ld + i];
            w = CONJ(tau) * w;
            s[j * ld + k] = s[j * ld + k] - w;
            for (int i = k + 1; i < m; i++) s[j * ld + i] = s[j * ld + i] - w * s[k * ld + i];
        }
        SYNC();
    }
    return true;
}

QUALIFIERS void NAME(small_qr)(const small_args *how, int64_t matrix, void *memory)
{
    const NAME(factoring) d = NAME(divide)(how, memory);
    const int m = how->m, n = how->n, ld = d.pitch, both = m < n ? m : n, all = how->sides,
              high = all < m ? both : m; /* Q is m x all, R is high x n */
    const E *a = (const E *)how->a + matrix * m * n;
    E *q = (E *)how->out[0] + matrix * m * all, *r = (E *)how->out[1] + matrix * high * n;
    int exponent;
    EACH(k, 0, m * n) d.first[k % n * ld + k / n] = a[k];
    SYNC();
    if (!NAME(scale)(&d, &exponent) || !NAME(reflect)(&d)) {
        NAME(leave)(how, matrix);
        return;
    }
    const R back = (R)ldexp(1.0, exponent);
    EACH(k, 0, high * n) r[k] = k % n < k / n ? MAKE(0, 0) : SCALED(d.first[k % n * ld + k / n], back);
    EACH(c, 0, all)
    {
        for (int i = 0; i < m; i++) q[i * all + c] = MAKE(i == c, 0);
        for (int k = both - 1; k >= 0; k--) {
            const E *v = d.first + k * ld;
            E w = q[k * all + c];
            for (int i = k + 1; i < m; i++) w = w + CONJ(v[i]) * q[i * all + c];
            w = d.turn[k] * w;
            q[k * all + c] = q[k * all + c] - w;
            for (int i = k + 1; i < m; i++) q[i * all + c] = q[i * all + c] - w * v[i];
        }
    }
}

/* ---- rotations ---- */

/* Pair k of round `round`: each two of n columns meet once in the rounds. False: a column is alone, as one
 * is in each round if n is odd. */
QUALIFIERS bool NAME(pair_of)(int n, int round, int k, int *p, int *q)
{
    const int turns = (n + 1) / 2 * 2 - 1, after = round + k;
    *p = !k ? turns : after < turns ? after : after - turns;
    *q = round < k ? round - k + turns : round - k;
    return *p < n && *q < n;
}

/* The rotation that makes the Hermitian matrix (p, x; conj(x), q) diagonal: (c, s; -conj(s), c) from the
 * right, its adjoint from the left. Returns the number that p loses and q gains. */
QUALIFIERS R NAME(rotation)(R p, R q, E x, R *c, E *s)
{
    const R size = (R)sqrt(SQUARE(x)), ratio = (q - p) / (2 * size), far = (R)fabs(ratio),
            tangent = (ratio < 0 ? -1 : 1) / (far + (R)sqrt(1 + ratio * ratio));
    *c = 1 / (R)sqrt(1 + tangent * tangent);
    *s = SCALED(x, tangent * *c / size);
    return tangent * size;
}

/* Columns or elements x and y after a rotation from the right. */
#define ROTATE(x, y, c, s)                                                                                   \
    do {                                                                                                     \
        const E was_x = (x), was_y = (y);                                                                    \
        (x) = SCALED(was_x, c) - CONJ(s) * was_y;                                                            \
        (y) = (s)*was_x + SCALED(was_y, c);                                                                  \
    } while (0)

/* Has a pair turned? Then the next sweep may start. */
QUALIFIERS bool NAME(has_turned)(const NAME(factoring) * d)
{
    bool turned = false;
    SYNC();
    for (int k = 0; k < (d->cols + 1) / 2; k++) turned = turned || d->turned[k];
    SYNC();
    return turned;
}

/* How many of n numbers come before number i. */
QUALIFIERS int NAME(rank_of)(const R *x, int n, int i, bool descending)
{
    int rank = 0;
    for (int j = 0; j < n; j++) {
        const bool before = descending ? x[j] > x[i] : x[j] < x[i];
        rank += before || (x[j] == x[i] && j < i);
    }
    return rank;
}

/* ---- eigenvalues of Hermitian matrices ---- */

QUALIFIERS void NAME(find_rotation)(const NAME(factoring) * d, int round, int k)
{
    const E *s = d->first;
    const int ld = d->pitch;
    int p, q;
    d->cosine[k] = 1;
    d->turn[k] = MAKE(0, 0);
    d->change[k] = 0;
    const bool there = NAME(pair_of)(d->cols, round, k, &p, &q);
    d->pair[2 * k] = p;
    d->pair[2 * k + 1] = q;
    if (!there) return;
    const E x = s[q * ld + p];
    if (!(SIZE(x) > EPS / 8)) return;
    d->change[k] = NAME(rotation)(RE(s[p * ld + p]), RE(s[q * ld + q]), x, &d->cosine[k], &d->turn[k]);
    d->turned[k] = 1;
}

/* The elements in the rows of pair k and the columns of pair l, and those in the mirrored places. */
QUALIFIERS void NAME(rotate_block)(const NAME(factoring) * d, int k, int l)
{
    E *s = d->first;
    const int ld = d->pitch, n = d->cols;
    const int *row = d->pair + 2 * k, *col = d->pair + 2 * l;
    E x[2][2];
    if (d->change[k] == 0 && d->change[l] == 0) return;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const bool there = row[i] < n && col[j] < n;
            x[i][j] = there ? s[col[j] * ld + row[i]] : MAKE(0, 0);
        }
    if (k == l) {
        x[0][0] = MAKE(RE(x[0][0]) - d->change[k], 0);
        x[1][1] = MAKE(RE(x[1][1]) + d->change[k], 0);
        x[0][1] = x[1][0] = MAKE(0, 0);
    } else {
        for (int i = 0; i < 2; i++) ROTATE(x[i][0], x[i][1], d->cosine[l], d->turn[l]);
        for (int j = 0; j < 2; j++) ROTATE(x[0][j], x[1][j], d->cosine[k], CONJ(d->turn[k]));
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            if (row[i] >= n || col[j] >= n) continue;
            s[col[j] * ld + row[i]] = x[i][j];
            if (k != l) s[row[i] * ld + col[j]] = CONJ(x[i][j]);
        }
}

QUALIFIERS void NAME(rotate_vectors)(const NAME(factoring) * d)
{
    const int n = d->cols, half = (n + 1) / 2;
    GRID(n);
    EACH_J(k, 0, half)
    {
        if (d->change[k] == 0) continue;
        E *x = d->second + d->pair[2 * k] * d->second_pitch,
          *y = d->second + d->pair[2 * k + 1] * d->second_pitch;
        EACH_I(i, 0, n) ROTATE(x[i], y[i], d->cosine[k], d->turn[k]);
    }
}

/* Makes d->first diagonal, and d->second the product of the rotations. False: that did not converge. */
QUALIFIERS bool NAME(diagonalize)(const NAME(factoring) * d, bool vectors)
{
    const int half = (d->cols + 1) / 2;
    GRID(half);
    for (int sweep = 0; sweep < SWEEPS_MOST; sweep++) {
        EACH(k, 0, half) d->turned[k] = 0;
        for (int round = 0; round < 2 * half - 1; round++) {
            EACH(k, 0, half) NAME(find_rotation)(d, round, k);
            SYNC();
            /* Each two pairs once: k and the half of the others that follow it. */
            EACH_J(apart, 0, half / 2 + 1)
            EACH_I(k, 0, 2 * apart == half ? half / 2 : half)
            NAME(rotate_block)(d, k, k + apart < half ? k + apart : k + apart - half);
            if (vectors) NAME(rotate_vectors)(d);
            SYNC();
        }
        if (!NAME(has_turned)(d)) return true;
    }
    return false;
}

QUALIFIERS void NAME(small_eigen)(const small_args *how, int64_t matrix, void *memory)
{
    const NAME(factoring) d = NAME(divide)(how, memory);
    const int n = how->n, ld = d.pitch;
    const bool vectors = how->what == SMALL_EIGH;
    const E *a = (const E *)how->a + matrix * n * n;
    R *w = (R *)how->out[0] + matrix * n;
    int exponent;
    EACH(k, 0, n * n)
    {
        const int i = k / n, j = k % n;
        const E x = i >= j ? a[k] : CONJ(a[j * n + i]);
        d.first[j * ld + i] = i == j ? MAKE(RE(x), 0) : x;
        if (vectors) d.second[j * d.second_pitch + i] = MAKE(i == j, 0);
    }
    SYNC();
    if (!NAME(scale)(&d, &exponent) || !NAME(diagonalize)(&d, vectors)) {
        NAME(leave)(how, matrix);
        return;
    }
    EACH(i, 0, n) d.sum[i] = RE(d.first[i * ld + i]);
    SYNC();
    const R back = (R)ldexp(1.0, exponent);
    EACH(i, 0, n) d.turned[i] = NAME(rank_of)(d.sum, n, i, false);
    SYNC();
    EACH(i, 0, n) w[d.turned[i]] = d.sum[i] * back;
    if (!vectors) return;
    E *v = (E *)how->out[1] + matrix * n * n;
    EACH(k, 0, n * n) v[k / n * n + d.turned[k % n]] = d.second[k % n * d.second_pitch + k / n];
}

/* ---- singular values ---- */

/* Sums over every `share`th row of two columns: their squares and their product. */
QUALIFIERS void NAME(part_of_product)(const NAME(factoring) * d, int p, int q, int first, int share, int at)
{
    const E *x = d->first + p * d->pitch, *y = d->first + q * d->pitch;
    R of_x = 0, of_y = 0;
    E both = MAKE(0, 0);
    for (int i = first; i < d->rows; i += share) {
        of_x += SQUARE(x[i]);
        of_y += SQUARE(y[i]);
        both = both + CONJ(x[i]) * y[i];
    }
    d->cosine[at] = of_x;
    d->change[at] = of_y;
    d->turn[at] = both;
}

/* Makes columns p and q orthogonal, in every `share`th row. Returns true if they were not. */
QUALIFIERS bool NAME(part_of_turn)(const NAME(factoring) * d, int p, int q, int first, int share, int at,
                                   bool vectors)
{
    R of_x = 0, of_y = 0, c;
    E both = MAKE(0, 0), s;
    for (int i = 0; i < share; i++) {
        of_x += d->cosine[at + i];
        of_y += d->change[at + i];
        both = both + d->turn[at + i];
    }
    const R small = of_x < of_y ? of_x : of_y, large = of_x < of_y ? of_y : of_x,
            size = (R)sqrt(SQUARE(both));
    /* A column that is only rounding errors of the other one never becomes orthogonal to it. */
    if (small < TINY_SQUARE || small < EPS * EPS * large) return false;
    if (!(size > EPS * (R)sqrt((R)d->rows) * (R)sqrt(of_x) * (R)sqrt(of_y))) return false;
    (void)NAME(rotation)(of_x, of_y, both, &c, &s);
    E *x = d->first + p * d->pitch, *y = d->first + q * d->pitch;
    for (int i = first; i < d->rows; i += share) ROTATE(x[i], y[i], c, s);
    if (!vectors) return true;
    x = d->second + p * d->second_pitch;
    y = d->second + q * d->second_pitch;
    for (int i = first; i < d->cols; i += share) ROTATE(x[i], y[i], c, s);
    return true;
}

/* Makes the columns of d->first orthogonal. False: that did not converge. */
QUALIFIERS bool NAME(orthogonalize)(const NAME(factoring) * d, bool vectors)
{
    const int n = d->cols, half = (n + 1) / 2;
    int bits = 0; /* 2^bits threads have a pair */
    while ((half << (bits + 1)) <= (int)LANES) bits++;
    const int share = 1 << bits;
    for (int sweep = 0; sweep < SWEEPS_MOST; sweep++) {
        EACH(k, 0, half) d->turned[k] = 0;
        SYNC();
        for (int round = 0; round < 2 * half - 1; round++) {
            int p, q;
            EACH(i, 0, half * share)
            if (NAME(pair_of)(n, round, i >> bits, &p, &q))
                NAME(part_of_product)(d, p, q, i & (share - 1), share, i);
            SYNC();
            EACH(i, 0, half * share)
            if (NAME(pair_of)(n, round, i >> bits, &p, &q) &&
                NAME(part_of_turn)(d, p, q, i & (share - 1), share, i & -share, vectors) &&
                !(i & (share - 1)))
                d->turned[i >> bits] = 1;
            SYNC();
        }
        if (!NAME(has_turned)(d)) return true;
    }
    return false;
}

/* d->sum = the norms of the columns. Are all so large that the columns divided by them are orthonormal? Every
 * thread computes it. */
QUALIFIERS bool NAME(find_norms)(const NAME(factoring) * d)
{
    R largest, smallest;
    EACH(j, 0, d->cols)
    {
        R squares = 0;
        for (int i = 0; i < d->rows; i++) squares += SQUARE(d->first[j * d->pitch + i]);
        d->sum[j] = (R)sqrt(squares);
    }
    SYNC();
    (void)NAME(range_of)(d->sum, d->cols, &largest, &smallest);
    for (int j = 0; j < d->cols; j++) smallest = d->sum[j] < smallest ? d->sum[j] : smallest;
    return smallest * smallest >= TINY_SQUARE && smallest >= 4 * EPS * largest;
}

/* The columns of one factor, in descending order of the singular values, as rows of `to` or as columns. */
QUALIFIERS void NAME(put_factor)(const NAME(factoring) * d, bool first, bool as_rows, E *to)
{
    const int rows = first ? d->rows : d->cols, cols = d->cols, ld = first ? d->pitch : d->second_pitch;
    const E *from = first ? d->first : d->second;
    EACH(k, 0, rows * cols)
    {
        const int i = k / cols, j = k % cols, place = d->turned[j];
        const E x = from[j * ld + i], unit = first ? SCALED(x, 1 / d->sum[j]) : x;
        if (as_rows) to[place * rows + i] = CONJ(unit);
        else to[i * cols + place] = unit;
    }
}

/* Of a matrix with more columns than rows the adjoint is factored. */
QUALIFIERS void NAME(small_svd)(const small_args *how, int64_t matrix, void *memory)
{
    const NAME(factoring) d = NAME(divide)(how, memory);
    const int m = how->m, n = how->n, cols = d.cols;
    const bool wide = small_is_wide(how), vectors = how->what == SMALL_SVD;
    const E *a = (const E *)how->a + matrix * m * n;
    int exponent;
    EACH(k, 0, m * n)
    {
        const int i = k / n, j = k % n;
        if (wide) d.first[i * d.pitch + j] = CONJ(a[k]);
        else d.first[j * d.pitch + i] = a[k];
    }
    EACH(k, 0, vectors ? cols * cols : 0)
    d.second[k / cols * d.second_pitch + k % cols] = MAKE(k / cols == k % cols, 0);
    SYNC();
    if (!NAME(scale)(&d, &exponent) || !NAME(orthogonalize)(&d, vectors) ||
        (!NAME(find_norms)(&d) && vectors)) {
        NAME(leave)(how, matrix);
        return;
    }
    const R back = (R)ldexp(1.0, exponent);
    R *s = (R *)how->out[vectors] + matrix * cols;
    EACH(j, 0, cols) d.turned[j] = NAME(rank_of)(d.sum, cols, j, true);
    SYNC();
    EACH(j, 0, cols) s[d.turned[j]] = d.sum[j] * back;
    if (!vectors) return;
    NAME(put_factor)(&d, !wide, false, (E *)how->out[0] + matrix * m * cols);
    NAME(put_factor)(&d, wide, true, (E *)how->out[2] + matrix * cols * n);
}
#undef SCALED
#undef SQUARE
#undef EPS
#undef TINY_SQUARE
#undef SWEEPS_MOST
#undef ROTATE

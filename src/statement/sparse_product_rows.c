/* sparse_product_rows.c - makes rows of the product of two sparse matrices. A row of the result is the sum of
 * rows of b. The sums are in a dense row, and a bit for each column says which sums are in use. */
#include "min_max.h"
#include "sparse_inline.h"
#include "sparse_product.h"
#include <stdlib.h>

#define ALIGNED 64

static size_t sums_bytes(const product *p)
{
    return ((size_t)p->b.c.columns * p->a.each + ALIGNED - 1) / ALIGNED * ALIGNED;
}
static size_t used_words(const product *p) { return (size_t)p->b.c.columns / 64 + 1; }
static size_t all_words(const product *p) { return used_words(p) + (size_t)p->b.c.columns / 4096 + 1; }

size_t product_row_bytes(const product *p)
{
    return (sums_bytes(p) + all_words(p) * sizeof(uint64_t) + ALIGNED - 1) / ALIGNED * ALIGNED;
}

product_row product_row_of(const product *p, int part)
{
    char *room = p->room + (size_t)part * p->room_bytes;
    product_row w = { .sum = room, .used = (uint64_t *)(void *)(room + sums_bytes(p)) };
    w.words = w.used + used_words(p);
    return w;
}

/* ---- how many products, and how many elements ---- */

void product_weigh(void *of, int part)
{
    const product *p = of;
    const csr *a = &p->a.c, *b = &p->b.c;
    int64_t k = csr_offset(a, p->parts.first[part]);
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++) {
        const int64_t end = csr_offset(a, r + 1);
        int64_t n = 0;
        for (; k < end; k++) n += csr_offset(b, csr_column(a, k) + 1) - csr_offset(b, csr_column(a, k));
        p->offset[r + 1] = n;
    }
}

/* Row `row` of b. */
typedef struct b_row {
    int64_t from, to;
} b_row;
INLINE b_row b_row_of(const csr *b, bool wide, int64_t row)
{
    return (b_row){ index_in(b->pattern, wide, row), index_in(b->pattern, wide, row + 1) };
}

/* Elements that are handled at once if there is no gap between their columns. */
#define CHUNK 8
INLINE bool is_chunk(const void *column, bool wide, int64_t j, int64_t end)
{
    return j + CHUNK <= end && index_in(column, wide, j + CHUNK - 1) - index_in(column, wide, j) == CHUNK - 1;
}

/* How many elements of a ahead the rows of b are prefetched. */
#define AHEAD 16

INLINE void fetch_ahead(const product *p, bool wide, int64_t k)
{
    const csr *a = &p->a.c, *b = &p->b.c;
    if (k + AHEAD >= a->count) return;
    const int64_t from = index_in(b->pattern, wide, csr_column(a, k + AHEAD));
    __builtin_prefetch((const char *)columns_of(b, wide) + from * (wide ? 8 : 4));
    __builtin_prefetch((const char *)p->b.values + from * (int64_t)p->b.each);
}

/* The columns of a row of the result, which needs the elements from .. to - 1 of a. */
typedef struct reach {
    int64_t low, high, products;
    bool is_run; /* known to have no gaps between the columns */
} reach;
INLINE reach reach_of(const product *p, bool wide, int64_t from, int64_t to)
{
    const csr *b = &p->b.c;
    const void *column = columns_of(b, wide);
    reach all = { .low = INT64_MAX, .high = -1, .is_run = true };
    for (int64_t k = from; k < to; k++) {
        const b_row y = b_row_of(b, wide, csr_column(&p->a.c, k));
        fetch_ahead(p, wide, k);
        if (y.from == y.to) continue;
        const int64_t low = index_in(column, wide, y.from), high = index_in(column, wide, y.to - 1);
        all.is_run &=
            high - low == y.to - 1 - y.from && (all.products == 0 || (low >= all.low && low <= all.high + 1));
        all.products += y.to - y.from;
        all.low = smaller(all.low, low);
        all.high = larger(all.high, high);
    }
    return all;
}

INLINE uint32_t is_new(uint32_t *of, uint32_t mark)
{
    const uint32_t n = *of != mark;
    *of = mark;
    return n;
}

/* Counts the columns of y that this row of the result does not have yet. `mark` is the row's own number. */
INLINE int64_t count_marks(const void *column, bool wide, b_row y, uint32_t *marks, uint32_t mark)
{
    int64_t n = 0;
    for (int64_t j = y.from; j < y.to;) {
        uint32_t *of = marks + index_in(column, wide, j), fresh = 0;
        if (is_chunk(column, wide, j, y.to)) {
            for (int i = 0; i < CHUNK; i++) fresh += is_new(of + i, mark);
            n += fresh;
            j += CHUNK;
        } else {
            n += is_new(of, mark);
            j++;
        }
    }
    return n;
}

INLINE int64_t count_bits(const void *column, bool wide, b_row y, uint64_t *used)
{
    int64_t n = 0;
    for (int64_t j = y.from; j < y.to; j++) {
        const int64_t at = index_in(column, wide, j);
        n += !(used[at / 64] >> at % 64 & 1);
        used[at / 64] |= (uint64_t)1 << at % 64;
    }
    return n;
}

INLINE void count_rows(bool wide, const product *p, int part)
{
    const csr *a = &p->a.c, *b = &p->b.c;
    const void *column = columns_of(b, wide);
    const product_row w = product_row_of(p, part);
    uint32_t mark = 0;
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++) {
        const int64_t from = csr_offset(a, r), to = csr_offset(a, r + 1);
        int64_t n = 0;
        if (to - from < 2) continue; /* the number of products is right */
        const reach all = reach_of(p, wide, from, to);
        if (all.is_run) {
            p->offset[r + 1] = all.products ? all.high - all.low + 1 : 0;
            continue;
        }
        if (p->marks && ++mark == 0) { /* after 2^32 rows */
            memset(w.mark, 0, (size_t)b->columns * sizeof *w.mark);
            mark = 1;
        }
        for (int64_t k = from; k < to; k++) {
            const b_row y = b_row_of(b, wide, csr_column(a, k));
            n += p->marks ? count_marks(column, wide, y, w.mark, mark) : count_bits(column, wide, y, w.used);
        }
        for (int64_t k = from; k < to && !p->marks; k++) {
            const b_row y = b_row_of(b, wide, csr_column(a, k));
            for (int64_t j = y.from; j < y.to; j++) w.used[index_in(column, wide, j) / 64] = 0;
        }
        p->offset[r + 1] = n;
    }
}

void product_count(void *of, int part)
{
    const product *p = of;
    const product_row w = product_row_of(p, part);
    if (p->marks) memset(w.mark, 0, (size_t)p->b.c.columns * sizeof *w.mark);
    else memset(w.used, 0, all_words(p) * sizeof *w.used);
    if (p->b.c.wide) count_rows(true, p, part);
    else count_rows(false, p, part);
}

/* ---- elements ---- */

/* Where rows of the result go. */
typedef struct target {
    void *columns, *values;
    bool wide;
} target;

INLINE void put_element(duet_dtype type, const target *to, int64_t n, int64_t column, const void *x)
{
    put_index(to->columns, to->wide, n, column);
    copy_element(type, element_at(to->values, type, n), x);
}

/* Writes x times a row of b, from element n on, and returns where it ends. */
INLINE int64_t put_multiples(duet_dtype type, bool wide, const product *p, const target *to, number x,
                             b_row y, int64_t n)
{
    const void *column = columns_of(&p->b.c, wide);
    for (int64_t j = y.from; j < y.to; j++, n++) {
        put_index(to->columns, to->wide, n, index_in(column, wide, j));
        multiply_element(type, element_at(to->values, type, n), &x, element_at(p->b.values, type, j), false);
    }
    return n;
}

/* Writes a row that is the sum of multiples of two rows of b, which it merges without branches that depend on
 * the columns. */
INLINE int64_t put_two(duet_dtype type, bool wide, const product *p, const target *to, int64_t k, int64_t n)
{
    const csr *b = &p->b.c;
    const void *column = columns_of(b, wide);
    b_row y = b_row_of(b, wide, csr_column(&p->a.c, k)), z = b_row_of(b, wide, csr_column(&p->a.c, k + 1));
    const number u = number_at(type, p->a.values, k), v = number_at(type, p->a.values, k + 1);
    while (y.from < y.to && z.from < z.to) {
        const int64_t one = index_in(column, wide, y.from), other = index_in(column, wide, z.from);
        const bool first = one <= other, second = other <= one;
        number s, t;
        multiply_element(type, &s, &u, element_at(p->b.values, type, y.from), false);
        multiply_element(type, &t, &v, element_at(p->b.values, type, z.from), false);
        s = number_if(type, &s, 0, first);
        t = number_if(type, &t, 0, second);
        put_index(to->columns, to->wide, n, smaller(one, other));
        add_elements(type, element_at(to->values, type, n++), &s, &t);
        y.from += first;
        z.from += second;
    }
    n = put_multiples(type, wide, p, to, u, y, n);
    return put_multiples(type, wide, p, to, v, z, n);
}

/* The sums and the values are in different memory, so all values are read first. */
INLINE void add_multiples(duet_dtype type, void *sum, number x, const void *values, int count)
{
    number t[CHUNK];
    for (int i = 0; i < count; i++)
        multiply_element(type, element_at(t, type, i), &x, element_at(values, type, i), false);
    for (int i = 0; i < count; i++)
        add_elements(type, element_at(sum, type, i), element_at(sum, type, i), element_at(t, type, i));
}

/* Writes a row without gaps between its columns. The sums begin with -0. */
INLINE void put_run(duet_dtype type, bool wide, const product *p, const product_row *w, const target *to,
                    int64_t from, int64_t end, int64_t low, int64_t count, int64_t n)
{
    const void *column = columns_of(&p->b.c, wide);
    const number nothing = minus_zero(type);
    for (int64_t i = 0; i < count; i++) copy_element(type, element_at(w->sum, type, low + i), &nothing);
    for (int64_t k = from; k < end; k++) {
        const b_row y = b_row_of(&p->b.c, wide, csr_column(&p->a.c, k));
        const number x = number_at(type, p->a.values, k);
        for (int64_t j = y.from; j < y.to;) {
            void *sum = element_at(w->sum, type, index_in(column, wide, j));
            const int m = is_chunk(column, wide, j, y.to) ? CHUNK : 1;
            if (m == CHUNK) add_multiples(type, sum, x, element_at(p->b.values, type, j), CHUNK);
            else add_multiples(type, sum, x, element_at(p->b.values, type, j), 1);
            j += m;
        }
    }
    for (int64_t i = 0; i < count; i++) put_index(to->columns, to->wide, n + i, low + i);
    memcpy(element_at(to->values, type, n), element_at(w->sum, type, low),
           (size_t)count * element_size(type));
}

/* Adds the rows of b, and sets bits. listed: writes the columns to the result as they come, and returns their
 * number. */
INLINE int64_t add_rows(duet_dtype type, bool wide, bool listed, const product *p, const product_row *w,
                        const target *to, int64_t from, int64_t end, int64_t n)
{
    const void *column = columns_of(&p->b.c, wide);
    const int64_t start = n;
    for (int64_t k = from; k < end; k++) {
        const b_row y = b_row_of(&p->b.c, wide, csr_column(&p->a.c, k));
        const number x = number_at(type, p->a.values, k);
        for (int64_t j = y.from; j < y.to; j++) {
            const int64_t at = index_in(column, wide, j);
            const uint64_t bit = (uint64_t)1 << at % 64, word = w->used[at / 64];
            void *sum = element_at(w->sum, type, at);
            const void *of = element_at(p->b.values, type, j);
            if (word & bit) {
                multiply_element(type, sum, &x, of, true);
                continue;
            }
            multiply_element(type, sum, &x, of, false);
            w->used[at / 64] = word | bit;
            if (listed) put_index(to->columns, to->wide, n++, at);
            else if (!word) w->words[at / 4096] |= (uint64_t)1 << at / 64 % 64;
        }
    }
    return n - start;
}

/* Writes the sums whose bits are set, in the order of the columns, and clears the bits. Returns how many sums
 * it wrote. */
INLINE int64_t put_by_bits(duet_dtype type, const product_row *w, const target *to, reach all, int64_t n)
{
    const int64_t start = n;
    for (int64_t i = all.low / 4096; i <= all.high / 4096; i++) {
        uint64_t words = w->words[i];
        w->words[i] = 0;
        for (; words; words &= words - 1) {
            const int64_t word = i * 64 + __builtin_ctzll(words);
            uint64_t bits = w->used[word];
            w->used[word] = 0;
            for (; bits; bits &= bits - 1, n++) {
                const int64_t at = word * 64 + __builtin_ctzll(bits);
                put_element(type, to, n, at, element_at(w->sum, type, at));
            }
        }
    }
    return n - start;
}

#define BY_NUMBER(T)                                                                                         \
    static int by_number_##T(const void *a, const void *b)                                                   \
    {                                                                                                        \
        const T x = *(const T *)a, y = *(const T *)b;                                                        \
        return (x > y) - (x < y);                                                                            \
    }
BY_NUMBER(int32_t)
BY_NUMBER(int64_t)

static void sort_list(void *columns, bool wide, int64_t n, int64_t count)
{
    if (count > 32) {
        qsort((char *)columns + n * (wide ? 8 : 4), (size_t)count, wide ? 8 : 4,
              wide ? by_number_int64_t : by_number_int32_t);
        return;
    }
    for (int64_t i = n + 1; i < n + count; i++) {
        const int64_t x = index_in(columns, wide, i);
        int64_t j = i;
        for (; j > n && index_in(columns, wide, j - 1) > x; j--)
            put_index(columns, wide, j, index_in(columns, wide, j - 1));
        put_index(columns, wide, j, x);
    }
}

/* Writes the sums of the listed columns, and clears the bits. */
INLINE void put_by_list(duet_dtype type, const product_row *w, const target *to, int64_t n, int64_t count)
{
    sort_list(to->columns, to->wide, n, count);
    for (int64_t i = n; i < n + count; i++) {
        const int64_t at = index_in(to->columns, to->wide, i);
        copy_element(type, element_at(to->values, type, i), element_at(w->sum, type, at));
        w->used[at / 64] = 0;
    }
}

/* Columns that are sorted as a list. */
#define FEW 8

/* Returns the number of elements. known: this number, if they were counted. The bits tell the order of the
 * columns, unless these are few or too far apart. */
INLINE int64_t put_row(duet_dtype type, bool wide, const product *p, const product_row *w, const target *to,
                       int64_t from, int64_t end, int64_t n, int64_t known)
{
    if (end - from == 1)
        return put_multiples(type, wide, p, to, number_at(type, p->a.values, from),
                             b_row_of(&p->b.c, wide, csr_column(&p->a.c, from)), n) -
               n;
    if (end - from == 2) return put_two(type, wide, p, to, from, n) - n;
    const reach all = reach_of(p, wide, from, end);
    if (!all.products) return 0;
    if (all.is_run || all.high - all.low == known - 1) {
        put_run(type, wide, p, w, to, from, end, all.low, all.high - all.low + 1, n);
        return all.high - all.low + 1;
    }
    if (all.products <= FEW || (all.high - all.low) / 4096 > 16 * all.products) {
        const int64_t count = add_rows(type, wide, true, p, w, to, from, end, n);
        put_by_list(type, w, to, n, count);
        return count;
    }
    (void)add_rows(type, wide, false, p, w, to, from, end, n);
    return put_by_bits(type, w, to, all, n);
}

INLINE int put_rows(duet_dtype type, bool wide, const product *p, int part)
{
    const product_row w = product_row_of(p, part);
    const target to = { p->columns, p->values, p->wide };
    int64_t n = p->start[part];
    memset(w.used, 0, all_words(p) * sizeof *w.used);
    for (int64_t r = p->parts.first[part]; r < p->parts.first[part + 1]; r++) {
        const int64_t from = csr_offset(&p->a.c, r), end = csr_offset(&p->a.c, r + 1);
        const int64_t known = p->counted ? p->offset[r + 1] - p->offset[r] : 0;
        const int64_t count = from < end ? put_row(type, wide, p, &w, &to, from, end, n, known) : 0;
        if (!p->counted) p->offset[r + 1] = count;
        n += count;
    }
    return 0;
}

void product_fill(void *of, int part)
{
    const product *p = of;
    (void)FOR_TYPES (put_rows, p->a.type, p->b.c.wide, p, part);
}

/* fuzz_market.c - the fuzz target of duet_load_market and duet_sparse_load_market. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check_loaded(duet_load_market(file_of(bytes, size)), 2 * size + 2);
    duet_sparse *s = duet_sparse_load_market(file_of(bytes, size));
    if (s && duet_sparse_count(s) > (int64_t)(2 * size)) abort(); /* an element takes more than a byte */
    duet_matrix *x = s && duet_sparse_columns(s) < 1000000
                         ? duet_new(duet_sparse_type(s), duet_sparse_columns(s))
                         : NULL,
                *y = x ? duet_eval(duet_sparse_matmul(s, x)) : NULL;
    if (x && !y) abort();
    duet_free(&x, &y);
    duet_sparse_free(&s);
    return 0;
}

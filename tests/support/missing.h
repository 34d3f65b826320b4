/* missing.h - operators that a build may be without, because a library was not there. */
#ifndef MISSING_H
#define MISSING_H

#include <duet/duet.h>
#include <string.h>

static inline bool is_missing(const char *name)
{
    if (strcmp(name, "csr_solve")) return false;
    duet_matrix *one = duet_ones(DUET_F64, 1, 1), *x = duet_new(DUET_F64, 1);
    duet_sparse *s = duet_sparse_from_dense(one);
    const bool missing = duet_set(x, duet_sparse_solve(s, duet_reshape(one, 1))) == DUET_UNSUPPORTED;
    duet_sparse_free(&s);
    duet_free(&one, &x);
    return missing;
}

#endif

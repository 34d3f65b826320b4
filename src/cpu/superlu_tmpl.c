/* superlu_tmpl.c - solves a system with SuperLU: columns are ordered by COLAMD, rows by partial pivoting.
 * Template, for f32, f64, c64 and c128. The header of each type defines the same names, so it is in a file
 * of its own. */
#include "superlu.h"
#include <stddef.h>

#ifdef SUPERLU_FOLDER
#define HEADER(name) <superlu/name>
#else
#define HEADER(name) <name>
#endif
#if defined TYPE_f32
#include HEADER(slu_sdefs.h)
#define OF(name) s##name
#define KIND     SLU_S
#elif defined TYPE_f64
#include HEADER(slu_ddefs.h)
#define OF(name) d##name
#define KIND     SLU_D
#elif defined TYPE_c64
#include HEADER(slu_cdefs.h)
#define OF(name) c##name
#define KIND     SLU_C
#else
#include HEADER(slu_zdefs.h)
#define OF(name) z##name
#define KIND     SLU_Z
#endif
#define PASTED(a, b) a##_##b
#define PASTE(a, b)  PASTED(a, b)

/* The transpose in compressed columns, which are the rows of the matrix. */
static SuperMatrix transposed(const superlu_system *s, NCformat *store)
{
    *store = (NCformat){ s->count, (void *)s->values, (int *)s->column, (int *)s->offset };
    return (SuperMatrix){ SLU_NC, KIND, SLU_GE, s->n, s->n, store };
}

int PASTE(superlu, TYPE)(const superlu_system *s)
{
    NCformat matrix;
    DNformat right = { s->n, s->x };
    SuperMatrix a = transposed(s, &matrix), b = { SLU_DN, KIND, SLU_GE, s->n, s->sides, &right }, ordered,
                l = { .Store = NULL }, u = { .Store = NULL };
    GlobalLU_t global;
    SuperLUStat_t statistics;
    superlu_options_t options;
    int *by_column = s->work, *by_row = by_column + s->n, *tree = by_row + s->n, info = 0;
    set_default_options(&options);
    StatInit(&statistics);
    get_perm_c(COLAMD, &a, by_column);
    sp_preorder(&options, &a, by_column, tree, &ordered);
    OF(gstrf)
    (&options, &ordered, sp_ienv(2), sp_ienv(1), tree, NULL, 0, by_column, by_row, &l, &u, &global,
     &statistics, &info);
    if (!info) OF(gstrs)(s->transposed ? NOTRANS : TRANS, &l, &u, by_column, by_row, &b, &statistics, &info);
    Destroy_CompCol_Permuted(&ordered);
    if (l.Store) Destroy_SuperNode_Matrix(&l);
    if (u.Store) Destroy_CompCol_Matrix(&u);
    StatFree(&statistics);
    return info > s->n ? SUPERLU_NO_MEMORY : info;
}

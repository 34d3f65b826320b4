/* structured_set.c - duet_declare, and assignments to matrices with a structure. A formula that may break the
 * structure is computed into another matrix first. Then either its elements are checked, or, where only
 * rounding errors can break it, the elements that the structure determines replace those of the formula. */
#include "structured_set.h"
#include "run_statement.h"
#include "statement.h"
#include "structure.h"
#include "structured.h"
#include <math.h>

#undef DUET_HERE
#define DUET_HERE site

/* ---- formulas of a matrix ---- */

static duet_expr both(duet_expr *all, duet_expr e, int *count, const char *site)
{
    *all = (*count)++ ? duet_logical_and(*all, e) : e;
    return *all;
}

/* Has x all these properties? One bool. NaN is not equal to NaN. */
static duet_expr holds(const duet_matrix *x, unsigned p, const char *site)
{
    duet_expr all = { 0 };
    int count = 0;
    if (p & ZERO_ABOVE) both(&all, duet_all(duet_equal(duet_triu(x, 1), 0)), &count, site);
    if (p & ZERO_BELOW) both(&all, duet_all(duet_equal(duet_tril(x, -1), 0)), &count, site);
    if (p & ZERO_DIAGONAL) both(&all, duet_all(duet_equal(duet_diagonal_of(x, 0), 0)), &count, site);
    if (p & ONE_DIAGONAL) both(&all, duet_all(duet_equal(duet_diagonal_of(x, 0), 1)), &count, site);
    if (p & SYMMETRIC) both(&all, duet_is_symmetric(x), &count, site);
    if (p & HERMITIAN) both(&all, duet_all(duet_equal(x, duet_conj(duet_transpose(x)))), &count, site);
    return all;
}

static duet_expr ones_diagonal(const duet_matrix *x, const char *site)
{
    const duet_expr one = duet_cast(duet_of_number(1), x->at.type);
    return duet_diag(duet_broadcast(one, x->at.size[0]), 0);
}

/* The lower triangle of x, and its mirror image above. The diagonal of a Hermitian matrix is real. */
static duet_expr mirrored(const duet_matrix *x, unsigned p, const char *site)
{
    const bool conjugates = dtype_is_complex(x->at.type) && p & HERMITIAN;
    if (!conjugates) return duet_add(duet_tril(x, 0), duet_triu(duet_transpose(x), 1));
    const duet_expr diagonal = duet_complex(duet_real(duet_diagonal_of(x, 0)), 0);
    const duet_expr above = duet_triu(duet_conj(duet_transpose(x)), 1);
    return duet_add(duet_add(duet_tril(x, -1), above), duet_diag(diagonal, 0));
}

/* x, with the elements that the properties determine. */
static duet_expr imposed(const duet_matrix *x, unsigned p, const char *site)
{
    const int side = p & (ZERO_DIAGONAL | ONE_DIAGONAL) ? 1 : 0;
    if (!(p & (ZERO_ABOVE | ZERO_BELOW))) return mirrored(x, p, site);
    duet_expr e = p & ZERO_ABOVE ? duet_tril(x, -side) : duet_triu(x, side);
    if (p & ZERO_ABOVE && p & ZERO_BELOW) e = duet_triu(e, 0);
    return p & ONE_DIAGONAL ? duet_add(e, ones_diagonal(x, site)) : e;
}

/* ---- the error ---- */

static void put_element(char *text, size_t room, duet_dtype type, const void *p)
{
    double part[2];
    const double x = element_value(type, p, part);
    if (dtype_is_complex(type)) snprintf(text, room, "%.9g%+.9gi", x, part[1]);
    else snprintf(text, room, "%.9g", x);
}

static const void *element_at(const duet_matrix *m, const void *p, int64_t i, int64_t j)
{
    const int64_t at = i * m->at.stride[0] + j * m->at.stride[1];
    return (const char *)p + at * (int64_t)dtypes[m->at.type].bytes;
}

/* verb: "is" or "would be". b: an element of x that breaks the structure that is named. */
static __attribute__((cold)) duet_status breaks(const char *who, const char *verb, const duet_matrix *x,
                                                const void *p, const broken_element *b, duet_structure named)
{
    char text[SHAPE_TEXT], here[64], across[64], rule[160] = "";
    shape_text(text, x->at.type, x->at.rank, x->at.size);
    put_element(here, sizeof here, x->at.type, element_at(x, p, b->row, b->column));
    put_element(across, sizeof across, x->at.type, element_at(x, p, b->column, b->row));
    switch (b->property) {
    case ZERO_ABOVE: snprintf(rule, sizeof rule, "elements above the diagonal must be 0"); break;
    case ZERO_BELOW: snprintf(rule, sizeof rule, "elements below the diagonal must be 0"); break;
    case ZERO_DIAGONAL: snprintf(rule, sizeof rule, "elements on the diagonal must be 0"); break;
    case ONE_DIAGONAL: snprintf(rule, sizeof rule, "elements on the diagonal must be 1"); break;
    case SYMMETRIC:
        snprintf(rule, sizeof rule, "it must be equal to element [%lld, %lld], %s", (long long)b->column,
                 (long long)b->row, across);
        break;
    default:
        snprintf(rule, sizeof rule, "it must be the conjugate of element [%lld, %lld], %s",
                 (long long)b->column, (long long)b->row, across);
    }
    return fail(DUET_BAD_ARGUMENT, "%s(m: %s): element [%lld, %lld] %s %s, but m is %s, so %s", who, text,
                (long long)b->row, (long long)b->column, verb, here, structure_name(named), rule);
}

/* Checks the elements of x, which are those that m has or will have. */
static duet_status check_elements(const char *who, const char *verb, const duet_matrix *x, unsigned p,
                                  duet_structure named)
{
    uint8_t all = 0;
    TRY(duet_item_at(holds(x, p, NULL), DUET_BOOL, &all, NULL));
    if (all) return DUET_OK;
    const void *at = (duet_read)(x);
    if (!at) return duet_error_status();
    const broken_element b = structure_broken(x, at, p);
    return b.property ? breaks(who, verb, x, at, &b, named) : DUET_OK; /* only NaN is equal to nothing */
}

/* ---- assignments ---- */

bool structure_is_kept(const duet_matrix *m, const node *n)
{
    const unsigned p = matrix_properties(m);
    return p && n->rank == 2 && n->size[0] == m->at.size[0] && n->size[1] == m->at.size[1] &&
           (properties_of_node(n).exact & p) == p;
}

duet_status structure_must_be_kept(const char *who, const duet_matrix *m, const node *n)
{
    char text[SHAPE_TEXT];
    if (structure_is_kept(m, n)) return DUET_OK;
    return fail(
        DUET_UNSUPPORTED,
        "%s(%s): the matrix is declared %s, and the formula may break that; here the elements cannot be "
        "checked: assign the formula with duet_set, or use duet_tril, duet_triu or another operator "
        "whose result has the structure",
        who, shape_text(text, m->at.type, m->at.rank, m->at.size),
        structure_name(structure_named(storage_properties(m->storage))));
}

/* Would every result of e have the structure of m but for rounding errors? */
static bool is_likely_kept(const duet_matrix *m, duet_expr e)
{
    formula f;
    const unsigned p = matrix_properties(m);
    if (!p || formula_of(e, "", &f) != DUET_OK) return false;
    const node *n = &f.nodes[f.count - 1];
    return n->rank == 2 && n->size[0] == m->at.size[0] && n->size[1] == m->at.size[1] &&
           (properties_of_node(n).likely & p) == p;
}

static duet_status assign_and_spend(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    const duet_status s = statement_assign(who, place, m, e);
    formula_spend(e, NULL);
    return s;
}

/* to: a matrix with the elements of whole, which m is, or is a view of. Assigns e to the same part of it. */
static duet_status assign_to_copy(const char *who, duet_place place, const duet_matrix *m, duet_matrix *to,
                                  const duet_matrix *whole, duet_expr e)
{
    if (!matrix_fills(m)) TRY(assign_and_spend(who, place, to, duet_of_matrix(whole)));
    duet_matrix *part = matrix_share(to->storage, &m->at, m->offset);
    if (!part) return DUET_NO_MEMORY;
    const duet_status s = statement_assign(who, place, part, e);
    (duet_free)(&part);
    return s;
}

static duet_status assign_by_copy(const char *who, duet_place place, const duet_matrix *m, duet_matrix *copy,
                                  duet_matrix *whole, duet_expr e)
{
    const unsigned p = storage_properties(m->storage);
    const bool likely_kept = is_likely_kept(m, e);
    TRY(assign_to_copy(who, place, m, copy, whole, e));
    if (likely_kept) return assign_and_spend(who, place, whole, imposed(copy, p, NULL));
    TRY(check_elements(who, "would be", copy, p, structure_named(p)));
    return assign_and_spend(who, place, whole, duet_of_matrix(copy));
}

/* Prints the plan of e and what follows it. */
static duet_status explain_copy(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    FILE *out = thread_get()->explaining;
    const bool likely_kept = is_likely_kept(m, e);
    TRY(statement_assign(who, place, m, e));
    const char *name = structure_name(structure_named(storage_properties(m->storage)));
    fprintf(out, "  into a temporary matrix first, because the destination is declared %s: %s\n", name,
            likely_kept ? "one triangle determines the other" : "its elements are checked");
    return DUET_OK;
}

duet_status structured_assign(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    thread *t = thread_get();
    formula f;
    TRY(formula_of(e, who, &f));
    if (t->explaining) return explain_copy(who, place, m, e);
    if (t->recording) return structure_must_be_kept(who, m, &f.nodes[f.count - 1]);
    const int64_t elements = (int64_t)(m->storage->bytes / dtypes[m->at.type].bytes),
                  n = (int64_t)llround(sqrt((double)elements));
    layout at;
    layout_dense(&at, m->at.type, 2, (const int64_t[]){ n, n });
    duet_matrix *copy = matrix_new(who, m->at.type, 2, (const int64_t[]){ n, n }),
                *whole = copy ? matrix_share(m->storage, &at, 0) : NULL;
    duet_status s = whole ? assign_by_copy(who, place, m, copy, whole, e) : DUET_NO_MEMORY;
    (duet_free)(&whole);
    (duet_free)(&copy);
    return s;
}

/* ---- duet_declare ---- */

static duet_status declare(duet_matrix *m, duet_structure structure)
{
    const char *who = "duet_declare";
    char text[SHAPE_TEXT];
    TRY(matrix_check(who, m));
    unsigned p = structure_properties(structure);
    if (!p && structure != DUET_GENERAL)
        return fail(DUET_BAD_ARGUMENT, "%s: structure (%d) is not a duet_structure", who, (int)structure);
    TRY(structure_fits(who, m));
    if (m->at.size[0] > 1 && m->at.stride[0] == 1) p = properties_transposed(p);
    if (p == HERMITIAN && !dtype_is_complex(m->at.type)) p = SYMMETRIC;
    const unsigned before = storage_properties(m->storage);
    if (before == p) return DUET_OK;
    if (before)
        return fail(DUET_BAD_ARGUMENT,
                    "%s(m: %s): m is declared %s already, for as long as it exists; copy m", who,
                    shape_text(text, m->at.type, m->at.rank, m->at.size),
                    structure_name(structure_named(before)));
    if (m->at.size[0] > 1 && m->at.stride[0] == 1)
        TRY(check_elements(who, "is", m, properties_transposed(p), structure));
    else TRY(check_elements(who, "is", m, p, structure));
    __atomic_store_n(&m->storage->properties, (uint8_t)p, __ATOMIC_RELAXED);
    return DUET_OK;
}

duet_status(duet_declare)(duet_matrix *m, duet_structure structure)
{
    duet_recording *r = recording_pause();
    const duet_status s = declare(m, structure);
    recording_resume(r);
    return s;
}

duet_structure duet_structure_of(const duet_matrix *m)
{
    if (!m || !m->serial) return DUET_GENERAL;
    return structure_named(matrix_properties(m));
}

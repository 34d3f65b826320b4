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
    if (p & ZERO_ABOVE) both(&all, duet_is_lower_triangular(x), &count, site);
    if (p & ZERO_BELOW) both(&all, duet_is_upper_triangular(x), &count, site);
    if (p & ZERO_DIAGONAL) both(&all, duet_all(duet_equal(duet_diagonal_of(x, 0), 0)), &count, site);
    if (p & ONE_DIAGONAL) both(&all, duet_all(duet_equal(duet_diagonal_of(x, 0), 1)), &count, site);
    if (p & SYMMETRIC) both(&all, duet_is_symmetric(x), &count, site);
    if (p & HERMITIAN) both(&all, duet_is_hermitian(x), &count, site);
    return all;
}

/* Where j - i <= k in n x n elements. */
static duet_expr is_below(int64_t n, int64_t k, const char *site)
{
    return duet_tril(duet_broadcast(duet_cast(1, DUET_BOOL), n, n), k);
}

static duet_expr is_on_diagonal(int64_t n, const char *site)
{
    return duet_diag(duet_broadcast(duet_cast(1, DUET_BOOL), n), 0);
}

/* The lower triangle of x, and its mirror image above. The diagonal of a Hermitian matrix is real. */
static duet_expr mirrored(const duet_matrix *x, unsigned p, const char *site)
{
    const int64_t n = x->at.size[0];
    const bool conjugates = dtype_is_complex(x->at.type) && p & HERMITIAN;
    if (!conjugates) return duet_where(is_below(n, 0, site), x, duet_transpose(x));
    const duet_expr all = duet_where(is_below(n, 0, site), x, duet_conj(duet_transpose(x)));
    return duet_where(is_on_diagonal(n, site), duet_complex(duet_real(x), 0), all);
}

/* x, with the elements that the properties determine. */
static duet_expr imposed(const duet_matrix *x, unsigned p, const char *site)
{
    const int side = p & ZERO_DIAGONAL ? 1 : 0;
    if (!(p & (ZERO_ABOVE | ZERO_BELOW))) return mirrored(x, p, site);
    duet_expr e = p & ZERO_ABOVE ? duet_tril(x, -side) : duet_triu(x, side);
    if (p & ZERO_ABOVE && p & ZERO_BELOW) e = duet_triu(e, 0);
    if (!(p & ONE_DIAGONAL)) return e;
    return duet_where(is_on_diagonal(x->at.size[0], site), duet_cast(1, x->at.type), e);
}

/* ---- the error ---- */

static void put_element(char *text, size_t room, const duet_matrix *x, const void *p, int64_t i, int64_t j)
{
    double part[2];
    const int64_t at = i * x->at.stride[0] + j * x->at.stride[1];
    const duet_dtype type = x->at.type;
    const void *element = (const char *)p + at * (int64_t)dtypes[type].bytes;
    const double real = number_value_of(type, element, part);
    if (dtype_is_complex(type)) snprintf(text, room, "%.17g%+.17gi", real, part[1]);
    else if (type == DUET_I64) snprintf(text, room, "%lld", (long long)*(const int64_t *)element);
    else if (type == DUET_U64) snprintf(text, room, "%llu", (unsigned long long)*(const uint64_t *)element);
    else snprintf(text, room, "%.17g", real);
}

static const char *rule_of(unsigned property)
{
    switch (property) {
    case ZERO_ABOVE: return "elements above the diagonal must be 0";
    case ZERO_BELOW: return "elements below the diagonal must be 0";
    case ZERO_DIAGONAL: return "elements on the diagonal must be 0";
    case ONE_DIAGONAL: return "elements on the diagonal must be 1";
    case SYMMETRIC: return "it must be equal to";
    default: return "it must be the conjugate of";
    }
}

/* m: as the user passed it. b: an element of x that breaks `properties`. x has the elements that the storage
 * of m has or will have, in row-major order. A transposed m is described as it is, a view of a part by the
 * matrix that it is a part of. */
static __attribute__((cold)) duet_status breaks(const char *who, const char *verb, const duet_matrix *m,
                                                const duet_matrix *x, const void *p, broken_element b,
                                                unsigned properties)
{
    const bool whole = m->at.rank == 2 && matrix_fills(m) && m->at.size[0] == m->at.size[1],
               turned = whole && matrix_is_turned(m);
    char text[SHAPE_TEXT], here[64], across[64], other[160] = "";
    const char *whose = whole ? "m is" : "the matrix that m is a view of is";
    put_element(here, sizeof here, x, p, b.row, b.column);
    put_element(across, sizeof across, x, p, b.column, b.row);
    if (turned) {
        const int64_t row = b.row;
        b = (broken_element){ b.column, row, properties_transposed(b.property) };
        properties = properties_transposed(properties);
    }
    if (b.property & (SYMMETRIC | HERMITIAN))
        snprintf(other, sizeof other, " element [%lld, %lld], %s", (long long)b.column, (long long)b.row,
                 across);
    return fail(DUET_BAD_ARGUMENT, "%s(m: %s): element [%lld, %lld]%s %s %s, but %s %s, so %s%s", who,
                shape_text(text, m->at.type, m->at.rank, m->at.size), (long long)b.row, (long long)b.column,
                whole ? "" : " of the matrix that m is a view of", verb, here, whole ? whose : "that is",
                structure_name(structure_named(properties)), rule_of(b.property), other);
}

/* Checks the properties p of x, as those of the storage of m. The user's statement goes on after it. */
static duet_status check_elements(const char *who, const char *verb, const duet_matrix *m,
                                  const duet_matrix *x, unsigned p)
{
    uint8_t all = 0;
    thread *t = thread_get();
    const char *site = t->site;
    const duet_status s = duet_item_at(holds(x, p, NULL), DUET_BOOL, &all, NULL);
    t->site = site;
    if (s != DUET_OK || all) return s;
    const void *at = (duet_read)(x);
    if (!at) return duet_error_status();
    const broken_element b = structure_broken(x, at, p);
    return b.property ? breaks(who, verb, m, x, at, b, p) : DUET_OK; /* only NaN is equal to nothing */
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
    TRY(check_elements(who, "would be", m, copy, p));
    return assign_and_spend(who, place, whole, duet_of_matrix(copy));
}

void structure_explain(FILE *out, const duet_matrix *m, duet_expr e)
{
    const char *then = "its elements are checked";
    if (is_likely_kept(m, e))
        then = matrix_properties(m) & (ZERO_ABOVE | ZERO_BELOW)
                   ? "the elements that this determines are set"
                   : "one triangle is the mirror image of the other";
    fprintf(out, "  into a temporary matrix first, because the destination is declared %s: %s\n",
            structure_name(structure_named(storage_properties(m->storage))), then);
}

/* Prints the plan of e and what follows it. */
static duet_status explain_copy(const char *who, duet_place place, duet_matrix *m, duet_expr e)
{
    TRY(statement_assign(who, place, m, e));
    structure_explain(thread_get()->explaining, m, e);
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
    if (m->storage->split)
        return fail(DUET_UNSUPPORTED, "%s: m is on a group, and matrices on a group have no structure", who);
    TRY(structure_fits(who, m));
    const bool turned = matrix_is_turned(m);
    if (turned) p = properties_transposed(p);
    if (p == HERMITIAN && !dtype_is_complex(m->at.type)) p = SYMMETRIC;
    uint8_t before = storage_properties(m->storage);
    if (before == p) return DUET_OK;
    if (!before) {
        duet_matrix *rows = turned ? (duet_transposed)(m) : NULL;
        duet_status s = turned && !rows ? DUET_NO_MEMORY : check_elements(who, "is", m, turned ? rows : m, p);
        (duet_free)(&rows);
        if (s != DUET_OK) return s;
        if (__atomic_compare_exchange_n(&m->storage->properties, &before, (uint8_t)p, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            before == p)
            return DUET_OK;
    }
    return fail(DUET_BAD_ARGUMENT,
                "%s(m: %s): m is already declared %s, and a structure cannot be changed; use a copy of m",
                who, shape_text(text, m->at.type, m->at.rank, m->at.size),
                structure_name(structure_named(turned ? properties_transposed(before) : before)));
}

/* It is neither recorded nor explained. */
duet_status(duet_declare)(duet_matrix *m, duet_structure structure)
{
    thread *t = thread_get();
    FILE *explaining = t->explaining;
    t->explaining = NULL;
    duet_recording *r = recording_pause();
    const duet_status s = declare(m, structure);
    recording_resume(r);
    t->explaining = explaining;
    return s;
}

duet_structure duet_structure_of(const duet_matrix *m)
{
    if (!m || !m->serial) return DUET_GENERAL;
    return structure_named(matrix_properties(m));
}

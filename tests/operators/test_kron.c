/* test_kron.c - the Kronecker product on every machine against a loop over all elements of both operands, to
 * the bit. */
#include "scan_sort_trial.h"

typedef struct operands {
    const duet_matrix *x, *y;
} operands;

static duet_expr ask_kron(const void *of)
{
    const operands *o = of;
    return duet_kron(o->x, o->y);
}

/* ---- the reference ---- */

/* The product of element i of x and element j of y, as element k of out. */
static void multiply(const list *x, int64_t i, const list *y, int64_t j, list *out, int64_t k)
{
    const long double u = list_number(x, i), v = list_number(y, j);
    if (x->type == DUET_F64) *(double *)list_place(out, k) = (double)u * (double)v;
    else if (is_floating(x->type)) list_put(out, k, u * v); /* exact before it is rounded */
    else {
        const list a = list_cast(x, DUET_I64), b = list_cast(y, DUET_I64);
        list one = list_new(DUET_I64, 0, NULL);
        *(uint64_t *)one.at = ((const uint64_t *)a.at)[i] * ((const uint64_t *)b.at)[j];
        list product = list_cast(&one, x->type);
        memcpy(list_place(out, k), product.at, list_each(out));
        free(a.at);
        free(b.at);
        free(one.at);
        free(product.at);
    }
}

static void multiply_complex(const list *x, int64_t i, const list *y, int64_t j, list *out, int64_t k)
{
    if (x->type == DUET_C64) {
        const float *u = list_place(x, i), *v = list_place(y, j);
        float *to = list_place(out, k);
        to[0] = u[0] * v[0] - u[1] * v[1];
        to[1] = u[0] * v[1] + u[1] * v[0];
    } else {
        const double *u = list_place(x, i), *v = list_place(y, j);
        double *to = list_place(out, k);
        to[0] = u[0] * v[0] - u[1] * v[1];
        to[1] = u[0] * v[1] + u[1] * v[0];
    }
}

static int64_t size_of(const list *l, int from_end)
{
    if (from_end < l->rank) return l->size[l->rank - 1 - from_end];
    return 1;
}

/* As numpy.kron has it: missing leading axes have one element. */
static list kron_of(const list *x, const list *y)
{
    const int rank = x->rank > y->rank ? x->rank : y->rank;
    int64_t size[DUET_RANK_MAX];
    for (int a = 0; a < rank; a++) size[rank - 1 - a] = size_of(x, a) * size_of(y, a);
    list out = list_new(x->type, rank, size);
    for (int64_t k = 0; k < out.count; k++) {
        int64_t left = k, i = 0, j = 0, x_step = 1, y_step = 1;
        for (int a = 0; a < rank; a++) {
            const int64_t at = left % size_of(&out, a), n = size_of(y, a);
            i += at / n * x_step;
            j += at % n * y_step;
            x_step *= size_of(x, a);
            y_step *= n;
            left /= size_of(&out, a);
        }
        (dtype_is_complex(x->type) ? multiply_complex : multiply)(x, i, y, j, &out, k);
    }
    return out;
}

/* ---- trials ---- */

static void fill(const sight *s, int kind)
{
    duet_matrix *all = s->whole ? s->whole : s->m;
    if (!dtype_is_complex(duet_type(all))) {
        sight_fill(s, kind);
        return;
    }
    void *p = duet_overwrite(all);
    for (int64_t i = 0; p && i < 2 * duet_count(all); i++) {
        const double v = (draw(2000001) - 1000000) / 997.0;
        if (duet_type(all) == DUET_C64) ((float *)p)[i] = (float)v;
        else ((double *)p)[i] = v;
    }
}

static void trial(duet_dtype type, const sizes *m, const sizes *n, int views, int kind)
{
    sight x = sight_new(type, m->rank, m->size, views % SIGHTS),
          y = sight_new(type, n->rank, n->size, views / SIGHTS % SIGHTS);
    fill(&x, kind);
    fill(&y, kind);
    list a = list_of(x.m), b = list_of(y.m);
    everywhere(ask_kron, &(operands){ x.m, y.m }, kron_of(&a, &b), "kron");
    list_free(&a);
    list_free(&b);
    sight_free(&x);
    sight_free(&y);
}

static const duet_dtype types[] = { DUET_F32, DUET_F64, DUET_I64,  DUET_F16, DUET_BF16,
                                    DUET_I8,  DUET_I16, DUET_I32,  DUET_U8,  DUET_U16,
                                    DUET_U32, DUET_U64, DUET_BOOL, DUET_C64, DUET_C128 };

static void shapes_and_views(void)
{
    static const sizes shapes[] = { SIZES(),     SIZES(1),    SIZES(4),       SIZES(0),         SIZES(2, 3),
                                    SIZES(5, 1), SIZES(0, 3), SIZES(2, 1, 3), SIZES(2, 2, 1, 3) };
    int views = 0;
    for (int t = 0; t < LENGTH_OF(types); t++)
        for (int i = 0; i < LENGTH_OF(shapes); i++)
            for (int j = 0; j < LENGTH_OF(shapes); j++, views++)
                if (t == 0 || (i + j) % 3 == t % 3) trial(types[t], &shapes[i], &shapes[j], views, views % 2);
    tap_point("types, equal and different ranks, empty operands, views");
}

static void random_trials(void)
{
    for (int n = 0; n < (quick ? 30 : 200); n++) {
        sizes m = { .rank = 1 + draw(3) }, k = { .rank = 1 + draw(3) };
        for (int a = 0; a < m.rank; a++) m.size[a] = 1 + draw(6);
        for (int a = 0; a < k.rank; a++) k.size[a] = 1 + draw(6);
        trial(types[draw(3)], &m, &k, draw(9), draw(FILLINGS));
    }
    trial(DUET_F32, &(sizes)SIZES(40, 30), &(sizes)SIZES(20, 70), 0, ANY);
    tap_point("random shapes with special values");
}

/* Operands that are formulas, numbers, or of other types; and a result that something else follows. */
static void formulas(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 2), *y = duet_new(DUET_F32, 1, 3), *z = duet_new(DUET_F64, 2, 6);
    float *p = duet_overwrite(x), *q = duet_overwrite(y);
    for (int i = 0; i < 4; i++) p[i] = (float)(i + 1);
    for (int i = 0; i < 3; i++) q[i] = (float)(i - 1);
    for (int k = 0; k < n_places; k++) {
        CHECK(duet_set_on(places[k], z, duet_add(duet_kron(duet_neg(x), duet_add(y, 2)), 1)) == DUET_OK, "%s",
              duet_error());
        const double *r = duet_read(z);
        for (int i = 0; r && i < 12; i++)
            CHECK(r[i] == 1 - (i / 6 * 2 + i % 6 / 3 + 1) * (i % 3 + 1.0), "element %d: %g", i, r[i]);
        duet_matrix *same = duet_new(DUET_F32, 2, 2);
        CHECK(duet_set_on(places[k], same, duet_kron(3, x)) == DUET_OK, "%s", duet_error());
        CHECK(((const float *)duet_read(same))[3] == 12, "the Kronecker product with a number is wrong");
        duet_free(&same);
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    tap_point("inside formulas");
}

static void errors(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 2), *to = duet_new(DUET_F32, 5, 4);
    FAILS(duet_set(to, duet_kron(x, x)), DUET_BAD_SHAPE, "shape");
    duet_matrix *long_one = duet_new(DUET_F32, 0, INT64_C(1) << 40);
    if (long_one) FAILS(duet_set(to, duet_kron(long_one, long_one)), DUET_BAD_SHAPE, "kron");
    duet_free(&x);
    duet_free(&to);
    duet_free(&long_one);
    tap_point("invalid arguments");
}

int main(int argc, char **argv)
{
    quick = is_quick(argc, argv);
    n_places = list_places(places);
    shapes_and_views();
    random_trials();
    formulas();
    errors();
    return tap_end();
}

/* test_einsum.c - einsum of one to four operands: repeated letters, letters that are summed alone, ellipses,
 * sizes of 1 that broadcast, and results without an arrow, against a loop over all indices. Gradients are
 * compared with those of the loop. */
#include "plain_array.h"

enum { LABELS = 8, DOTS = 2, ALL = LABELS + DOTS, OPERANDS = 4 };

static const char letters[LABELS + 1] = "abcABkij";

/* A random formula: the labels of the axes of each operand and of the result. Labels from LABELS on are the
 * axes of an ellipsis, the first of them the last axis. */
typedef struct question {
    int count, rank[OPERANDS], label[OPERANDS][DUET_RANK_MAX], out_rank, out[DUET_RANK_MAX];
    int64_t size[ALL];
    char text[200];
} question;

static char *put_group(char *p, const int *label, int rank, bool always_dots)
{
    bool dots = false;
    for (int a = 0; a < rank; a++) {
        if (label[a] < LABELS) *p++ = letters[label[a]];
        else if (!dots) {
            p += sprintf(p, "...");
            dots = true;
        }
        if (!between(0, 9)) *p++ = ' ';
    }
    if (always_dots && !dots) p += sprintf(p, "...");
    return p;
}

static int in_all(const question *q, int label)
{
    int n = 0;
    for (int k = 0; k < q->count; k++)
        for (int a = 0; a < q->rank[k]; a++) n += q->label[k][a] == label;
    return n;
}

static void put_dots(int *label, int *rank, int dots)
{
    const int at = (int)between(0, *rank);
    memmove(label + at + dots, label + at, sizeof *label * (size_t)(*rank - at));
    for (int d = 0; d < dots; d++) label[at + d] = LABELS + dots - 1 - d;
    *rank += dots;
}

static void draw(question *q, int least)
{
    const bool dotted = !between(0, 3), arrow = between(0, 3) > 0;
    int most_dots = 0;
    *q = (question){ .count = (int)between(least, OPERANDS) };
    for (int l = 0; l < ALL; l++) q->size[l] = between(between(0, 19) > 0, 3);
    char *p = q->text;
    for (int k = 0; k < q->count; k++) {
        const int own = (int)between(0, q->count > 2 ? 2 : 3);
        for (int a = 0; a < own; a++)
            q->label[k][q->rank[k]++] = (int)between(0, q->count > 2 ? 5 : LABELS - 1);
        const int dots = dotted ? (int)between(0, DOTS) : 0;
        if (dots) put_dots(q->label[k], &q->rank[k], dots);
        most_dots = dots > most_dots ? dots : most_dots;
        if (k) *p++ = ',';
        p = put_group(p, q->label[k], q->rank[k], dotted && !dots);
    }
    if (arrow) {
        for (int l = 0; l < LABELS; l++)
            if (in_all(q, l) && between(0, 1)) {
                const int at = (int)between(0, q->out_rank);
                memmove(q->out + at + 1, q->out + at, sizeof q->out[0] * (size_t)(q->out_rank++ - at));
                q->out[at] = l;
            }
        if (most_dots) put_dots(q->out, &q->out_rank, most_dots);
        p += sprintf(p, "->");
        p = put_group(p, q->out, q->out_rank, false);
    } else {
        for (int d = 0; d < most_dots; d++) q->out[q->out_rank++] = LABELS + most_dots - 1 - d;
        for (int c = 'A'; c <= 'z'; c++) {
            const char *at = strchr(letters, c);
            if (at && in_all(q, (int)(at - letters)) == 1) q->out[q->out_rank++] = (int)(at - letters);
        }
    }
    *p = 0;
}

/* The axes of operand k; a letter that is there once may have size 1 and broadcast. */
static void draw_operand(const question *q, int k, array *a, duet_dtype type)
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    for (int d = 0; d < q->rank[k]; d++) {
        int times = 0;
        for (int e = 0; e < q->rank[k]; e++) times += q->label[k][d] == q->label[k][e];
        size[d] = times == 1 && !between(0, 9) ? 1 : q->size[q->label[k][d]];
    }
    array_shape(a, type, q->rank[k], size);
    array_fill(a, -2, 2);
    for (int64_t i = 0; i < a->count; i++) a->x[i] = is_float(type) ? floor(a->x[i]) : a->x[i];
}

/* The sizes that labels have after operands were drawn: 1 only if all have 1. */
static void settle_sizes(question *q, const array x[])
{
    for (int l = 0; l < ALL; l++) q->size[l] = in_all(q, l) ? -1 : 1;
    for (int k = 0; k < q->count; k++)
        for (int a = 0; a < q->rank[k]; a++) {
            int64_t *s = &q->size[q->label[k][a]];
            if (*s == -1 || *s == 1) *s = x[k].size[a];
        }
}

static int64_t at_labels(const array *a, const int *label, const int64_t *i)
{
    int64_t at = 0;
    for (int d = 0; d < a->rank; d++) at = at * a->size[d] + (a->size[d] == 1 ? 0 : i[label[d]]);
    return at;
}

static void loop(const question *q, const array x[], array *out)
{
    int64_t size[DUET_RANK_MAX] = { 0 }, i[ALL] = { 0 };
    for (int d = 0; d < q->out_rank; d++) size[d] = q->size[q->out[d]];
    array_shape(out, x[0].type, q->out_rank, size);
    bool more = true;
    for (int l = 0; l < ALL; l++) more &= q->size[l] > 0;
    while (more) {
        double term = 1;
        for (int k = 0; k < q->count; k++) term *= x[k].x[at_labels(&x[k], q->label[k], i)];
        out->x[at_labels(out, q->out, i)] += term;
        int l = ALL - 1;
        while (l >= 0 && ++i[l] == q->size[l]) i[l--] = 0;
        more = l >= 0;
    }
    for (int64_t k = 0; k < out->count && x[0].type == DUET_BOOL; k++) out->x[k] = out->x[k] != 0;
}

static duet_expr formula(const question *q, duet_matrix *const m[])
{
    switch (q->count) {
    case 1: return duet_einsum(m[0], q->text);
    case 2: return duet_einsum(m[0], m[1], q->text);
    case 3: return duet_einsum(m[0], m[1], m[2], q->text);
    default: return duet_einsum(m[0], m[1], m[2], m[3], q->text);
    }
}

static void try_einsum(duet_dtype type)
{
    static array x[OPERANDS], want, dx;
    question q;
    duet_matrix *m[OPERANDS] = { NULL };
    draw(&q, 1);
    for (int k = 0; k < q.count; k++) draw_operand(&q, k, &x[k], type);
    settle_sizes(&q, x);
    loop(&q, x, &want);
    for (int k = 0; k < q.count; k++) m[k] = array_matrix(&x[k]);
    array_check(formula(&q, m), &want, 0, q.text);
    if (type == DUET_F64 && want.count) { /* with g = 1 the loop gives the gradient, too, for x[0] */
        static array one;
        dx = x[0];
        for (int64_t k = 0; k < dx.count; k++) {
            one = x[0];
            for (int64_t j = 0; j < one.count; j++) one.x[j] = j == k;
            const array was = x[0];
            x[0] = one;
            loop(&q, x, &want);
            x[0] = was;
            dx.x[k] = 0;
            for (int64_t j = 0; j < want.count; j++) dx.x[k] += want.x[j];
        }
        array_check(duet_grad(duet_sum(formula(&q, m)), m[0]), &dx, 1e-12, q.text);
    }
    for (int k = 0; k < q.count; k++) duet_free(&m[k]);
}

static void test_each(int turns)
{
    static const duet_dtype types[] = { DUET_F64, DUET_F32, DUET_I32, DUET_BOOL, DUET_I64, DUET_F16 };
    array_each_place(turns, types, sizeof types / sizeof *types, try_einsum);
}

static void test_refusals(void)
{
    duet_matrix *x = duet_new(DUET_F32, 2, 3), *y = duet_new(DUET_F32, 3, 4), *z = duet_new(DUET_I32, 3, 4);
    array_refused(
        duet_einsum(x, y, "ij,jk->il"), DUET_BAD_ARGUMENT,
        "duet_einsum(x: f32[2,3], y: f32[3,4]): the indices must have the form \"ij,jk->ik\": a letter of "
        "the result must be in a group of an operand");
    array_refused(duet_einsum(x, y, "ij,jk->ii"), DUET_BAD_ARGUMENT,
                  "a letter must not occur twice in the result");
    array_refused(duet_einsum(x, y, "ij->i"), DUET_BAD_ARGUMENT, "there must be a group for each operand");
    array_refused(duet_einsum(x, "ij,jk->i"), DUET_BAD_ARGUMENT, "there are more groups than operands");
    array_refused(duet_einsum(x, "i5"), DUET_BAD_ARGUMENT, "a group has letters and \"...\" only");
    array_refused(duet_einsum(x, "...i..."), DUET_BAD_ARGUMENT, "a group has at most one \"...\"");
    array_refused(duet_einsum(x, "ij->i->j"), DUET_BAD_ARGUMENT,
                  "nothing may follow the group of the result");
    array_refused(duet_einsum(x, (const char *)NULL), DUET_BAD_ARGUMENT, "the text is NULL");
    array_refused(duet_einsum(x, y, "ij,ik->jk"), DUET_BAD_SHAPE,
                  "index i must have one size in all operands, not 2 and 3");
    array_refused(duet_einsum(x, "ii"), DUET_BAD_SHAPE,
                  "duet_einsum_list(x: f32[2,3]): index i must have one size in all operands, not 2 and 3");
    array_refused(duet_einsum(x, y, "ijk,jk->i"), DUET_BAD_SHAPE,
                  "the indices name 3 axes of operand 0, which has 2");
    array_refused(duet_einsum(x, "i...->i"), DUET_BAD_ARGUMENT,
                  "the axes of \"...\" are not summed over, so the result must have \"...\", too");
    array_refused(duet_einsum(x, y, "i...,jk->ik"), DUET_BAD_ARGUMENT, "are not summed over");
    duet_matrix *row_sums = duet_eval(duet_einsum(x, "ij...->i")); /* here "..." stands for no axis */
    CHECK(row_sums && duet_rank(row_sums) == 1, "\"...\" without axes may be missing in the result: %s",
          duet_error());
    duet_free(&row_sums);
    array_refused(duet_einsum(x, y, "...,..."), DUET_BAD_SHAPE, "the axes of \"...\" do not broadcast");
    array_refused(duet_einsum(x, z, "ij,jk->k"), DUET_BAD_TYPE, "duet_einsum(x: f32[2,3], y: i32[3,4]): ");
    array_refused((duet_einsum_list)(0, NULL, "i"), DUET_BAD_ARGUMENT,
                  "there must be 1 to 16 operands, not 0");
    const duet_expr many[] = { duet_add(x, 1), duet_add(y, 1), duet_add(x, 2), duet_add(y, 2),
                               duet_add(z, 1) };
    array_refused((duet_einsum_list)(5, many, "ij,jk,ij,jk,j5"), DUET_BAD_ARGUMENT, "has letters and");
    array_refused(duet_einsum(duet_add(x, 1), duet_add(y, 1), duet_add(x, 2), z, "ij,jk,ij,jk->k"),
                  DUET_BAD_TYPE, "duet_einsum_list(");
    array_refused(duet_einsum(duet_add(x, 1), duet_add(y, 1), duet_matmul(x, x), duet_add(y, 2), "a,b,c,d"),
                  DUET_BAD_SHAPE, "duet_matmul(x: f32[2,3], y: f32[2,3])");
    duet_matrix *five = duet_new(DUET_F32, 1, 1, 1, 1, 1),
                *eight = duet_new(DUET_F32, 1, 1, 1, 1, 1, 1, 1, 1);
    array_refused(duet_einsum(five, five, eight, "abcde,fghij,abcdfghi->ej"), DUET_UNSUPPORTED,
                  "a product would have 10 axes, more than 8");
    duet_free(&x, &y, &z, &five, &eight);
    tap_point("wrong texts and operands are refused");
}

/* Sums of an operand alone have the type of the products: they do not wrap in its own, and bools count. */
static void test_types(void)
{
    duet_matrix *bytes = duet_full(DUET_I8, 100, 4, 2), *bools = duet_ones(DUET_BOOL, 3),
                *ones = duet_ones(DUET_I64, 2), *one = duet_ones(DUET_I32, 1);
    int64_t x = 0;
    int32_t y = 0;
    CHECK(duet_item(duet_sum(duet_einsum(bytes, ones, "ij,k->k")), &x) == DUET_OK && x == 1600, "%s, %lld",
          duet_error(), (long long)x);
    CHECK(duet_item(duet_sum(duet_einsum(bools, ones, "i,k->k")), &x) == DUET_OK && x == 6, "%s, %lld",
          duet_error(), (long long)x);
    CHECK(duet_item(duet_einsum(bools, bools, one, "i,j,k->"), &y) == DUET_OK && y == 9, "%s, %d",
          duet_error(), (int)y);
    duet_free(&bytes, &bools, &ones, &one);
    tap_point("operands of different types");
}

int main(int argc, char **argv)
{
    places = list_places(place);
    test_each(trial_count(argc, argv, 100, 3000));
    test_refusals();
    test_types();
    return tap_end();
}

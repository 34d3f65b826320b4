/* conv_matrix.c - statements that write the matrix of a convolution: its product with an array is the
 * convolution of the array with a kernel. The kernel is copied into a matrix of zeros. Then one
 * assignment copies a view of this matrix to the destination. In the view, an element of the kernel
 * occurs wherever the row index less the column index is its offset. A vector is treated as a matrix
 * of one row. */
#include "matrix.h"
#include "statement.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <string.h>

/* For each axis. n: elements of the array; m: elements of the kernel; zeros: zeros on each side of the
 * kernel; results: number of results; first: index of the first one among all results. */
typedef struct band {
    const char *who;
    layout kernel;
    int64_t n[2], m[2], zeros[2], results[2], first[2];
} band;

static duet_status wrong_shape(const band *b, const duet_matrix *to, const duet_matrix *k, const char *rule)
{
    char x[SHAPE_TEXT], y[SHAPE_TEXT];
    return fail(DUET_BAD_SHAPE, "%s(to: %s, kernel: %s): %s", b->who, view_text(to, x), view_text(k, y),
                rule);
}

static void find_results(band *b, duet_overlap part)
{
    for (int a = 0; a < 2; a++) {
        const int64_t n = b->n[a], m = b->m[a] = b->kernel.size[a], valid = n >= m ? n - m + 1 : 0;
        b->zeros[a] = n ? n - 1 : 0;
        switch (part) {
        case DUET_OVERLAP_FULL:
            b->results[a] = n + m - 1;
            b->first[a] = 0;
            break;
        case DUET_OVERLAP_SAME:
            b->results[a] = n;
            b->first[a] = (m - 1) / 2;
            break;
        default: b->results[a] = valid; b->first[a] = m - 1;
        }
    }
}

static duet_status check_types(const band *b, const duet_matrix *to, const duet_matrix *k, duet_overlap part)
{
    char x[SHAPE_TEXT], y[SHAPE_TEXT];
    TRY(matrix_check(b->who, to));
    TRY(matrix_check(b->who, k));
    if ((int)part < DUET_OVERLAP_FULL || part > DUET_OVERLAP_VALID)
        return fail(DUET_BAD_ARGUMENT,
                    "%s: part (%d) must be DUET_OVERLAP_FULL, DUET_OVERLAP_SAME or DUET_OVERLAP_VALID",
                    b->who, (int)part);
    if (to->at.type != k->at.type)
        return fail(DUET_BAD_TYPE, "%s(to: %s, kernel: %s): the matrices must have the same element type",
                    b->who, view_text(to, x), view_text(k, y));
    return matrix_check_writable(b->who, to);
}

static void zeros_around(const band *b, int64_t size[2])
{
    for (int a = 0; a < 2; a++) size[a] = b->m[a] + 2 * b->zeros[a];
}

static duet_status check_sizes(band *b, const duet_matrix *to, const duet_matrix *k, duet_overlap part)
{
    int64_t size[2];
    if (!k->count) return wrong_shape(b, to, k, "kernel must not be empty");
    find_results(b, part);
    zeros_around(b, size);
    TRY(shape_check(b->who, k->at.type, 2, size));
    if (to->at.size[1] != b->n[0] * b->n[1])
        return wrong_shape(b, to, k, "to must have one column for each element of the signal");
    if (to->at.size[0] != b->results[0] * b->results[1])
        return wrong_shape(b, to, k, "to must have one row for each result");
    return DUET_OK;
}

/* ---- */

static duet_status among_zeros(const band *b, const duet_matrix *k, duet_matrix **made)
{
    layout l = b->kernel;
    int64_t size[2];
    zeros_around(b, size);
    if (!(*made = (duet_new_shape)(l.type, 2, size))) return DUET_NO_MEMORY;
    memcpy(l.stride, (*made)->at.stride, sizeof l.stride);
    duet_matrix *inner = view_of(*made, &l, b->zeros[0] * l.stride[0] + b->zeros[1] * l.stride[1]);
    if (!inner) return DUET_NO_MEMORY;
    return record_own_or_free(inner, statement_part(b->who, inner, duet_of_matrix(k)));
}

/* The destination with four axes: its rows as the axes of the result, its columns as those of the array. */
static duet_matrix *destination(const band *b, const duet_matrix *to)
{
    layout l = { .type = to->at.type, .rank = 4 };
    for (int a = 0; a < 2; a++) {
        l.size[a] = b->results[a];
        l.size[2 + a] = b->n[a];
        l.stride[a] = to->at.stride[0] * (a ? 1 : b->results[1]);
        l.stride[2 + a] = to->at.stride[1] * (a ? 1 : b->n[1]);
    }
    return view_of(to, &l, 0);
}

static duet_matrix *elements_of(const band *b, const duet_matrix *padded)
{
    layout l = { .type = padded->at.type, .rank = 4 };
    int64_t ahead = 0;
    for (int a = 0; a < 2; a++) {
        const int64_t stride = padded->at.stride[a];
        l.size[a] = b->results[a];
        l.size[2 + a] = b->n[a];
        l.stride[a] = stride;
        l.stride[2 + a] = -stride;
        ahead += (b->zeros[a] + b->first[a]) * stride;
    }
    return view_of(padded, &l, ahead);
}

static duet_status put_band(const band *b, duet_matrix *to, const duet_matrix *padded)
{
    duet_matrix *rows = destination(b, to), *from = elements_of(b, padded);
    duet_status s = rows && from ? statement_part(b->who, rows, duet_of_matrix(from)) : DUET_NO_MEMORY;
    s = record_own_or_free(rows, s);
    return record_own_or_free(from, s);
}

static duet_status write(band *b, duet_matrix *to, const duet_matrix *k, duet_overlap part)
{
    duet_matrix *padded = NULL;
    TRY(check_sizes(b, to, k, part));
    if (!to->count) return DUET_OK;
    duet_status s = among_zeros(b, k, &padded);
    if (s == DUET_OK) s = put_band(b, to, padded);
    return record_own_or_free(padded, s);
}

/* ---- */

static duet_status of_vector(duet_matrix *to, const duet_matrix *k, duet_overlap part)
{
    band b = { .who = "duet_convmtx" };
    TRY(check_types(&b, to, k, part));
    if (to->at.rank != 2 || k->at.rank != 1)
        return wrong_shape(&b, to, k, "to must have 2 axes and kernel 1 axis");
    b.kernel = k->at;
    b.n[0] = 1;
    b.n[1] = to->at.size[1];
    layout_insert(&b.kernel, 0, 1, 1);
    return write(&b, to, k, part);
}

static duet_status of_plane(duet_matrix *to, const duet_matrix *k, int h, int w, duet_overlap part)
{
    band b = { .who = "duet_convmtx2", .n = { h, w } };
    TRY(check_types(&b, to, k, part));
    if (to->at.rank != 2 || k->at.rank != 2) return wrong_shape(&b, to, k, "to and kernel must have 2 axes");
    if (h < 0 || w < 0)
        return fail(DUET_BAD_ARGUMENT, "%s: h (%d) and w (%d) must not be negative", b.who, h, w);
    b.kernel = k->at;
    return write(&b, to, k, part);
}

duet_status duet_convmtx_at(duet_matrix *to, const duet_matrix *k, duet_overlap part, const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    return statement_ends(of_vector(to, k, part), site);
}

duet_status duet_convmtx2_at(duet_matrix *to, const duet_matrix *k, int h, int w, duet_overlap part,
                             const char *site)
{
    thread_get()->site = site;
    IN_DEFAULT_FP_ENVIRONMENT;
    return statement_ends(of_plane(to, k, h, w, part), site);
}

duet_status(duet_convmtx)(duet_matrix *to, const duet_matrix *k, duet_overlap part)
{
    return duet_convmtx_at(to, k, part, NULL);
}

duet_status(duet_convmtx2)(duet_matrix *to, const duet_matrix *k, int h, int w, duet_overlap part)
{
    return duet_convmtx2_at(to, k, h, w, part, NULL);
}

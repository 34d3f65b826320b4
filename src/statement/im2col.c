/* im2col.c - a statement that writes the windows of images as the columns of matrices: one
 * assignment from a view of the images, in which an element occurs in each window that contains it.
 * If there is padding, the images are copied first. */
#include "matrix.h"
#include "statement.h"
#include "status.h"
#include "thread.h"
#include "view.h"
#include <string.h>

static const char who[] = "duet_im2col";

/* Options with their defaults, and how many windows there are. */
typedef struct windows {
    int64_t size[2], stride[2], pad[2], dilation[2], count[2];
} windows;

static duet_status read_options(const duet_windows *o, windows *w)
{
    static const duet_windows none;
    if (!o) o = &none;
    for (int a = 0; a < 2; a++) {
        w->size[a] = o->window[a];
        w->pad[a] = o->pad[a];
        w->stride[a] = o->stride[a] ? o->stride[a] : 1;
        w->dilation[a] = o->dilation[a] ? o->dilation[a] : 1;
        if (w->size[a] < 1 || w->stride[a] < 1 || w->pad[a] < 0 || w->dilation[a] < 1)
            return fail(
                DUET_BAD_ARGUMENT,
                "%s: window {%d, %d} must be positive; stride {%d, %d}, pad {%d, %d} and dilation {%d, %d} "
                "must not be negative",
                who, o->window[0], o->window[1], o->stride[0], o->stride[1], o->pad[0], o->pad[1],
                o->dilation[0], o->dilation[1]);
    }
    return DUET_OK;
}

static duet_status wrong_shape(const duet_matrix *to, const duet_matrix *from, const char *rule)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    return fail(DUET_BAD_SHAPE, "%s(to: %s, images: %s): %s", who, view_text(to, a), view_text(from, b),
                rule);
}

/* Is n = a * b, for b > 0? The product may overflow 64 bits. */
static bool is_product(int64_t n, int64_t a, int64_t b) { return n % b == 0 && n / b == a; }

static duet_status check_sizes(const duet_matrix *to, const duet_matrix *from, windows *w)
{
    const int64_t *x = from->at.size, *y = to->at.size, area = w->size[0] * w->size[1];
    if (from->at.rank != 4 || to->at.rank != 3)
        return wrong_shape(to, from, "to must have 3 axes and images 4");
    for (int a = 0; a < 2; a++) {
        const int64_t last = x[2 + a] + 2 * w->pad[a] - (w->size[a] - 1) * w->dilation[a] - 1;
        if (last < 0)
            return wrong_shape(to, from, "the window must not be larger than the images with their padding");
        w->count[a] = last / w->stride[a] + 1;
    }
    if (y[0] != x[0]) return wrong_shape(to, from, "axis 0 of to must have one element for each image");
    if (!is_product(y[1], x[1], area))
        return wrong_shape(
            to, from, "axis 1 of to must have one element for each channel and each element of a window");
    if (!is_product(y[2], w->count[0], w->count[1]))
        return wrong_shape(to, from, "axis 2 of to must have one element for each window");
    return DUET_OK;
}

static duet_status check(const duet_matrix *to, const duet_matrix *from, const duet_windows *o, windows *w)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    TRY(matrix_check(who, to));
    TRY(matrix_check(who, from));
    if (to->at.type != from->at.type)
        return fail(DUET_BAD_TYPE, "%s(to: %s, images: %s): the matrices must have the same element type",
                    who, view_text(to, a), view_text(from, b));
    TRY(matrix_check_writable(who, to));
    TRY(read_options(o, w));
    return check_sizes(to, from, w);
}

/* The destination with the axes n c u v i j: its rows are (c, u, v), its columns (i, j). */
static duet_matrix *destination(const duet_matrix *to, int64_t channels, const windows *w)
{
    layout l = to->at;
    const int64_t down = l.stride[1], across = l.stride[2];
    layout_drop(&l, 2);
    layout_drop(&l, 1);
    layout_insert(&l, 1, channels, w->size[0] * w->size[1] * down);
    layout_insert(&l, 2, w->size[0], w->size[1] * down);
    layout_insert(&l, 3, w->size[1], down);
    layout_insert(&l, 4, w->count[0], w->count[1] * across);
    layout_insert(&l, 5, w->count[1], across);
    return view_of(to, &l, 0);
}

/* A view of padded images with the same axes. */
static duet_matrix *windows_of(const duet_matrix *images, const windows *w)
{
    layout l = images->at;
    for (int a = 0; a < 2; a++) {
        const int64_t stride = images->at.stride[2 + a];
        l.size[2 + a] = w->size[a];
        l.stride[2 + a] = w->dilation[a] * stride;
        layout_insert(&l, 4 + a, w->count[a], w->stride[a] * stride);
    }
    return view_of(images, &l, 0);
}

/* Copies `from` to a new matrix with zeros around it. */
static duet_status padded(const duet_matrix *from, const windows *w, duet_matrix **made)
{
    layout l = from->at;
    const int64_t size[] = { l.size[0], l.size[1], l.size[2] + 2 * w->pad[0], l.size[3] + 2 * w->pad[1] };
    TRY(shape_check(who, l.type, 4, size));
    if (!(*made = (duet_new_shape)(l.type, 4, size))) return DUET_NO_MEMORY;
    memcpy(l.stride, (*made)->at.stride, sizeof l.stride);
    duet_matrix *inner = view_of(*made, &l, w->pad[0] * l.stride[2] + w->pad[1] * l.stride[3]);
    if (!inner) return DUET_NO_MEMORY;
    return record_own_or_free(inner,
                              inner->count ? statement_part(who, inner, duet_of_matrix(from)) : DUET_OK);
}

static duet_status put_windows(duet_matrix *to, const duet_matrix *images, const windows *w)
{
    duet_matrix *rows = destination(to, images->at.size[1], w), *from = windows_of(images, w);
    duet_status s = rows && from ? statement_part(who, rows, duet_of_matrix(from)) : DUET_NO_MEMORY;
    s = record_own_or_free(rows, s);
    return record_own_or_free(from, s);
}

static duet_status unroll(duet_matrix *to, const duet_matrix *from, const duet_windows *o)
{
    windows w;
    duet_matrix *with = NULL;
    TRY(check(to, from, o, &w));
    if (!to->count) return DUET_OK;
    if (!w.pad[0] && !w.pad[1] && matrix_overlap(to, from) == APART) return put_windows(to, from, &w);
    duet_status s = padded(from, &w, &with);
    if (s == DUET_OK) s = put_windows(to, with, &w);
    return record_own_or_free(with, s);
}

duet_status duet_im2col_at(duet_matrix *to, const duet_matrix *images, const duet_windows *options,
                           const char *site)
{
    thread_get()->site = site;
    return statement_ends(unroll(to, images, options), site);
}

duet_status(duet_im2col)(duet_matrix *to, const duet_matrix *images, const duet_windows *options)
{
    return duet_im2col_at(to, images, options, NULL);
}

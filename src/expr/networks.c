/* networks.c - builds the formulas of the rows of networks.def from other operators. */
#include "call_text.h"
#include <stdbool.h>
#undef DUET_HERE
#define DUET_HERE site /* the position of the user's call */

/* ---- sizes ---- */

static double elements(duet_expr x, int axes)
{
    double n = 1;
    for (int i = 0; i < axes; i++) n *= (double)duet_expr_size(x, i);
    return n;
}
#define ALL(x)  elements(x, duet_expr_rank(x))
#define ROWS(x) elements(x, duet_expr_rank(x) - 1)

/* ---- sets of axes, as bits ---- */

static unsigned axes_below(int end) { return (1u << end) - 1; }

/* All axes but axis 1. With fewer than two axes it is axis 0: if there are no axes, an operator along
 * axis 0 reports the error. */
static unsigned batch_axes(duet_expr x)
{
    const int rank = duet_expr_rank(x);
    if (rank <= 1) return 1;
    return axes_below(rank) & ~2u;
}

static unsigned last_axis(duet_expr x)
{
    const int rank = duet_expr_rank(x);
    return rank ? 1u << (rank - 1) : 1;
}

static unsigned each_axes(duet_expr x)
{
    const int rank = duet_expr_rank(x);
    if (rank <= 2) return 4;
    return axes_below(rank) & ~3u; /* fewer axes are an error */
}

#define BATCH(x) batch_axes(x)
#define LAST(x)  last_axis(x)
#define EACH(x)  each_axes(x)
#define REST(x)  (axes_below(duet_expr_rank(x)) & ~last_axis(x))

typedef struct axis_list {
    int count, axis[DUET_RANK_MAX];
} axis_list;

static axis_list listed(unsigned bits)
{
    axis_list l = { 0 };
    for (int a = 0; a < DUET_RANK_MAX; a++)
        if (bits >> a & 1) l.axis[l.count++] = a;
    return l;
}

#define REDUCE_OVER(reduction, form)                                                                         \
    static duet_expr reduction##_over_##form(duet_expr x, unsigned bits, const char *site)                   \
    {                                                                                                        \
        const axis_list l = listed(bits);                                                                    \
        return duet_##reduction##_##form##_at(x, l.count, l.axis, site);                                     \
    }
REDUCE_OVER(sum, axes)
REDUCE_OVER(mean, axes)
REDUCE_OVER(var, axes)
REDUCE_OVER(sum, axes_keep)
REDUCE_OVER(mean, axes_keep)
REDUCE_OVER(var, axes_keep)
REDUCE_OVER(max, axes_keep)
#define OVER(reduction, axes, x) reduction##_over_axes_keep(x, axes, site)
#define CHANNELS(reduction, x)   reduction##_over_axes(x, batch_axes(x), site)

/* ---- normalisation ---- */

typedef struct unit {
    duet_expr x, scale; /* x less its mean, times scale: 1 / sqrt(variance + r) */
} unit;

static unit unit_of(duet_expr x, unsigned axes, double r, const char *site)
{
    const duet_expr scale = duet_rsqrt(duet_add(OVER(var, axes, x), r));
    return (unit){ duet_mul(duet_sub(x, OVER(mean, axes, x)), scale), scale };
}
#define UNIT(x, axes, r) unit_of(x, axes, r, site).x

/* The gradient: scale (dy - mean(dy) - u mean(dy u)). */
static duet_expr unit_back(duet_expr x, unsigned axes, duet_expr dy, double r, const char *site)
{
    const unit u = unit_of(x, axes, r, site);
    const duet_expr along = mean_over_axes_keep(duet_mul(dy, u.x), axes, site);
    return duet_mul(u.scale,
                    duet_sub(duet_sub(dy, mean_over_axes_keep(dy, axes, site)), duet_mul(u.x, along)));
}
#define BACK(x, axes, dy, r) unit_back(x, axes, dy, r, site)

static duet_expr units(duet_expr x, unsigned axes, const char *site)
{
    const duet_expr var = OVER(var, axes, x), by = duet_where(duet_equal(var, 0), 1, duet_sqrt(var));
    return duet_div(duet_sub(x, OVER(mean, axes, x)), by);
}
#define UNITS(x, axes) units(x, axes, site)

/* ---- the rows ---- */

#define LOG(e) duet_maximum(duet_log(e), -100)

#define DUET_NETWORK1(name, formula, doc)                                                                    \
    duet_expr(duet_##name##_at)(duet_expr x, const char *site)                                               \
    {                                                                                                        \
        return composed(#name, 1, &x, formula, site);                                                        \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x) { return (duet_##name##_at)(x, NULL); }
#define DUET_NETWORK2(name, formula, doc)                                                                    \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, const char *site)                                  \
    {                                                                                                        \
        return composed(#name, 2, (duet_expr[]){ x, y }, formula, site);                                     \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y) { return (duet_##name##_at)(x, y, NULL); }
#define DUET_NETWORK2R(name, formula, doc)                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, double r, const char *site)                        \
    {                                                                                                        \
        return composed(#name, 2, (duet_expr[]){ x, y }, formula, site);                                     \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, double r) { return (duet_##name##_at)(x, y, r, NULL); }
#define DUET_NETWORK3R(name, formula, doc)                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, duet_expr y, duet_expr z, double r, const char *site)           \
    {                                                                                                        \
        return composed(#name, 3, (duet_expr[]){ x, y, z }, formula, site);                                  \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, duet_expr y, duet_expr z, double r)                                  \
    {                                                                                                        \
        return (duet_##name##_at)(x, y, z, r, NULL);                                                         \
    }
#include <duet/networks.def>

/* ---- probabilistic max pooling ---- */

/* Exponentials of elements, after subtracting the largest element of the window, or 0 if that is
 * larger. each: the exponentials; sum: their sum in each window; all: that sum plus the exponential
 * for 0. */
typedef struct on {
    duet_expr each, sum, all;
} on;

static on on_of(duet_expr x, int h, int w, const char *site)
{
    const duet_expr most = duet_relu(duet_max_pool2d(x, .window = { h, w }));
    const duet_expr each = duet_exp(duet_sub(x, duet_upsample2d(most, h, w)));
    const duet_expr sum = duet_mul((double)h * w, duet_avg_pool2d(each, .window = { h, w }));
    return (on){ each, sum, duet_add(duet_exp(duet_neg(most)), sum) };
}

duet_expr(duet_p_max_pool_h_at)(duet_expr x, int h, int w, const char *site)
{
    const on o = on_of(x, h, w, site);
    return composed("p_max_pool_h", 1, &x, duet_div(o.each, duet_upsample2d(o.all, h, w)), site);
}

duet_expr(duet_p_max_pool_p_at)(duet_expr x, int h, int w, const char *site)
{
    const on o = on_of(x, h, w, site);
    return composed("p_max_pool_p", 1, &x, duet_div(o.sum, o.all), site);
}

duet_expr(duet_p_max_pool_h)(duet_expr x, int h, int w) { return duet_p_max_pool_h_at(x, h, w, NULL); }
duet_expr(duet_p_max_pool_p)(duet_expr x, int h, int w) { return duet_p_max_pool_p_at(x, h, w, NULL); }

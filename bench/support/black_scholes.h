/* black_scholes.h - the Black-Scholes prices of a European call and put option, as Duet formulas
 * and as a reference in double. */
#ifndef BLACK_SCHOLES_H
#define BLACK_SCHOLES_H

#include <duet/duet.h>
#include <math.h>

#define INTEREST   0.02f
#define VOLATILITY 0.3f
#define DRIFT      0.065f /* INTEREST + VOLATILITY^2 / 2 */

/* Returns the formula of the call's price, from vectors of prices s, strikes k and times t. If put
 * is not NULL, it gets the formula of the put's price, which shares parts of the call's formula. */
static inline duet_expr black_scholes(const duet_matrix *s, const duet_matrix *k, const duet_matrix *t,
                                      duet_expr *put)
{
    duet_expr deviation = duet_mul(VOLATILITY, duet_sqrt(t));
    duet_expr d1 = duet_div(duet_add(duet_log(duet_div(s, k)), duet_mul(DRIFT, t)), deviation);
    duet_expr d2 = duet_sub(d1, deviation);
    duet_expr debt = duet_mul(k, duet_exp(duet_mul(-INTEREST, t)));
    if (put) *put = duet_sub(duet_mul(debt, duet_ncdf(duet_neg(d2))), duet_mul(s, duet_ncdf(duet_neg(d1))));
    return duet_sub(duet_mul(s, duet_ncdf(d1)), duet_mul(debt, duet_ncdf(d2)));
}

/* Computes the same prices in double. */
static inline double black_scholes_reference(double s, double k, double t, double *put)
{
    double deviation = (double)VOLATILITY * sqrt(t), debt = k * exp((double)-INTEREST * t);
    double d1 = (log(s / k) + (double)DRIFT * t) / deviation, d2 = d1 - deviation;
    if (put) *put = debt * 0.5 * erfc(d2 * M_SQRT1_2) - s * 0.5 * erfc(d1 * M_SQRT1_2);
    return s * 0.5 * erfc(-d1 * M_SQRT1_2) - debt * 0.5 * erfc(-d2 * M_SQRT1_2);
}
#endif

/* vector_loops.c - sigmoid and the Black-Scholes price of a call as plain loops. expressions.py
 * compiles it with gcc -Ofast, which then calls libmvec where it can. The cumulative normal
 * distribution uses erfcf, which libmvec has since glibc 2.35. */
#include <math.h>

static float normal_cdf(float x) { return 0.5f * erfcf(-0.70710678f * x); }

void sigmoid(long n, float *restrict d, const float *restrict x)
{
    for (long i = 0; i < n; i++) d[i] = 1 / (1 + expf(-x[i]));
}

/* Prices s, strikes k, times t. The interest rate is 0.02 and the volatility 0.3, as in
 * black_scholes.h. */
void black_scholes(long n, float *restrict d, const float *restrict s, const float *restrict k,
                   const float *restrict t)
{
    for (long i = 0; i < n; i++) {
        float deviation = 0.3f * sqrtf(t[i]);
        float d1 = (logf(s[i] / k[i]) + 0.065f * t[i]) / deviation;
        d[i] = s[i] * normal_cdf(d1) - k[i] * expf(-0.02f * t[i]) * normal_cdf(d1 - deviation);
    }
}

/* fourier_formulas.c - Fourier transforms along one or two axes. */
#include "operands.h"

#define DUET_FOURIER(name)                                                                                   \
    duet_expr(duet_##name##_at)(duet_expr x, int n, int axis, const char *site)                              \
    {                                                                                                        \
        const duet_fourier along = { 1, { axis }, { n } };                                                   \
        return make_operator(OP_##name##n, #name, 1, &x, (const int32_t *)&along, site);                     \
    }                                                                                                        \
    duet_expr(duet_##name##2_at)(duet_expr x, const char *site)                                              \
    {                                                                                                        \
        const duet_fourier along = { 2, { -2, -1 }, { 0 } };                                                 \
        return make_operator(OP_##name##n, #name "2", 1, &x, (const int32_t *)&along, site);                 \
    }                                                                                                        \
    duet_expr(duet_##name)(duet_expr x, int n, int axis) { return duet_##name##_at(x, n, axis, NULL); }      \
    duet_expr(duet_##name##2)(duet_expr x) { return duet_##name##2_at(x, NULL); }
DUET_FOURIER(fft)
DUET_FOURIER(ifft)
DUET_FOURIER(rfft)
DUET_FOURIER(irfft)

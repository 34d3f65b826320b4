/* fft_none.c - fft.h for builds without FFTW: only fftshift works. */
#include "fft.h"
#include "fourier_ops.h"
#include "status.h"

#define WHY "built without FFTW (-Dfft=none, or the build did not find it)"

const char *fft_absent(void) { return WHY; }

const char *fft_refuses(const step *s) { return s->kernel == OP_fftshift ? fourier_refuses(s) : WHY; }

duet_status run_fourier(const step *s, const frame *f)
{
    if (s->kernel != OP_fftshift) return fail(DUET_UNSUPPORTED, WHY);
    return run_shift(s, f);
}

void fourier_forget(step *s) {}

void fft_limit(size_t bytes) {}

void fft_info(FILE *out) { fprintf(out, "         FFT absent: " WHY "\n"); }

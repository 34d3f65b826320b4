/* fft_none.c - fft.h for builds without FFTW: only fftshift works. */
#include "fft.h"
#include "status.h"

#define WHY "built without FFTW (-Dfft=none, or the build did not find it)"

const char *fft_absent(void) { return WHY; }

const char *fft_unsupported(const step *s) { return WHY; }
duet_status run_fourier(const step *s, const frame *f) { return fail(DUET_UNSUPPORTED, WHY); }

void fourier_forget(step *s) {}

void fft_limit(size_t bytes) {}

void fft_info(FILE *out) { fprintf(out, "         FFT absent: " WHY "\n"); }

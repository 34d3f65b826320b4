/* fft.h - Fourier transforms on the CPU, by a library with FFTW's interface. */
#ifndef FFT_H
#define FFT_H

#include "cpu_kernels.h"
#include "fourier.h"

const char *fft_absent(void); /* NULL, or why this build has none */
const char *fft_unsupported(const step *s);
run_function run_fourier;
void fourier_forget(step *s);
void fft_info(FILE *out);
void fft_limit(size_t bytes); /* size limit of plans that no step holds, for tests */

#endif

/* cost.c - the built-in costs of the CPU. */
#include "cost.h"
#include "blas_headers.h"
#include "conv.h"
#include "cpu_kernels.h"
#include "threads.h"
#include <string.h>

/* Measured on 16 cores of a Xeon with AVX-512 (bench/results/h200.json). Convolutions are the mean
 * of oneDNN and im2col. */
const costs cpu_costs = { .seconds = {
                              [COST_pass] = { 0.2e-6, 1e-6, 4.2e-6, 11.3e-6, 243e-6 },
                              [COST_function] = { 0.4e-6, 2.5e-6, 6e-6, 25e-6, 220e-6 },
                              [COST_function_f64] = { 0.7e-6, 5.5e-6, 10e-6, 55e-6 },
                              [COST_product] = { 0.4e-6, 1.7e-6, 10.5e-6, 58.6e-6, 453e-6, 2950e-6 },
                              [COST_product_f64] = { 0.5e-6, 21e-6, 900e-6 },
                              [COST_thin] = { 22e-6, 75e-6, 320e-6 },
                              [COST_conv] = { 60e-6, 300e-6, 3e-3 },
                          } };

double cpu_cost(const step *s)
{
    const cpu_kernel *k = cpu_kernel_of(s->kernel);
    return (k ? k->cost : cost_of_pass)(s, costs_now(HOST));
}

/* Reads the line "model name : AMD EPYC 9654" of /proc/cpuinfo, if there is one. */
static void find_model(char *model, size_t size)
{
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "re");
    snprintf(model, size, "a processor");
    while (in && fgets(line, sizeof line, in)) {
        char *colon = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
        if (!colon) continue;
        snprintf(model, size, "%.*s", (int)strcspn(colon + 1, "\n"), colon + 1);
        break;
    }
    if (in) fclose(in);
}

void cpu_identify(char *text, size_t size)
{
    char model[128], blas[256];
    find_model(model, sizeof model);
    blas_describe(blas, sizeof blas);
    snprintf(text, size, "%s; %s; %d threads; %s; oneDNN %s", model, cpu_isa(), threads_here(), blas,
             onednn_version());
}

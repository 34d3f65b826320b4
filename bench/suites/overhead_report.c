/* overhead_report.c - prints the figures of duet-calls and writes them to its JSON document. */
#include "overhead_report.h"
#include <linux/perf_event.h>
#include <math.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- instructions, where the operating system allows counting them ---- */

static double instructions_of(contender *c)
{
    struct perf_event_attr what = { .type = PERF_TYPE_HARDWARE,
                                    .size = sizeof what,
                                    .config = PERF_COUNT_HW_INSTRUCTIONS,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .disabled = 1 };
    const int64_t calls = c->max_calls ? c->max_calls : 10000;
    uint64_t before, after;
    int counter = (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
    if (counter < 0) return NAN;
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
    bool ok = read(counter, &before, sizeof before) == sizeof before && isfinite(c->block(c->state, calls));
    ok = ok && read(counter, &after, sizeof after) == sizeof after && after > before;
    close(counter);
    if (ok) return (double)(after - before) / (double)calls;
    return NAN;
}

static void put_figure(json *j, const char *device, const char *what, double ns, double instructions,
                       double limit)
{
    json_begin(j, NULL, '{');
    json_text(j, "bench", "calls");
    json_text(j, "machine", device);
    json_text(j, "what", what);
    json_number(j, limit > 0 && limit < 10 ? "ratio" : "ns", ns);
    if (limit > 0) json_number(j, "limit", limit);
    else json_number(j, "instructions", instructions);
    json_end(j, '}');
}

void report_figure(json *j, const char *device, const char *what, double figure, double limit)
{
    printf("%-4s %-46s %9.2f %s limit %.4g%s\n", device, what, figure, limit < 10 ? "  " : "ns", limit,
           figure <= limit ? "" : "  ABOVE THE LIMIT");
    put_figure(j, device, what, figure, NAN, limit);
    fflush(stdout);
}

void report_contenders(json *j, const char *device, contender *c, int count)
{
    for (int i = 0; i < count; i++) {
        const double ns = 1e3 * median_us(&c[i]), instructions = instructions_of(&c[i]);
        printf("%-4s %-46s %9.1f ns", device, c[i].name, ns);
        if (isfinite(instructions)) printf(" %9.0f instructions", instructions);
        putchar('\n');
        put_figure(j, device, c[i].name, ns, instructions, 0);
    }
    fflush(stdout);
}

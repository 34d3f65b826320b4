/* spectrum.c - finds the tones in a signal: windowed power spectrum, averaged over segments. */
#include <duet/duet.h>

int main(void)
{
    const double rate = 8000, turn = 2 * 3.14159265358979323846;
    const int n = 16384, size = 1024;
    const duet_expr t = duet_div(duet_iota(DUET_F64, n), rate), t2 = duet_square(t);
    const duet_expr low = duet_sin(duet_mul(turn * 440, t)), high = duet_sin(duet_mul(turn * 1250, t));
    duet_matrix *signal = duet_eval(duet_fma(0.2, duet_cos(duet_mul(2.5e6, t2)), duet_fma(0.5, high, low)));

    const duet_expr window = duet_fma(-0.5, duet_cos(duet_mul(turn / size, duet_iota(DUET_F64, size))), 0.5);
    const duet_expr cut = duet_reshape(signal, -1, size);
    const duet_expr parts = duet_mul(duet_sub(cut, duet_mean_keep(cut, 1)), window);
    const duet_expr energy = duet_mean(duet_square(duet_abs(duet_rfft(parts, size, 1))), 0);
    duet_matrix *db = duet_eval(duet_mul(10, duet_log10(duet_div(energy, duet_sum(duet_square(window))))));
    duet_matrix *noise = duet_eval(duet_pick(duet_sort(db, 0), 0, size / 4));

    const duet_expr before = duet_index(db, DUET_RANGE(0, -2)), after = duet_index(db, DUET_RANGE(2, size));
    const duet_expr least = duet_maximum(duet_maximum(before, after), duet_add(noise, 15));
    duet_matrix *peaks = duet_nonzero(duet_greater(duet_index(db, DUET_RANGE(1, -1)), least));
    const duet_expr bins = duet_add(duet_pick(peaks, 1, 0), 1);
    const int failed = duet_print(stdout, "noise in dB", noise, "frequencies",
                                  duet_mul(duet_cast(bins, DUET_F64), rate / size), "their power in dB",
                                  duet_take(db, bins, 0));
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&signal, &db, &noise, &peaks);
    return failed || duet_live(stderr);
}

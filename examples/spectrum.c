/* spectrum.c - finds the tones in a signal: windowed power spectrum, averaged over segments. */
#include <duet/duet.h>

int main(void)
{
    const double rate = 8000, circle = 2 * 3.14159265358979323846;
    const int n = 16384, segment = 1024;
    duet_matrix *t = duet_linspace(DUET_F64, 0, (n - 1) / rate, n);
    const duet_expr low = duet_sin(duet_mul(circle * 440, t)), high = duet_sin(duet_mul(circle * 1250, t));
    const duet_expr chirp = duet_cos(duet_mul(2.5e6, duet_square(t)));
    duet_matrix *signal = duet_eval(duet_add(low, duet_fma(0.5, high, duet_mul(0.2, chirp))));

    const duet_expr angle = duet_mul(circle * rate / segment, duet_index(t, DUET_RANGE(0, segment)));
    duet_matrix *window = duet_eval(duet_sub(0.5, duet_mul(0.5, duet_cos(angle))));
    const duet_expr cut = duet_reshape(signal, -1, segment);
    const duet_expr parts = duet_mul(duet_sub(cut, duet_mean_keep(cut, 1)), window);
    const duet_expr energy = duet_mean(duet_square(duet_abs(duet_rfft(parts, segment, 1))), 0);
    const duet_expr power = duet_div(energy, duet_sum(duet_square(window)));
    duet_matrix *decibel = duet_eval(duet_mul(10, duet_log10(power)));

    double noise = 0;
    int failed = duet_item(duet_pick(duet_sort(decibel, 0), 0, segment / 4), &noise);
    const duet_expr before = duet_index(decibel, DUET_RANGE(0, -2));
    const duet_expr after = duet_index(decibel, DUET_RANGE(2, DUET_OPEN));
    const duet_expr least = duet_maximum(duet_maximum(before, after), noise + 15);
    duet_matrix *peaks = duet_nonzero(duet_greater(duet_index(decibel, DUET_RANGE(1, -1)), least));
    duet_matrix *bins = duet_eval(duet_add(duet_pick(peaks, 1, 0), 1));
    duet_matrix *frequency = duet_eval(duet_mul(duet_cast(bins, DUET_F64), rate / segment));
    duet_matrix *level = duet_eval(duet_take(decibel, bins, 0));
    failed = failed || !level || duet_count(frequency) != 2;
    if (failed) fprintf(stderr, "%s\n", duet_error());
    printf("noise in dB %.9g\nfrequencies ", noise), duet_print(stdout, frequency);
    printf("their power in dB "), duet_print(stdout, level);
    duet_free(&t), duet_free(&signal), duet_free(&window), duet_free(&decibel), duet_free(&peaks);
    duet_free(&bins), duet_free(&frequency), duet_free(&level);
    return failed || duet_live(stderr);
}

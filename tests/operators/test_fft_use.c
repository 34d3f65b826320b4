/* test_fft_use.c - operators built on Fourier transforms, and their use: shifts and convolutions
 * against their definitions, cached plans, recordings, threads, streaming, bad input, missing
 * libraries. */
#include "each_type.h"
#include "fourier_arrays.h"
#include "stream_policy.h"
#ifdef FAKE_CUDA
#include "fake_cuda.h"
#include "stream.h"
#endif
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- shifts and convolutions ---- */

/* Random bits for any type. */
static void fill_bits(duet_matrix *m)
{
    unsigned char *p = duet_overwrite(m);
    const int64_t bytes = duet_count(m) * (int64_t)dtypes[duet_type(m)].bytes;
    for (int64_t i = 0; p && i < bytes; i++)
        p[i] = (unsigned char)(rng_next(&gen) & (duet_type(m) == DUET_BOOL ? 1 : 255));
}

/* The new position of element i in row-major order. */
static int64_t shifted(const sizes *s, const duet_fourier *o, bool inverse, int64_t i)
{
    int64_t to = 0, stride = 1;
    for (int a = s->rank; a-- > 0; i /= s->size[a], stride *= s->size[a]) {
        bool along = !o->axes;
        for (int k = 0; k < o->axes; k++) along |= (o->axis[k] + s->rank) % s->rank == a;
        const int64_t n = s->size[a];
        int64_t by = 0;
        if (along) by = inverse ? n - n / 2 : n / 2;
        to += (i % n + by) % n * stride;
    }
    return to;
}

static void shift_one(duet_place p, duet_dtype type, const sizes *s, duet_fourier o, bool inverse)
{
    duet_matrix *x = duet_new_shape(type, s->rank, s->size), *y = duet_new_shape(type, s->rank, s->size);
    const size_t each = dtypes[type].bytes;
    int64_t wrong = 0;
    fill_bits(x);
    fill_bits(y);
    set_on(p, y, inverse ? (duet_ifftshift)(DUET(x), &o) : (duet_fftshift)(DUET(x), &o));
    const char *from = duet_read(x), *to = duet_read(y);
    for (int64_t i = 0; i < duet_count(x); i++)
        wrong += memcmp(from + i * (int64_t)each, to + shifted(s, &o, inverse, i) * (int64_t)each, each) != 0;
    CHECK(!wrong, "a shift of %s on the %s: %lld elements are wrong", dtypes[type].name, place_name(p),
          (long long)wrong);
    duet_free(&x);
    duet_free(&y);
}

static void shifts(duet_place p)
{
    static const sizes shapes[] = { SIZES(1),    SIZES(6),       SIZES(7),
                                    SIZES(5, 4), SIZES(3, 4, 5), SIZES(2, 2, 3, 1, 2, 2, 3, 2),
                                    SIZES(0, 3) };
    for (duet_dtype t = 0; t < DUET_DTYPE_COUNT; t++)
        for (int s = 0; s < 7; s++)
            for (int inverse = 0; inverse < 2; inverse++) {
                shift_one(p, t, &shapes[s], (duet_fourier){ 0 }, inverse);
                shift_one(p, t, &shapes[s], (duet_fourier){ 1, { -1 }, { 0 } }, inverse);
            }
    tap_point("fftshift and ifftshift of every type");
}

/* One element of the full convolution. */
static real sum_at(const array *x, const array *y, const int64_t *k, bool correlates)
{
    real sum = 0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t rest = i, at = 0;
        bool inside = true;
        for (int a = x->rank; a-- > 0; rest /= x->size[a]) {
            const int64_t j = k[a] - rest % x->size[a];
            inside &= j >= 0 && j < y->size[a];
            at += (correlates ? y->size[a] - 1 - j : j) * stride_of(y, a);
        }
        if (inside) sum += creall(x->v[i]) * creall(y->v[at]);
    }
    return sum;
}

static void convolve_one(duet_place p, duet_dtype type, const sizes *sx, const sizes *sy, duet_overlap part,
                         bool correlates)
{
    duet_matrix *x = duet_new_shape(type, sx->rank, sx->size), *y = duet_new_shape(type, sy->rank, sy->size);
    fill(x);
    fill(y);
    duet_expr e = correlates ? duet_fftcorrelate(x, y, part) : duet_fftconvolve(x, y, part);
    sizes s = sizes_of_expr(e);
    duet_matrix *z = duet_new_shape(type, s.rank, s.size);
    array a = array_of(x), b = array_of(y), want = array_new(s.rank, s.size);
    real terms = 1;
    for (int64_t i = 0; i < want.count; i++) {
        int64_t k[DUET_RANK_MAX], rest = i;
        for (int d = s.rank; d-- > 0; rest /= s.size[d]) {
            const int64_t m = sy->size[d] - 1;
            k[d] = rest % s.size[d];
            if (part == DUET_OVERLAP_SAME) k[d] += m / 2;
            else if (part != DUET_OVERLAP_FULL) k[d] += m;
        }
        want.v[i] = sum_at(&a, &b, k, correlates);
    }
    for (int d = 0; d < s.rank; d++) terms *= (real)(sx->size[d] + sy->size[d] - 1);
    const real u = type == DUET_F32 ? 0x1p-24L : 0x1p-53L;
    if (set_on(p, z, e))
        compare(correlates ? "fftcorrelate" : "fftconvolve", z, &want,
                16 * u * log2l(2 * terms) * (norm(&a) * sizes_of(&b) + sizes_of(&a) * norm(&b)));
    array_free(&a);
    array_free(&b);
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
}

static void convolutions(duet_place p)
{
    static const sizes pairs[][2] = { { SIZES(1), SIZES(1) },
                                      { SIZES(9), SIZES(4) },
                                      { SIZES(5), SIZES(8) },
                                      { SIZES(50), SIZES(17) },
                                      { SIZES(7, 9), SIZES(3, 4) },
                                      { SIZES(6, 1), SIZES(1, 5) },
                                      { SIZES(4, 5, 6), SIZES(3, 2, 4) } };
    for (int i = 0; i < 7; i++)
        for (int part = DUET_OVERLAP_FULL; part <= DUET_OVERLAP_VALID; part++)
            for (int correlates = 0; correlates < 2; correlates++)
                FOR_FLOAT_TYPES (t)
                    convolve_one(p, t, &pairs[i][0], &pairs[i][1], (duet_overlap)part, correlates);
    tap_point("convolutions");
}

/* ---- plans, recordings, threads ---- */

static void play(duet_place p, duet_matrix *x, duet_matrix *y, duet_matrix *z, duet_matrix *c)
{
    set_on(p, y, duet_rfftn(x));
    set_on(p, z, duet_irfftn(y, .axes = 2, .axis = { 0, 1 }, .n = { 0, 15 }));
    set_on(p, c, duet_fftconvolve(x, z, DUET_OVERLAP_SAME));
}

static void plans(duet_place p)
{
    duet_matrix *x = duet_new(DUET_F32, 12, 15), *y = duet_new(DUET_C64, 12, 8),
                *z = duet_new(DUET_F32, 12, 15), *c = duet_new(DUET_F32, 12, 15);
    fill(x);
    array want = array_of(x);
    play(p, x, y, z, c);
    play(p, x, y, z, c);
    const uint64_t made = duet_stats().transforms, taken = duet_stats().pool_misses;
    for (int i = 0; i < 20; i++) play(p, x, y, z, c);
    CHECK(duet_stats().transforms == made, "%d plans were not cached", (int)(duet_stats().transforms - made));
    CHECK(duet_stats().pool_misses == taken, "%d blocks were not from the pool",
          (int)(duet_stats().pool_misses - taken));
    CHECK(made > 0, "duet_stats counts no plan");
    compare("there and back", z, &want, norm(&want) * 100 * 0x1p-24L);
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&c);
    tap_point("repeated calls create no plan and allocate no memory");
}

static void recorded(duet_place p)
{
    duet_matrix *x = duet_new(DUET_F32, 12, 15), *y = duet_new(DUET_C64, 12, 8),
                *z = duet_new(DUET_F32, 12, 15), *c = duet_new(DUET_F32, 12, 15);
    fill(x);
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    play(p, x, y, z, c);
    duet_recording *r = duet_record_end();
    CHECK(r != NULL, "%s", duet_error());
    for (int i = 0; i < 5 && r; i++) {
        fill(x);
        array want = array_of(x);
        if (i == 3) duet_memory_trim();
        CHECK(duet_replay(r) == DUET_OK, "%s", duet_error());
        compare("replayed", z, &want, norm(&want) * 100 * 0x1p-24L);
        array_free(&want);
    }
    duet_recording_free(&r);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    duet_free(&c);
    tap_point("recording and replay");
}

/* Lengths that recur after other plans have evicted theirs. */
static void pushed_out(duet_place p)
{
    fft_limit(0);
    for (int64_t n = 2; n < 400; n++) {
        duet_matrix *x = duet_new(DUET_C64, n), *y = duet_new(DUET_C64, n);
        fill(x);
        array want = array_of(x);
        set_on(p, y, duet_fft(x, 0, 0));
        set_on(p, y, duet_ifft(y, 0, 0));
        compare("there and back", y, &want, norm(&want) * 400 * 0x1p-24L * 10);
        array_free(&want);
        duet_free(&x);
        duet_free(&y);
    }
    fft_limit((size_t)32 << 20);
    tap_point("plans that the cache has evicted live as long as their step");
}

static duet_place there;

static void *one_thread(void *arg)
{
    const int64_t n = 16 + 16 * ((intptr_t)arg % 2);
    duet_matrix *x = duet_new(DUET_F64, 8, n), *y = duet_new(DUET_C128, 8, n / 2 + 1),
                *z = duet_new(DUET_F64, 8, n);
    double *p = duet_overwrite(x);
    for (int64_t i = 0; i < 8 * n; i++) p[i] = (double)(i * i % 97) + (double)(intptr_t)arg;
    bool ok = true;
    for (int i = 0; i < 50 && ok; i++) {
        ok = duet_set_on(there, y, duet_rfftn(x)) == DUET_OK &&
             duet_set_on(there, z, duet_irfftn(y)) == DUET_OK;
        const double *q = duet_read(z), *r = duet_read(x);
        for (int64_t k = 0; k < 8 * n && ok; k++) ok = fabs(q[k] - r[k]) <= 1e-11;
    }
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    if (ok) return arg;
    return NULL;
}

static void threads(duet_place p)
{
    pthread_t t[6];
    there = p;
    for (intptr_t i = 0; i < 6; i++) pthread_create(&t[i], NULL, one_thread, (void *)(i + 1));
    for (intptr_t i = 0; i < 6; i++) {
        void *r;
        pthread_join(t[i], &r);
        CHECK(r == (void *)(i + 1), "thread %d has a wrong result", (int)i);
    }
    tap_point("six threads");
}

/* ---- bad input ---- */

static void refused(duet_matrix *y, duet_expr e, duet_status want, const char *says)
{
    const float before = ((const float *)duet_read(y))[0];
    const duet_status s = duet_set(y, e);
    CHECK(s == want && strstr(duet_error(), says), "status %d, not %d: %s", s, want, duet_error());
    CHECK(((const float *)duet_read(y))[0] == before, "a failed call has changed its destination");
}

static void bad(void)
{
    duet_matrix *x = duet_new(DUET_F32, 4, 6), *c = duet_new(DUET_C64, 4, 6), *i = duet_new(DUET_I64, 4),
                *none = duet_new(DUET_C64, 4, 0), *y = duet_new(DUET_C64, 4, 6),
                *w = duet_new(DUET_F64, 4, 6);
    fill(y);
    refused(y, duet_fft(x, 0, 2), DUET_BAD_SHAPE, "axis 2 does not exist");
    refused(y, duet_fft(x, 0, -3), DUET_BAD_SHAPE, "axis -3 does not exist");
    refused(y, duet_fft(x, -1, 0), DUET_BAD_ARGUMENT, "n (-1) must not be negative");
    refused(y, duet_fftn(x, .axes = 2, .axis = { 1, -1 }), DUET_BAD_ARGUMENT, "named twice");
    refused(y, duet_fftn(x, .axes = 3), DUET_BAD_SHAPE, "the number of axes");
    refused(y, duet_fftn(x, .axes = -1), DUET_BAD_SHAPE, "the number of axes");
    refused(y, duet_fftn(1.0), DUET_BAD_SHAPE, "axes");
    refused(y, duet_fft(i, 0, 0), DUET_BAD_TYPE, "must be f32, f64, c64 or c128");
    refused(y, duet_rfft(c, 0, 0), DUET_BAD_TYPE, "must be f32 or f64");
    refused(y, duet_irfft(x, 0, 0), DUET_BAD_TYPE, "must be c64 or c128");
    refused(y, duet_fft(none, 0, 1), DUET_BAD_SHAPE, "the transform along axis 1 has length");
    refused(y, duet_fftshift(x, .axes = 1, .n = { 3 }), DUET_BAD_ARGUMENT, "a shift has no length");
    refused(y, duet_rfftn(x), DUET_BAD_SHAPE, "");
    refused(y, duet_fftn(w), DUET_BAD_TYPE, "");
    refused(y, duet_fftconvolve(x, c, DUET_OVERLAP_FULL), DUET_BAD_TYPE, "");
    refused(y, duet_fftconvolve(x, duet_sum_axis(x, 0), DUET_OVERLAP_FULL), DUET_BAD_SHAPE,
            "the same number of axes");
    refused(y, duet_fftconvolve(x, x, (duet_overlap)3), DUET_BAD_ARGUMENT, "overlap (3)");
    duet_free(&x);
    duet_free(&c);
    duet_free(&i);
    duet_free(&none);
    duet_free(&y);
    duet_free(&w);
    tap_point("invalid arguments");
}

/* The steps of the plan that are transforms. */
static int transform_steps(duet_matrix *to, duet_expr e)
{
    char text[4000] = "";
    int n = 0;
    FILE *out = fmemopen(text, sizeof text, "w");
    CHECK(duet_explain(out, to, e) == DUET_OK && duet_drop(e) == DUET_OK, "%s", duet_error());
    fclose(out);
    for (const char *p = text; (p = strstr(p, ". fftn;")); p++) n++;
    return n;
}

/* The transform of a transform along the other axis. `apart`: the first one is stored. */
static duet_expr nested(const duet_matrix *x, int kind, bool apart)
{
    const int64_t n = duet_size(x, 1);
    duet_expr e = DUET((duet_matrix *)x);
    if (kind == 0) e = duet_fft(e, n + 3, 1);
    else if (kind == 1) e = duet_ifft(e, 0, 1);
    else if (kind == 2) e = duet_rfft(duet_real(e), 0, 1);
    else e = duet_ifft(e, 0, 0);
    if (apart) e = duet_checkpoint(e);
    if (kind == 0) return duet_fft(e, 7, 0); /* shorter */
    if (kind == 1) return duet_ifft(e, 0, 0);
    return kind == 2 ? duet_fft(e, 0, 0) : duet_complex(duet_irfft(e, 2 * n - 2, 1), 0);
}

static void check_nested(duet_matrix *x, int kind)
{
    duet_matrix *y = duet_eval(nested(x, kind, false)), *z = duet_eval(nested(x, kind, true));
    array want = array_of(z);
    const real rounding = duet_type(x) == DUET_C64 ? 0x1p-24L : 0x1p-53L;
    compare("nested transforms", y, &want, 100 * rounding * norm(&want));
    CHECK(transform_steps(y, nested(x, kind, false)) == 1, "kind %d: not one step", kind);
    CHECK(transform_steps(z, nested(x, kind, true)) == 2, "kind %d: not two steps", kind);
    array_free(&want);
    duet_free(&y);
    duet_free(&z);
}

/* Checks transforms whose axes are not adjacent, and three nested transforms. */
static void nested_deeply(void)
{
    duet_matrix *x = duet_new(DUET_C128, 6, 5, 7), *y = duet_new(DUET_C128, 6, 5, 7);
    fill(x);
    array want = { 0 };
    for (int three = 0; three < 2; three++) {
        duet_expr e = duet_checkpoint(duet_fft(duet_checkpoint(duet_fft(x, 0, 2)), 0, 0));
        CHECK(duet_set(y, three ? duet_fft(e, 0, 1) : e) == DUET_OK, "%s", duet_error());
        want = array_of(y);
        e = duet_fft(duet_fft(x, 0, 2), 0, 0);
        CHECK(transform_steps(y, three ? duet_fft(e, 0, 1) : e) == 1, "%d transforms", 2 + three);
        e = duet_fft(duet_fft(x, 0, 2), 0, 0);
        CHECK(duet_set(y, three ? duet_fft(e, 0, 1) : e) == DUET_OK, "%s", duet_error());
        compare("nested deeply", y, &want, 100 * 0x1p-53L * norm(&want));
        array_free(&want);
    }
    duet_free(&x);
    duet_free(&y);
}

/* Two transforms along different axes are one step, unless the first one is also used by others, or the
 * second one pads. */
static void nested_transforms(duet_place p)
{
    DUET_ON(p)
    {
        for (int wide = 0; wide < 2; wide++) {
            duet_matrix *x = duet_new(wide ? DUET_C128 : DUET_C64, 12, 10);
            fill(x);
            for (int kind = 0; kind < 4; kind++) check_nested(x, kind);
            duet_free(&x);
        }
        nested_deeply();
        duet_matrix *x = duet_new(DUET_C64, 12, 10), *y = duet_new(DUET_C64, 12, 10),
                    *longer = duet_new(DUET_C64, 20, 10);
        fill(x);
        const duet_expr rows = duet_fft(x, 0, 1);
        CHECK(transform_steps(y, duet_add(rows, duet_fft(rows, 0, 0))) == 2,
              "a shared transform is computed twice");
        CHECK(transform_steps(y, duet_fft(duet_fft(x, 0, 0), 0, 0)) == 2, "two transforms along one axis");
        CHECK(transform_steps(y, duet_ifft(duet_fft(x, 0, 1), 0, 0)) == 2, "different transforms");
        CHECK(transform_steps(longer, duet_fft(duet_fft(x, 0, 1), 20, 0)) == 2, "a transform that pads");
        duet_free(&x);
        duet_free(&y);
        duet_free(&longer);
    }
    tap_point("nested transforms");
}

static void explained(void)
{
    duet_matrix *x = duet_new(DUET_F32, 4, 6), *y = duet_new(DUET_C64, 4, 4), *z = duet_new(DUET_F32, 6, 6);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    duet_expr e = duet_rfftn(x, .axes = 2, .axis = { 0, 1 });
    DUET_ON(DUET_CPU) CHECK(duet_explain(out, y, e) == DUET_OK, "%s", duet_error());
    forget(e);
    e = duet_irfft(duet_fftconvolve(x, x, DUET_OVERLAP_SAME), 0, 1);
    CHECK(duet_expr_status(e) == DUET_BAD_TYPE, "irfft of a real matrix did not fail");
    forget(e);
    e = duet_fftn(x, .axes = 1, .axis = { -1 }, .n = { 5 });
    CHECK(duet_print_expr(out, e) == DUET_OK && duet_expr_size(e, 1) == 5, "%s", duet_error());
    forget(e);
    fclose(out);
    CHECK(strstr(text, "by FFTW") && strstr(text, "duet_fftn(A, .axes = 1, .axis = {1}, .n = {5})"), "%s",
          text);
    free(text);
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    tap_point("duet_explain and duet_print_expr");
}

/* In a child process in which no library is open. */
static void missing(const char *library, const char *says)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("DUET_FFT", library, 1);
        duet_matrix *x = duet_new(DUET_F32, 4), *y = duet_new(DUET_C64, 4);
        const duet_status s = duet_set_on(DUET_CPU, y, duet_fft(x, 0, 0));
        const bool ok = s == DUET_UNSUPPORTED && strstr(duet_error(), says);
        if (!ok) printf("# status %d: %s\n", s, duet_error());
        fflush(stdout);
        _exit(!ok);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "DUET_FFT=%s", library);
}

static void without_fftw(void)
{
    missing("/nowhere/libfftw3.so", "/nowhere/libfftw3.so");
    missing("libm.so.6", "lacks fftwf_plan_guru64_dft");
    tap_point("without FFTW");
}

#ifdef FAKE_CUDA
static void without_cufft(void)
{
    duet_matrix *x = duet_new(DUET_F32, 4), *y = duet_new(DUET_C64, 4);
    fake_without("cufft", "no such file");
    CHECK(duet_set_on(DUET_GPU, y, duet_fft(x, 0, 0)) == DUET_UNSUPPORTED &&
              strstr(duet_error(), "no such file"),
          "%s", duet_error());
    CHECK(duet_set(y, duet_fft(x, 0, 0)) == DUET_OK, "the CPU does not work without cuFFT: %s", duet_error());
    fake_without("cufft", NULL);
    duet_free(&x);
    duet_free(&y);
    tap_point("without cuFFT");
}

/* A batch that exceeds device memory is streamed; a transform along the first axis is not. */
static void streamed(void)
{
    duet_matrix *x = duet_new(DUET_F32, 3000, 15), *y = duet_new(DUET_F32, 3000, 15),
                *c = duet_new(DUET_C64, 3000, 8);
    fill(x);
    array want = array_of(x);
    stream_from(0);
    stream_staged_from(0);
    duet_memory_trim();
    CHECK(duet_memory_limit(DUET_GPU, duet_memory_of(DUET_GPU).used + 120000) == DUET_OK, "%s", duet_error());
    const uint64_t before = duet_stats().streams;
    set_on(DUET_GPU, y, duet_irfft(duet_rfft(x, 0, 1), 15, 1));
    CHECK(duet_stats().streams == before + 1, "the statement was not streamed");
    compare("streamed", y, &want, 100 * 0x1p-24L * norm(&want));
    CHECK(duet_set_on(DUET_GPU, y, duet_irfft(duet_rfft(x, 0, 0), 3000, 0)) == DUET_NO_MEMORY, "%s",
          duet_error());
    CHECK(duet_set(c, duet_rfft(x, 0, 1)) == DUET_OK, "%s", duet_error());
    CHECK(duet_memory_limit(DUET_GPU, 0) == DUET_OK, "%s", duet_error());
    array_free(&want);
    duet_free(&x);
    duet_free(&y);
    duet_free(&c);
    tap_point("streamed statements");
}
#endif

int main(void)
{
    duet_place place[2];
    if (!fft_absent()) without_fftw();
    gen = rng_new(20261122);
    const int places = list_transforming(place);
    if (!places) return 0;
    for (int p = 0; p < places; p++) {
        printf("# on the %s\n", place_name(place[p]));
        shifts(place[p]);
        convolutions(place[p]);
        plans(place[p]);
        recorded(place[p]);
        threads(place[p]);
        nested_transforms(place[p]);
    }
    if (place[0] == DUET_CPU) {
        pushed_out(DUET_CPU);
        explained();
    }
    bad();
#ifdef FAKE_CUDA
    without_cufft();
    streamed();
#endif
    return tap_end();
}

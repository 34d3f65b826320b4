/* handwritten.cu - kernels as a CUDA programmer would write them; see handwritten.h. The compiler
 * may contract products and sums, and the functions are CUDA's own at full precision. */
#include "handwritten.h"
#include <cuda_runtime.h>
#include <stdlib.h>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        cudaError_t error_ = (call);                                                                         \
        if (error_ != cudaSuccess) return cudaGetErrorString(error_);                                        \
    } while (0)

static cudaStream_t stream;

extern "C" const char *handwritten_open(void *s)
{
    const char *device = getenv("DUET_DEVICE");
    CHECK(cudaSetDevice(device ? atoi(device) : 0));
    stream = (cudaStream_t)s;
    if (!s) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return NULL;
}

extern "C" void *handwritten_stream(void) { return stream; }

extern "C" const char *handwritten_wait(void)
{
    CHECK(cudaStreamSynchronize(stream));
    return NULL;
}

extern "C" const char *handwritten_copy(float *to, const float *from, int64_t n)
{
    CHECK(cudaMemcpyAsync(to, from, (size_t)n * sizeof *to, cudaMemcpyDeviceToDevice, stream));
    return NULL;
}

/* ---- the link between host and GPU ---- */

#define COPIES 20

struct direction {
    bool used;
    void *host, *device;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaMemcpyKind kind;
};

static cudaError_t open_direction(direction *w, size_t bytes)
{
    cudaError_t e = cudaMallocHost(&w->host, bytes);
    if (e == cudaSuccess) e = cudaMalloc(&w->device, bytes);
    if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) e = cudaEventCreate(&w->begin);
    return e == cudaSuccess ? cudaEventCreate(&w->end) : e;
}

static cudaError_t copy_once(const direction *w, size_t bytes)
{
    const bool up = w->kind == cudaMemcpyHostToDevice;
    return cudaMemcpyAsync(up ? w->device : w->host, up ? w->host : w->device, bytes, w->kind, w->stream);
}

/* Copy -1 is not timed: it touches the pages for the first time. */
static cudaError_t copy_all(direction w[2], size_t bytes)
{
    cudaError_t e = cudaSuccess;
    for (int n = -1; n <= COPIES; n++)
        for (int i = 0; i < 2; i++) {
            if (!w[i].used || e != cudaSuccess) continue;
            if (n == 0) e = cudaEventRecord(w[i].begin, w[i].stream);
            if (n < COPIES && e == cudaSuccess) e = copy_once(&w[i], bytes);
            if (n == COPIES) e = cudaEventRecord(w[i].end, w[i].stream);
        }
    return e == cudaSuccess ? cudaDeviceSynchronize() : e;
}

static void close_direction(direction *w)
{
    cudaFreeHost(w->host);
    cudaFree(w->device);
    if (w->stream) cudaStreamDestroy(w->stream);
    if (w->begin) cudaEventDestroy(w->begin);
    if (w->end) cudaEventDestroy(w->end);
}

extern "C" const char *handwritten_link(size_t bytes, bool up, bool down, double *seconds)
{
    direction w[2] = { { up }, { down } };
    w[0].kind = cudaMemcpyHostToDevice;
    w[1].kind = cudaMemcpyDeviceToHost;
    cudaError_t e = cudaSuccess;
    float most = 0, ms = 0;
    for (int i = 0; i < 2 && e == cudaSuccess; i++)
        if (w[i].used) e = open_direction(&w[i], bytes);
    if (e == cudaSuccess) e = copy_all(w, bytes);
    for (int i = 0; i < 2 && e == cudaSuccess; i++)
        if (w[i].used && (e = cudaEventElapsedTime(&ms, w[i].begin, w[i].end)) == cudaSuccess && ms > most)
            most = ms;
    for (int i = 0; i < 2; i++) close_direction(&w[i]);
    *seconds = most / 1e3 / COPIES;
    return e == cudaSuccess ? NULL : cudaGetErrorString(e);
}

/* ---- a bare launch ---- */

template <int BYTES> struct parameters {
    unsigned char byte[BYTES];
};
template <int BYTES> static __global__ void nothing(const __grid_constant__ parameters<BYTES> p) {}

template <int BYTES> static cudaError_t launch_nothing()
{
    static parameters<BYTES> p;
    void *arguments[] = { &p };
    return cudaLaunchKernel((const void *)nothing<BYTES>, dim3(1), dim3(128), arguments, 0, stream);
}

extern "C" const char *handwritten_launch(size_t bytes)
{
    cudaError_t (*launch)() = launch_nothing<4000>;
    if (bytes <= 64) launch = launch_nothing<64>;
    else if (bytes <= 1024) launch = launch_nothing<1024>;
    else if (bytes <= 2048) launch = launch_nothing<2048>;
    CHECK(launch());
    return NULL;
}

template <int BYTES> static cudaError_t launch_nothing_early()
{
    static parameters<BYTES> p;
    void *arguments[] = { &p };
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = dim3(1);
    how.blockDim = dim3(128);
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = 1;
    return cudaLaunchKernelExC(&how, (const void *)nothing<BYTES>, arguments);
}

extern "C" const char *handwritten_launch_early(size_t bytes)
{
    CHECK(bytes <= 128 ? launch_nothing_early<128>() : launch_nothing_early<256>());
    return NULL;
}

/* ---- element-wise kernels: a thread computes VECTORS times four elements; single threads compute
 *      the tail ---- */

#define THREADS 256

struct pointers {
    const float *in[3];
    float *out[2];
};

/* Applies f to element i. */
template <int IN, int OUT, class F> static __device__ void at_one(const pointers &p, int64_t i, const F &f)
{
    float x[IN], y[OUT];
    for (int k = 0; k < IN; k++) x[k] = p.in[k][i];
    f(x, y);
    for (int k = 0; k < OUT; k++) p.out[k][i] = y[k];
}

template <int IN, int OUT, int VECTORS, class F>
static __global__ void __launch_bounds__(THREADS) map(pointers p, int64_t n, F f)
{
    const int64_t vectors = n / 4, base = (int64_t)blockIdx.x * THREADS * VECTORS + threadIdx.x;
    float4 in[IN][VECTORS], out[OUT][VECTORS];
#pragma unroll
    for (int k = 0; k < IN; k++)
#pragma unroll
        for (int j = 0; j < VECTORS; j++)
            if (base + j * THREADS < vectors) in[k][j] = __ldcs((const float4 *)p.in[k] + base + j * THREADS);
#pragma unroll
    for (int j = 0; j < VECTORS; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            float x[IN], y[OUT];
#pragma unroll
            for (int k = 0; k < IN; k++) x[k] = (&in[k][j].x)[c];
            f(x, y);
#pragma unroll
            for (int k = 0; k < OUT; k++) (&out[k][j].x)[c] = y[k];
        }
#pragma unroll
    for (int k = 0; k < OUT; k++)
#pragma unroll
        for (int j = 0; j < VECTORS; j++)
            if (base + j * THREADS < vectors) __stcs((float4 *)p.out[k] + base + j * THREADS, out[k][j]);
    if (blockIdx.x == 0 && threadIdx.x < n % 4) at_one<IN, OUT>(p, vectors * 4 + threadIdx.x, f);
}

template <int VECTORS> static unsigned blocks_for(int64_t n)
{
    const int64_t each = (int64_t)4 * THREADS * VECTORS;
    return (unsigned)((n + each - 1) / each);
}

/* With few elements, a thread computes only four of them, so that there are more threads. */
template <int IN, int OUT, class F> static const char *run(pointers p, int64_t n, F f)
{
    if (n && n < 1 << 20) map<IN, OUT, 1><<<blocks_for<1>(n), THREADS, 0, stream>>>(p, n, f);
    else if (n) map<IN, OUT, 2><<<blocks_for<2>(n), THREADS, 0, stream>>>(p, n, f);
    CHECK(cudaGetLastError());
    return NULL;
}

struct axpby {
    float s, r;
    __device__ void operator()(const float *x, float *y) const { y[0] = s * x[0] + r * x[1]; }
};
struct add {
    __device__ void operator()(const float *x, float *y) const { y[0] = x[0] + x[1]; }
};
/* a = (b - (a + 3.75 c) + c - 0.24 b) / 27.51 + a - 0.25 b */
struct wiemann {
    __device__ void operator()(const float *x, float *y) const
    {
        float a = x[0], b = x[1], c = x[2];
        y[0] = (b - (a + 3.75f * c) + c - 0.24f * b) / 27.51f + a - 0.25f * b;
    }
};
struct sigmoid {
    __device__ void operator()(const float *x, float *y) const { y[0] = 1 / (1 + expf(-x[0])); }
};

/* The interest rate is 0.02 and the volatility 0.3, as in black_scholes.h. */
struct prices {
    __device__ void operator()(const float *x, float *y) const
    {
        float s = x[0], k = x[1], t = x[2], deviation = 0.3f * sqrtf(t);
        float d1 = (logf(s / k) + 0.065f * t) / deviation, d2 = d1 - deviation, debt = k * expf(-0.02f * t);
        y[0] = s * normcdff(d1) - debt * normcdff(d2);
        y[1] = debt * normcdff(-d2) - s * normcdff(-d1);
    }
};
struct call_price {
    __device__ void operator()(const float *x, float *y) const
    {
        float both[2];
        prices()(x, both);
        y[0] = both[0];
    }
};

template <int LENGTH> struct mix {
    __device__ void operator()(const float *x, float *y) const
    {
        float a = x[0];
#pragma unroll
        for (int i = 0; i < LENGTH; i++) {
            float b = x[i % 3];
            switch (i % 4) {
            case 0: a = a * b; break;
            case 1: a = a + b; break;
            case 2: a = fmaf(0.5f, b, a); break;
            default: a = a * 0.9f;
            }
        }
        y[0] = a;
    }
};

extern "C" const char *handwritten_add(float *d, const float *x, const float *y, int64_t n)
{
    return run<2, 1>({ { x, y }, { d } }, n, add());
}
extern "C" const char *handwritten_axpby(float *d, float s, const float *x, float r, const float *y,
                                         int64_t n)
{
    return run<2, 1>({ { x, y }, { d } }, n, axpby{ s, r });
}
extern "C" const char *handwritten_wiemann(float *d, const float *x, const float *y, int64_t n)
{
    return run<3, 1>({ { d, x, y }, { d } }, n, wiemann());
}
extern "C" const char *handwritten_sigmoid(float *d, const float *x, int64_t n)
{
    return run<1, 1>({ { x }, { d } }, n, sigmoid());
}
extern "C" const char *handwritten_black_scholes(float *call, float *put, const float *s, const float *k,
                                                 const float *t, int64_t n)
{
    return put ? run<3, 2>({ { s, k, t }, { call, put } }, n, prices())
               : run<3, 1>({ { s, k, t }, { call } }, n, call_price());
}

extern "C" const char *handwritten_program(int length, float *d, const float *x, const float *y,
                                           const float *z, int64_t n)
{
    switch (length) {
#define LENGTH(l)                                                                                            \
    case l: return run<3, 1>({ { x, y, z }, { d } }, n, mix<l>());
        LENGTH(2)
        LENGTH(8) LENGTH(16) LENGTH(20) LENGTH(24) LENGTH(28) LENGTH(32) LENGTH(40) LENGTH(48) LENGTH(64)
#undef LENGTH
    }
    return "no handwritten kernel has this number of operators";
}

/* ---- the arithmetic peak ---- */

#define CHAINS 8
#define LINKS  4096

static __global__ void __launch_bounds__(THREADS) multiply_add(float s, float *out)
{
    float a[CHAINS];
    for (int c = 0; c < CHAINS; c++) a[c] = (float)(threadIdx.x + c);
#pragma unroll 16
    for (int i = 0; i < LINKS; i++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++) a[c] = fmaf(a[c], s, 1.0f);
    float sum = 0;
    for (int c = 0; c < CHAINS; c++) sum += a[c];
    if (sum == s) *out = sum; /* never true, but it keeps the compiler from removing the loop */
}

extern "C" double handwritten_peak(void)
{
    cudaEvent_t from, to;
    int device, processors;
    float ms = 0, best = 0;
    if (cudaGetDevice(&device) || cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device))
        return 0;
    if (cudaEventCreate(&from) || cudaEventCreate(&to)) return 0;
    const unsigned blocks = (unsigned)processors * 64;
    for (int i = 0; i < 7; i++) {
        cudaEventRecord(from, stream);
        multiply_add<<<blocks, THREADS, 0, stream>>>(0.5f, NULL);
        cudaEventRecord(to, stream);
        if (cudaEventSynchronize(to) || cudaEventElapsedTime(&ms, from, to)) return 0;
        if (!best || ms < best) best = ms;
    }
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return 2.0 * CHAINS * LINKS * THREADS * blocks / (best * 1e-3);
}

/* ---- graphs ---- */

struct handwritten_graph {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

static bool record_all(int count, bool (*record)(void *state), void *state)
{
    for (int i = 0; i < count; i++)
        if (!record(state)) return false;
    return true;
}

extern "C" const char *handwritten_graph_make(handwritten_graph **g, int count, bool (*record)(void *state),
                                              void *state)
{
    static handwritten_graph graphs[8];
    handwritten_graph *made = graphs;
    while (made < graphs + 8 && made->exec) made++;
    if (made == graphs + 8) return "too many graphs";
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const bool ok = record_all(count, record, state);
    const cudaError_t ended = cudaStreamEndCapture(stream, &made->graph);
    if (ended != cudaSuccess) cudaGetLastError();
    if (!ok) return "a recorded statement failed";
    CHECK(ended);
    CHECK(cudaGraphInstantiate(&made->exec, made->graph, 0));
    *g = made;
    return NULL;
}

extern "C" const char *handwritten_graph_run(handwritten_graph *g)
{
    CHECK(cudaGraphLaunch(g->exec, stream));
    return NULL;
}

extern "C" void handwritten_graph_free(handwritten_graph **g)
{
    if (!*g) return;
    cudaGraphExecDestroy((*g)->exec);
    cudaGraphDestroy((*g)->graph);
    (*g)->exec = NULL;
    *g = NULL;
}

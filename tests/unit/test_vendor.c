/* test_vendor.c - the real table of vendor libraries: each opens with all its functions or says why
 * not. */
#include "tap.h"
#include "vendor.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {
#define LIBRARY(name, ...) #name,
#include "vendor.def"
};

/* Counts the missing pointers of one library, as the rows list them. */
static int holes(const vendor *v, enum library l)
{
    int n = 0;
#define VENDOR(lib, f)  VENDOR_(lib, f)
#define VENDOR_(lib, f) n += LIBRARY_##lib == l && !v->f;
#include "vendor.def"
#undef VENDOR_
    return n;
}

static void test_library(enum library l)
{
    const vendor *v = vendor_open(l);
    CHECK(v && v == vendor_open(l), "vendor_open returned another table");
    if (v->missing[l]) CHECK(strlen(v->missing[l]) > 3, "%s: no reason is given", names[l]);
    else
        CHECK(!holes(v, l) && v->place[l], "%s: %d functions are missing without a reason", names[l],
              holes(v, l));
    printf("# %s: %s\n", names[l], v->missing[l] ? v->missing[l] : v->place[l]);
    tap_point(names[l]);
}

/* The result of a call without a card depends on the vendor, but the call must return. */
static void test_calls(void)
{
    const vendor *v = vendor_open(LIBRARY_cublasLt);
    cublasLtHandle_t h;
    int major = 0;
    if (!v->missing[LIBRARY_cublasLt]) {
        CHECK(v->cublasLtGetProperty(MAJOR_VERSION, &major) == CUBLAS_STATUS_SUCCESS &&
                  major == CUBLAS_VER_MAJOR,
              "cuBLASLt has version %d", major);
        printf("# cublasLtCreate: %s\n", v->cublasLtGetStatusString(v->cublasLtCreate(&h)));
    }
    v = vendor_open(LIBRARY_cudnn);
    if (!v->missing[LIBRARY_cudnn]) {
        CHECK(v->cudnnGetVersion() / 10000 == CUDNN_MAJOR, "cuDNN has version %zu", v->cudnnGetVersion());
        CHECK(v->cudnnGetCudartVersion() / 1000 == CUDART_VERSION / 1000, "cuDNN was built for CUDA %zu",
              v->cudnnGetCudartVersion());
    }
    CHECK(true, "no vendor library is installed");
    tap_point("calls of vendor functions");
}

/* In a child process in which no library is open: a file that does not exist, one that is no
 * library, one that is another library. */
static void test_named(const char *variable, enum library l, const char *path, const char *says)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv(variable, path, 1);
        const vendor *v = vendor_open(l);
        bool fits = v->missing[l] && strstr(v->missing[l], says);
        if (!fits) printf("# %s=%s: %s\n", variable, path, v->missing[l] ? v->missing[l] : "opens");
        fflush(stdout);
        _exit(!fits);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s=%s should say \"%s\"", variable, path, says);
}

int main(void)
{
    test_named("DUET_CUBLASLT", LIBRARY_cublasLt, "/nowhere/libcublasLt.so", "/nowhere/libcublasLt.so");
    test_named("DUET_CUDNN", LIBRARY_cudnn, "/dev/null", "/dev/null");
    test_named("DUET_CUDNN", LIBRARY_cudnn, "libm.so.6", "lacks cudnn");
    tap_point("libraries named by the environment");
    for (enum library l = 0; l < LIBRARIES; l++) test_library(l);
    test_calls();
    return tap_end();
}

/* vendor.c - opens the vendor libraries. The library links to none of them: each is opened at first
 * use by the soname of the major version of the build. A missing library disables only the steps
 * that need it. */
#define _GNU_SOURCE /* for dladdr */
#include "vendor.h"
#include "environment.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define VENDOR_TEXT(x)  VENDOR_TEXT_(x)
#define VENDOR_TEXT_(x) #x

/* Where the libraries were at build time; tried after the paths of the loader. */
#ifndef DIR_cublasLt
#define DIR_cublasLt ""
#endif
#ifndef DIR_cudnn
#define DIR_cudnn ""
#endif
#ifndef DIR_cufft
#define DIR_cufft ""
#endif

#ifndef DIR_cusolver
#define DIR_cusolver ""
#endif
#ifndef DIR_cusparse
#define DIR_cusparse ""
#endif
#ifndef DIR_nccl
#define DIR_nccl ""
#endif
#define DIR_cudss "" /* it does not come with the CUDA toolkit */
#ifndef DIR_cublas
#define DIR_cublas ""
#endif

static vendor table;
static char text[LIBRARIES][512];

static void *open_at(enum library l, const char *path)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) snprintf(text[l], sizeof text[l], "%s", dlerror());
    return h;
}

/* Tries only the file in the environment variable, if it is set; otherwise the soname on the path
 * of the loader, then in dir. The first error is reported. */
static void *open_library(enum library l, const char *soname, const char *dir, const char *variable)
{
    const char *named = environment_trusted(variable);
    if (named && *named) return open_at(l, named);
    void *h = open_at(l, soname);
    char path[512];
    if (h || !*dir || snprintf(path, sizeof path, "%s/%s", dir, soname) >= (int)sizeof path) return h;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void lacks(enum library l, const char *function)
{
    snprintf(text[l], sizeof text[l], "%s lacks %s", table.place[l] ? table.place[l] : "the file found",
             function);
    table.missing[l] = text[l];
}

static void opened_at(enum library l, const void *function)
{
    Dl_info info;
    table.place[l] = dladdr(function, &info) && info.dli_fname ? info.dli_fname : "(unknown)";
}

/* A cuDNN for another CUDA major version fails in obscure ways. */
static void check_cudnn(void)
{
    int major = (int)(table.cudnnGetCudartVersion() / 1000);
    if (major == CUDART_VERSION / 1000) return;
    snprintf(text[LIBRARY_cudnn], sizeof text[0], "%s is built for CUDA %d, this library for CUDA %d",
             table.place[LIBRARY_cudnn], major, CUDART_VERSION / 1000);
    table.missing[LIBRARY_cudnn] = text[LIBRARY_cudnn];
}

static void check_cublasLt(void) {}
static void check_cufft(void) {}
static void check_cusolver(void) {}
static void check_cublas(void) {}
static void check_cusparse(void) {}
static void check_cudss(void) {}
static void check_nccl(void) {}

/* open_cublasLt, open_cudnn: open a library, then look up its functions by their linker names. */
#define VENDOR(lib, f)          VENDOR_(lib, f)
#define VENDOR_(lib, f)         { LIBRARY_##lib, #f, (void **)&table.f, false },
#define VENDOR_OPTIONAL(lib, f) { LIBRARY_##lib, #f, (void **)&table.f, true },
static const struct function {
    enum library lib;
    const char *name;
    void **at;
    bool is_optional;
} functions[] = {
#include "vendor.def"
};
#undef VENDOR_

static bool find_functions(enum library l, void *h)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        if (f->lib != l) continue;
        *f->at = dlsym(h, f->name);
        if (!*f->at && f->is_optional) continue;
        if (!*f->at) {
            lacks(l, f->name);
            return false;
        }
        if (!table.place[l]) opened_at(l, *f->at);
    }
    return true;
}

#define LIBRARY(lib, soname, variable)                                                                       \
    static void open_##lib(void)                                                                             \
    {                                                                                                        \
        void *h = open_library(LIBRARY_##lib, soname, DIR_##lib, variable);                                  \
        if (!h) table.missing[LIBRARY_##lib] = text[LIBRARY_##lib];                                          \
        else if (find_functions(LIBRARY_##lib, h)) check_##lib();                                            \
    }
#include "vendor.def"

const vendor *vendor_open(enum library l)
{
    static pthread_once_t once[LIBRARIES] = { [0 ... LIBRARIES - 1] = PTHREAD_ONCE_INIT };
    static void (*const open[LIBRARIES])(void) = {
#define LIBRARY(lib, ...) open_##lib,
#include "vendor.def"
    };
    pthread_once(&once[l], open[l]);
    return &table;
}

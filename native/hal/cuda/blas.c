/* Opening libcublasLt; see blas.h. */
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

bp_blas_library bp_blas;

static _Atomic int32_t opened;
static char reason[200];
static const char *(*status_name)(bp_blas_result result);

static void *find(void) {
    static const char *const NAMES[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    void *library = NULL;
    for (unsigned i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]) && !library; i++) {
        library = dlopen(NAMES[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library && !reason[0])
            snprintf(reason, sizeof(reason), "cuBLASLt cannot be opened: %.160s", dlerror());
    }
    return library;
}

/* Versions count 10000 * major + 100 * minor + patch, from CUDA 12 on. */
static void name_version(void *library) {
    size_t (*version)(void) = NULL;
    *(void **)&version = dlsym(library, "cublasLtGetVersion");
    size_t number = version ? version() : 0;
    snprintf(bp_blas.name, sizeof(bp_blas.name), "cuBLASLt %zu.%zu.%zu", number / 10000,
             number / 100 % 100, number % 100);
}

static void open_once(void) {
    const char *missing = NULL;
    void *library = find();
    if (!library) {
        opened = BP_UNAVAILABLE;
        return;
    }
#define BP_BLAS_FIND(field, symbol, parameters)                                                    \
    *(void **)&bp_blas.field = dlsym(library, #symbol);                                            \
    if (!bp_blas.field)                                                                            \
        missing = #symbol;
    BP_BLAS_FUNCTIONS(BP_BLAS_FIND)
#undef BP_BLAS_FIND
    *(void **)&status_name = dlsym(library, "cublasLtGetStatusName");
    name_version(library);
    if (missing) {
        opened = BP_UNAVAILABLE;
        snprintf(reason, sizeof(reason), "%s lacks %s", bp_blas.name, missing);
    }
}

int32_t bp_blas_open(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened ? bp_fail(opened, "%s", reason) : BP_OK;
}

int bp_blas_missing(void) {
    return opened != BP_OK;
}

const char *bp_blas_words(void) {
    return bp_blas_open() ? reason : bp_blas.name;
}

int32_t bp_blas_check(bp_blas_result result, const char *what) {
    int32_t status = BP_INTERNAL;
    if (result == BP_BLAS_SUCCESS)
        return BP_OK;
    if (result == BP_BLAS_NOT_SUPPORTED)
        status = BP_UNSUPPORTED;
    else if (result == BP_BLAS_ALLOC_FAILED)
        status = BP_OUT_OF_MEMORY;
    else if (result == BP_BLAS_INVALID_VALUE)
        status = BP_INVALID_ARGUMENT;
    return bp_fail(status, "%s: %s (%d)", what, status_name ? status_name(result) : "cuBLASLt",
                   result);
}

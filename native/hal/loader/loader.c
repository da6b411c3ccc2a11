/*
 * From a path to a backend: dlopen, one symbol, one query, negotiation.
 *
 * Contract: the caller decided that the file may be trusted (ownership, mode, hash); here only a
 * relative path is refused, because dlopen would search for it. A library is never closed: it may
 * have started threads. The same path answers with the same tables, so a second load runs nothing.
 */
#define _GNU_SOURCE
#include "../adopt.h"
#include "bedplate/hal_loader.h"
#include "host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct loaded {
    struct loaded *next;
    char *path;
    bp_host host;
    const bp_api *api;
} loaded;

typedef int32_t (*query_function)(const bp_host *, uint32_t, const bp_api **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *first;

static const loaded *find(const char *path) {
    for (const loaded *one = first; one; one = one->next)
        if (strcmp(one->path, path) == 0)
            return one;
    return NULL;
}

/* Opens the library at one->path and asks it; fills one->api. */
static int32_t open_and_ask(loaded *one, uint32_t major, uint32_t minor) {
    void *library = dlopen(one->path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return bp_fail(BP_UNAVAILABLE, "cannot open %s: %s", one->path, dlerror());
    query_function query = NULL;
    *(void **)&query = dlsym(library, "bedplate_hal_backend_query");
    if (!query)
        return bp_fail(BP_NOT_FOUND, "%s does not export bedplate_hal_backend_query", one->path);
    const bp_api *answer = NULL;
    int32_t status = query(&one->host, major, &answer);
    if (status)
        return bp_fail(status, "%s refused the query for ABI major %u with status %d", one->path,
                       major, status);
    status = bp_hal_adopt(answer, major, minor, &one->api);
    if (status) {
        char why[BP_ERROR_BYTES];
        bp_error_copy(why, sizeof(why), NULL);
        return bp_fail(status, "%.200s: %s", one->path, why);
    }
    return BP_OK;
}

static int32_t load_locked(char *path, const bp_load_options *options, const bp_api **out) {
    const loaded *known = find(path);
    if (known) {
        *out = known->api;
        free(path);
        return BP_OK;
    }
    loaded *one = calloc(1, sizeof(*one));
    if (!one) {
        free(path);
        return bp_fail(BP_OUT_OF_MEMORY, "no memory to load a backend");
    }
    one->path = path;
    int32_t status = options->host ? BP_ADOPT(options->host, &one->host, "the host") : BP_OK;
    uint32_t major = options->major || options->minor ? options->major : BP_ABI_MAJOR;
    uint32_t minor = options->major || options->minor ? options->minor : BP_ABI_MINOR;
    if (status == BP_OK) {
        bp_hal_host_complete(&one->host);
        status = open_and_ask(one, major, minor);
    }
    if (status) {
        /* The host struct may be in use by what was opened: only the path goes. */
        free(one->path);
        return status;
    }
    one->next = first;
    first = one;
    *out = one->api;
    return BP_OK;
}

int32_t bp_hal_load(const bp_load_options *given, const bp_api **out) {
    if (!out)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_load got no place for its result");
    *out = NULL;
    bp_load_options options;
    int32_t status = BP_ADOPT(given, &options, "the load options");
    if (status)
        return status;
    const bp_text *text = &options.path;
    if (!text->data || text->length == 0 || text->length > 4096 || text->data[0] != '/' ||
        memchr(text->data, 0, text->length))
        return bp_fail(BP_INVALID_ARGUMENT, "the path %.*s of a backend is not absolute",
                       text->data ? (int)(text->length < 200 ? text->length : 200) : 0, text->data);
    char *path = strndup(text->data, text->length);
    if (!path)
        return bp_fail(BP_OUT_OF_MEMORY, "no memory to load a backend");
    pthread_mutex_lock(&lock);
    status = load_locked(path, &options, out);
    pthread_mutex_unlock(&lock);
    return status;
}

int32_t bp_hal_last_error(char *buffer, uint64_t capacity, uint64_t *length) {
    int32_t status = bp_error_copy(buffer, capacity, length);
    if (buffer && capacity)
        bp_error_clear();
    return status;
}

int32_t bp_hal_version(uint32_t *major, uint32_t *minor) {
    if (!major || !minor)
        return bp_fail(BP_INVALID_ARGUMENT, "bp_hal_version got no place for its result");
    *major = BP_ABI_MAJOR;
    *minor = BP_ABI_MINOR;
    return BP_OK;
}

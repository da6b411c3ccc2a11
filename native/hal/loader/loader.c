/*
 * From a path to a backend: dlopen, one symbol, one query, negotiation.
 *
 * Contract: the caller decided that the file may be trusted (ownership, mode, hash); here only a
 * relative path is refused, because dlopen would search for it. A caller that gives a descriptor
 * gets the very file that it checked, and not what was put at the path since. A library is never
 * closed: it may have started threads. The same file answers with the same tables, so a second load
 * runs nothing.
 *
 * Trade-off: a library loaded by descriptor is called /proc/self/fd/N, so $ORIGIN in it is useless.
 */
#define _GNU_SOURCE
#include "../adopt.h"
#include "bedplate/hal_loader.h"
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct loaded {
    struct loaded *next;
    char *path;
    /* With a descriptor: our copy, open for ever, and what it was; else -1. dlopen takes a name it
     * has seen for the same library, so the number must not be used again. */
    int descriptor;
    struct stat file;
    bp_host host;
    const bp_api *api;
} loaded;

typedef int32_t (*query_function)(const bp_host *, uint32_t, const bp_api **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *first;

static int same_file(const struct stat *one, const struct stat *other) {
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static int unchanged(const struct stat *one, const struct stat *other) {
    return one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* What is loaded already; by path, or by file when the caller gave one. */
static const loaded *find(const loaded *wanted) {
    for (const loaded *one = first; one; one = one->next) {
        if (wanted->descriptor < 0 && strcmp(one->path, wanted->path) == 0)
            return one;
        if (wanted->descriptor >= 0 && one->descriptor >= 0 && same_file(&one->file, &wanted->file))
            return one;
    }
    return NULL;
}

/* Opens the library at one->path and asks it; fills one->api. */
static int32_t open_and_ask(loaded *one, uint32_t major, uint32_t minor) {
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", one->descriptor);
    void *library = dlopen(one->descriptor < 0 ? one->path : name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        int32_t status = bp_fail(BP_UNAVAILABLE, "cannot open %s: %s", one->path, dlerror());
        if (one->descriptor >= 0)
            close(one->descriptor);
        return status;
    }
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

/* A copy of the caller's descriptor in one->descriptor, and what it is. */
static int32_t keep_file(loaded *one, int32_t descriptor) {
    one->descriptor = -1;
    if (descriptor == 0)
        return BP_OK;
    one->descriptor = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (one->descriptor < 0 || fstat(one->descriptor, &one->file) || !S_ISREG(one->file.st_mode)) {
        if (one->descriptor >= 0)
            close(one->descriptor);
        return bp_fail(BP_INVALID_ARGUMENT, "descriptor %d for %s is not an open regular file",
                       descriptor, one->path);
    }
    return BP_OK;
}

/* Gives back a struct that nothing was opened for. */
static void forget(loaded *one) {
    if (one->descriptor >= 0)
        close(one->descriptor);
    free(one->path);
    free(one);
}

static int32_t load_locked(loaded *one, const bp_load_options *options, const bp_api **out) {
    const loaded *known = find(one);
    if (known) {
        int32_t status = BP_OK;
        if (one->descriptor >= 0 && !unchanged(&known->file, &one->file))
            status = bp_fail(BP_UNAVAILABLE,
                             "%s was changed in place after it was loaded; start a new process",
                             one->path);
        else
            *out = known->api;
        forget(one);
        return status;
    }
    uint32_t major = options->major || options->minor ? options->major : BP_ABI_MAJOR;
    uint32_t minor = options->major || options->minor ? options->minor : BP_ABI_MINOR;
    int32_t status = open_and_ask(one, major, minor);
    if (status) {
        /* The host struct, and the descriptor's number, may be in use by what was opened. */
        free(one->path);
        return status;
    }
    one->next = first;
    first = one;
    *out = one->api;
    return BP_OK;
}

/* A struct for the options, ready to be opened. */
static int32_t prepare(const bp_load_options *options, loaded **out) {
    const bp_text *text = &options->path;
    loaded *one = calloc(1, sizeof(*one));
    char *path = strndup(text->data, text->length);
    if (!one || !path) {
        free(one);
        free(path);
        return bp_fail(BP_OUT_OF_MEMORY, "no memory to load a backend");
    }
    one->path = path;
    int32_t status = keep_file(one, options->descriptor);
    if (status) {
        free(path);
        free(one);
        return status;
    }
    status = options->host ? BP_ADOPT(options->host, &one->host, "the host") : BP_OK;
    if (status) {
        forget(one);
        return status;
    }
    bp_hal_host_complete(&one->host);
    *out = one;
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
    loaded *one = NULL;
    status = prepare(&options, &one);
    if (status)
        return status;
    pthread_mutex_lock(&lock);
    status = load_locked(one, &options, out);
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

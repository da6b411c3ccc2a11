/* Counted registrations; see pinned.h. */
#include "pinned.h"

#include <pthread.h>
#include <stdlib.h>

struct bp_cuda_pinned {
    struct bp_cuda_pinned *next;
    uint64_t start, bytes;
    uint32_t uses;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bp_cuda_pinned *first;

static bp_cuda_pinned *holder(uint64_t start, uint64_t bytes) {
    for (bp_cuda_pinned *one = first; one; one = one->next)
        if (start >= one->start && bytes <= one->bytes && start - one->start <= one->bytes - bytes)
            return one;
    return NULL;
}

static bp_cu_result add(void *host, uint64_t bytes, bp_cuda_pinned **out) {
    bp_cuda_pinned *made = malloc(sizeof(*made));
    if (!made)
        return BP_CU_OUT_OF_MEMORY;
    bp_cu_result result = bp_cu.host_register(
        host, bytes, BP_CU_MEMHOSTREGISTER_PORTABLE | BP_CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result) {
        free(made);
        return result;
    }
    *made = (bp_cuda_pinned){first, (uint64_t)(uintptr_t)host, bytes, 1};
    first = made;
    *out = made;
    return BP_CU_SUCCESS;
}

/* Whether the driver knows both ends from somebody else. */
static int foreign(void *host, uint64_t bytes) {
    bp_cu_address at = 0;
    return bp_cu.host_address(&at, host, 0) == BP_CU_SUCCESS &&
           bp_cu.host_address(&at, (unsigned char *)host + bytes - 1, 0) == BP_CU_SUCCESS;
}

static int overlaps(uint64_t start, uint64_t bytes) {
    for (const bp_cuda_pinned *one = first; one; one = one->next)
        if (start < one->start + one->bytes && one->start < start + bytes)
            return 1;
    return 0;
}

bp_cu_result bp_cuda_pin(void *host, uint64_t bytes, bp_cuda_pinned **out) {
    uint64_t start = (uint64_t)(uintptr_t)host;
    bp_cu_result result = BP_CU_SUCCESS;
    *out = NULL;
    pthread_mutex_lock(&lock);
    bp_cuda_pinned *one = holder(start, bytes);
    if (one) {
        one->uses++;
        *out = one;
    } else {
        result = add(host, bytes, out);
        /* The second is what the driver says of its own host memory. */
        if ((result == BP_CU_HOST_MEMORY_ALREADY_REGISTERED || result == BP_CU_INVALID_VALUE) &&
            !overlaps(start, bytes) && foreign(host, bytes))
            result = BP_CU_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void bp_cuda_unpin(bp_cuda_pinned *pinned) {
    if (!pinned)
        return;
    pthread_mutex_lock(&lock);
    if (--pinned->uses == 0) {
        for (bp_cuda_pinned **link = &first; *link; link = &(*link)->next)
            if (*link == pinned) {
                *link = pinned->next;
                break;
            }
        bp_cu.host_unregister((void *)(uintptr_t)pinned->start);
        free(pinned);
    }
    pthread_mutex_unlock(&lock);
}

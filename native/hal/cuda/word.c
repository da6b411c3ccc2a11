/*
 * How the device tells the host: words in pinned host memory, and a stock of events.
 *
 * A slab is one page of words, each on a cache line of its own, because a line that the device
 * writes is slow to read for whoever looks at its neighbour.
 */
#include "word.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES 65536u
#define LINE_BYTES 64u
#define SLAB_WORDS (SLAB_BYTES / LINE_BYTES)

typedef struct bp_cuda_slab {
    struct bp_cuda_slab *next;
    unsigned char *host;
    bp_cu_address address;
    uint32_t used;
    /* Free lines, a stack. */
    uint32_t free_count;
    uint16_t free_lines[SLAB_WORDS];
} bp_cuda_slab;

static bp_cuda_slab *grow(bp_cuda_device *device) {
    bp_cuda_slab *slab = calloc(1, sizeof(*slab));
    void *host = NULL;
    if (!slab)
        return NULL;
    bp_cu_result result = bp_cu.host_alloc(
        &host, SLAB_BYTES, BP_CU_MEMHOSTALLOC_PORTABLE | BP_CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == BP_CU_SUCCESS)
        result = bp_cu.host_address(&slab->address, host, 0);
    if (result) {
        bp_cuda_notice(device, result);
        free(slab);
        return NULL;
    }
    slab->host = host;
    slab->next = device->slabs;
    device->slabs = slab;
    return slab;
}

int32_t bp_cuda_word_take(bp_cuda_device *device, bp_cuda_timeline *timeline) {
    bp_cuda_slab *slab = device->slabs;
    while (slab && slab->used == SLAB_WORDS && slab->free_count == 0)
        slab = slab->next;
    if (!slab && !(slab = grow(device)))
        return bp_fail(BP_OUT_OF_MEMORY, "no pinned host memory for another timeline");
    uint32_t line = slab->free_count ? slab->free_lines[--slab->free_count] : slab->used++;
    timeline->word = (_Atomic uint64_t *)(void *)(slab->host + line * LINE_BYTES);
    timeline->address = slab->address + line * LINE_BYTES;
    return BP_OK;
}

void bp_cuda_word_give(bp_cuda_device *device, const bp_cuda_timeline *timeline) {
    for (bp_cuda_slab *slab = device->slabs; slab; slab = slab->next) {
        uint64_t offset = timeline->address - slab->address;
        if (timeline->address >= slab->address && offset < SLAB_BYTES) {
            slab->free_lines[slab->free_count++] = (uint16_t)(offset / LINE_BYTES);
            return;
        }
    }
}

bp_cuda_pending *bp_cuda_event_take(bp_cuda_device *device) {
    bp_cuda_pending *pending = device->stock;
    if (pending) {
        device->stock = pending->next;
        pending->next = NULL;
        return pending;
    }
    pending = calloc(1, sizeof(*pending));
    if (!pending)
        return NULL;
    bp_cu_result result = bp_cu.event_create(&pending->event, BP_CU_EVENT_DISABLE_TIMING);
    if (result == BP_CU_SUCCESS)
        return pending;
    bp_cuda_notice(device, result);
    free(pending);
    return NULL;
}

void bp_cuda_event_give(bp_cuda_device *device, bp_cuda_pending *pending) {
    pending->next = device->stock;
    device->stock = pending;
}

int32_t bp_cuda_timelines_open(bp_cuda_device *device) {
    const char *chosen = getenv("BEDPLATE_HAL_CUDA_TIMELINES");
    device->words = device->facts->memory_operations;
    if (!chosen || !chosen[0])
        return BP_OK;
    if (strcmp(chosen, "events") == 0)
        device->words = 0;
    else if (strcmp(chosen, "words"))
        return bp_fail(BP_INVALID_ARGUMENT,
                       "BEDPLATE_HAL_CUDA_TIMELINES is %.40s; words and events are known", chosen);
    else if (!device->words)
        return bp_fail(BP_UNSUPPORTED, "this device's streams write no 64-bit words");
    return BP_OK;
}

void bp_cuda_timelines_close(bp_cuda_device *device) {
    for (bp_cuda_slab *slab = device->slabs, *next; slab; slab = next) {
        next = slab->next;
        bp_cu.host_free(slab->host);
        free(slab);
    }
    for (bp_cuda_pending *kept = device->stock, *next; kept; kept = next) {
        next = kept->next;
        bp_cu.event_destroy(kept->event);
        free(kept);
    }
    device->slabs = NULL;
    device->stock = NULL;
}

/*
 * A policy to begin with: the first free block that is large enough, split and joined again.
 *
 *     gcc -shared -fPIC -Inative/runtime/include -Inative/hal/include \
 *         native/runtime/examples/first_fit.c -o first_fit.so
 *     bedplate memory replay benchmarks/runtime/traces/prefetch.csv.xz --policy ./first_fit.so
 *
 * Blocks of a segment are a list in the order of addresses; a search walks all lists, which is
 * what a bin is there to avoid. -DNO_COALESCING leaves neighbours apart: see what it costs.
 */
#include <bedplate/policy.h>
#include <stdlib.h>

#define UNIT    512u
#define SEGMENT (UINT64_C(20) << 20)

typedef struct block {
    struct block *before, *after; /* of the same segment */
    uint64_t address, bytes;
    int live;
} block;

typedef struct segment {
    struct segment *next;
    block *first;
} segment;

typedef struct {
    const bp_runtime_segments *device;
    segment *segments;
} policy;

static void *open_policy(const bp_runtime_segments *device) {
    policy *made = calloc(1, sizeof(*made));
    if (made)
        made->device = device;
    return made;
}

static block *cut(block *whole, uint64_t bytes) {
    if (whole->bytes > bytes) {
        block *rest = calloc(1, sizeof(*rest));
        if (!rest)
            return NULL;
        *rest = (block){whole, whole->after, whole->address + bytes, whole->bytes - bytes, 0};
        if (rest->after)
            rest->after->before = rest;
        whole->after = rest;
        whole->bytes = bytes;
    }
    whole->live = 1;
    return whole;
}

static block *grow(policy *self, uint64_t bytes) {
    uint64_t size = bytes > SEGMENT ? bytes : SEGMENT;
    segment *made = calloc(1, sizeof(*made));
    block *first = calloc(1, sizeof(*first));
    uint64_t address = made && first ? self->device->create(self->device->self, size) : 0;
    if (!address) {
        free(made);
        free(first);
        return NULL;
    }
    *first = (block){NULL, NULL, address, size, 0};
    *made = (segment){self->segments, first};
    self->segments = made;
    return first;
}

static uint64_t allocate(void *opaque, uint64_t bytes, uint32_t stream) {
    policy *self = opaque;
    (void)stream;
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    block *found = NULL;
    for (segment *at = self->segments; at && !found; at = at->next)
        for (block *here = at->first; here && !found; here = here->after)
            if (!here->live && here->bytes >= bytes)
                found = here;
    if (!found)
        found = grow(self, bytes);
    found = found ? cut(found, bytes) : NULL;
    return found ? found->address : 0;
}

#ifndef NO_COALESCING
static void join(block *first) {
    block *second = first->after;
    if (!second || first->live || second->live)
        return;
    first->bytes += second->bytes;
    first->after = second->after;
    if (first->after)
        first->after->before = first;
    free(second);
}
#endif

static void release(void *opaque, uint64_t address) {
    policy *self = opaque;
    for (segment *at = self->segments; at; at = at->next)
        for (block *here = at->first; here; here = here->after)
            if (here->address == address && here->live) {
                here->live = 0;
#ifndef NO_COALESCING
                join(here);
                if (here->before)
                    join(here->before);
#endif
                return;
            }
}

static void close_policy(void *opaque) {
    policy *self = opaque;
    for (segment *at = self->segments, *next; at; at = next) {
        next = at->next;
        for (block *here = at->first, *after; here; here = after) {
            after = here->after;
            free(here);
        }
        free(at);
    }
    free(self);
}

const bp_runtime_policy *bp_runtime_policy_1(void) {
    static const bp_runtime_policy made = {open_policy, allocate, release, close_policy};
    return &made;
}

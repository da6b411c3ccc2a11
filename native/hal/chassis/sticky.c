/* See sticky.h. */
#include "sticky.h"

#include "futex.h"

#include <stdio.h>

void bp_sticky_changed(bp_sticky *sticky) {
    atomic_fetch_add_explicit(&sticky->sequence, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&sticky->sleepers, memory_order_seq_cst))
        bp_futex_wake(&sticky->sequence, INT_MAX);
}

int bp_sticky_set(bp_sticky *sticky, int32_t status, const char *text) {
    if (atomic_load_explicit(&sticky->error, memory_order_relaxed))
        return 0;
    snprintf(sticky->text, sizeof(sticky->text), "%s", text);
    atomic_store_explicit(&sticky->error, status, memory_order_release);
    bp_sticky_changed(sticky);
    return 1;
}

int32_t bp_sticky_tell(const bp_sticky *sticky, int32_t status, uint64_t now, uint64_t value) {
    if (status == BP_OK)
        return status;
    if (bp_sticky_error(sticky))
        return bp_fail(status, "%s", sticky->text);
    return bp_fail(status, "a timeline is at %llu and did not reach %llu before the deadline",
                   (unsigned long long)now, (unsigned long long)value);
}

int32_t bp_sticky_must_grow(uint64_t now, uint64_t value) {
    return bp_fail(BP_INVALID_ARGUMENT,
                   "a timeline at %llu cannot be signalled to %llu: it must grow",
                   (unsigned long long)now, (unsigned long long)value);
}

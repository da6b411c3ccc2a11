/* Lies about timelines. */
#include "lie.h"

#include <time.h>

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static int32_t create(uint64_t device, uint64_t initial, uint64_t *timeline) {
    bp_liar_of(device);
    return bp_liar_honest->timeline->create(device, initial, timeline);
}

static int32_t signal_host(uint64_t device, uint64_t timeline, uint64_t value) {
    bp_lie lie = bp_liar_of(device);
    uint64_t now;
    int32_t status = bp_liar_honest->timeline->signal(device, timeline, value);
    if (lie == BP_LIE_BACKWARDS && status == BP_INVALID_ARGUMENT &&
        bp_liar_honest->timeline->query(device, timeline, &now) == BP_OK)
        return BP_OK;
    return status;
}

/* What a lie makes of the status of looking at a timeline. */
static int32_t painted(bp_lie lie, int32_t status) {
    if ((lie == BP_LIE_SILENT_FAULT && status == BP_LAUNCH_FAULT) ||
        (lie == BP_LIE_LOST_DEVICE && status == BP_DEVICE_LOST))
        return BP_OK;
    return status;
}

static int32_t query(uint64_t device, uint64_t timeline, uint64_t *value) {
    bp_lie lie = bp_liar_of(device);
    int32_t status = bp_liar_honest->timeline->query(device, timeline, value);
    if (lie == BP_LIE_STUCK_VALUE && status == BP_OK && *value)
        --*value;
    if (lie == BP_LIE_AMNESIA && status == BP_LAUNCH_FAULT)
        return BP_OK;
    return painted(lie, status);
}

static int32_t wait_host(uint64_t device, uint64_t timeline, uint64_t value, uint64_t deadline_ns) {
    static _Atomic uint32_t waiting;
    bp_lie lie = bp_liar_of(device);
    uint64_t now = now_ns();
    /* Half of the time that is left. */
    if (lie == BP_LIE_EARLY_DEADLINE && deadline_ns > now)
        deadline_ns = now + (deadline_ns - now) / 2;
    /* Whoever comes while another waits is not woken by a value. */
    if (waiting++ && lie == BP_LIE_LOST_WAKE)
        value = UINT64_MAX;
    int32_t status = bp_liar_honest->timeline->wait_host(device, timeline, value, deadline_ns);
    waiting--;
    if (lie == BP_LIE_DEADLINE_IS_SUCCESS && status == BP_DEADLINE)
        return BP_OK;
    return painted(lie, status);
}

static int32_t destroy(uint64_t device, uint64_t timeline) {
    bp_liar_of(device);
    return bp_liar_honest->timeline->destroy(device, timeline);
}

const bp_timeline bp_liar_timeline = {
    .head = {1, sizeof(bp_timeline)},
    .create = create,
    .signal = signal_host,
    .query = query,
    .wait_host = wait_host,
    .destroy = destroy,
};

/* Lies about timelines. */
#include "lie.h"

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
    bp_lie lie = bp_liar_of(device);
    int32_t status = bp_liar_honest->timeline->wait_host(device, timeline, value, deadline_ns);
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

/*
 * A backend as its query shows it: the core table, over what differs, and the answer to a query.
 *
 * The chassis checks places and indexes; the backend's functions see devices that exist.
 */
#ifndef BEDPLATE_HAL_CHASSIS_BACKEND_H
#define BEDPLATE_HAL_CHASSIS_BACKEND_H

#include "device.h"

/* One in each backend, called bp_backend_own. */
typedef struct bp_backend {
    /* Fills `own`, whose head is set. Its texts live as long as the library. BP_OK, or a status
     * with a sentence. */
    int32_t (*properties)(uint32_t index, bp_device_properties *own);
    /* Writes at most `capacity` claims to `out` and their whole number to *count; bp_claims does.
     */
    int32_t (*capabilities)(uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count);
} bp_backend;

extern const bp_backend bp_backend_own;
extern const bp_core bp_core_table;

/* Answers bp_backend.capabilities with those of `known` claims whose value is not 0. */
int32_t bp_claims(const bp_capability *claims, uint32_t known, bp_capability *out,
                  uint32_t capacity, uint32_t *count);

/* The query: accepts the host (host.h) and answers with `api`. */
int32_t bp_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api *api,
                         const bp_api **out);

#endif

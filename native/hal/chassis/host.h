/* The host as the query gave it: where a backend's log lines go, and what it
 * offers. Needs nothing of the backend. */
#ifndef BEDPLATE_HAL_CHASSIS_HOST_H
#define BEDPLATE_HAL_CHASSIS_HOST_H

#include "bedplate/hal.h"

/* The first half of a query: checks `out` and the major, remembers the host (null is none). */
int32_t bp_host_accept(const bp_host *given, uint32_t wanted_major, const bp_api **out);

/* Tells the host one line; before the query it is dropped. */
void bp_host_log(uint32_t level, const char *line);

/* A table of the host by name, or null; null before the query too. */
const void *bp_host_service(const char *name);

#endif

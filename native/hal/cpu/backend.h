/* The backend as a whole. */
#ifndef BEDPLATE_HAL_CPU_BACKEND_H
#define BEDPLATE_HAL_CPU_BACKEND_H

#include "bedplate/hal.h"

/* Remembers the host and gives the complete table of this backend. */
int32_t bp_cpu_query(const bp_host *host, uint32_t wanted_major, const bp_api **out);

#endif

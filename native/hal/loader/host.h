/* The loader's own host. */
#ifndef BEDPLATE_HAL_LOADER_HOST_H
#define BEDPLATE_HAL_LOADER_HOST_H

#include "bedplate/hal.h"

/* Gives every empty slot of a host a function that works. */
void bp_hal_host_complete(bp_host *host);

#endif

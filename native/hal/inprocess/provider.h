/*
 * The machine in the host's process that this backend fronts: looked up by BP_PROVIDER_NAME each
 * time, so it may be registered after the backend was loaded and taken away before it is gone.
 *
 * Calls go to the host's language and may take its locks; none is made by a queue's thread.
 */
#ifndef BEDPLATE_HAL_INPROCESS_PROVIDER_H
#define BEDPLATE_HAL_INPROCESS_PROVIDER_H

#include "bedplate/hal.h"

/* The machine's table; BP_UNAVAILABLE with a sentence when none is registered. */
int32_t bp_provider_find(bp_provider *out);

/* BP_OK, or the status with the machine's own sentence. */
int32_t bp_provider_told(const bp_provider *machine, int32_t status, const char *what);

/* Gives a module back at the next call that may ask the machine; from any thread. */
void bp_provider_forget(uint64_t token);

/* Makes the machine forget what is to be forgotten. From a caller of the host only. */
void bp_provider_settle(void);

#endif

/* What this processor can do, and what the process may use of the machine. */
#ifndef BEDPLATE_HAL_CPU_ISA_H
#define BEDPLATE_HAL_CPU_ISA_H

#include "bedplate/hal.h"

/* Levels in order: generic, avx2, avx512, avx512_bf16. -1 for an unknown name. */
int bp_isa_level(const char *name, uint64_t length);
const char *bp_isa_name(int level);

/* The best level of this processor and system. */
int bp_isa_best(void);

/* bp_isa_best unless BEDPLATE_CPU_ISA lowers it; BP_UNAVAILABLE with a sentence when it asks for a
 * level that does not exist or that the processor lacks. */
int32_t bp_isa_chosen(int *level);

/* Space-separated feature names, for people. */
const char *bp_isa_features(void);

/* Model name from the system, or "CPU". */
const char *bp_isa_processor(void);

/* Cores this process may use (affinity and cgroup quota), unless BEDPLATE_HAL_CPU_THREADS says
 * otherwise; BP_UNAVAILABLE with a sentence when that is not 1 to 1024. */
int32_t bp_isa_threads(uint32_t *threads);

/* Bytes of memory this process may hope for: the machine's, or its cgroup's limit. */
uint64_t bp_isa_memory(void);

#endif

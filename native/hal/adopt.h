/*
 * bp_struct_read with the sentence that goes with it: BP_ADOPT(given, &own, "copy command").
 * The type of `own` decides size and place of reserved.
 */
#ifndef BEDPLATE_HAL_ADOPT_H
#define BEDPLATE_HAL_ADOPT_H

#include "bedplate/hal_struct.h"
#include "error.h"

/* BP_OK, or the status with a sentence naming `what` and the offset. */
int32_t bp_adopt(const void *given, void *own, uint32_t own_size, uint32_t reserved_offset,
                 const char *what);

/* bp_struct_write with its sentence. */
int32_t bp_answer(void *given, const void *own, uint32_t own_size, const char *what);

#define BP_ADOPT(given, own, what)                                                                 \
    bp_adopt((given), (own), sizeof(*(own)),                                                       \
             (uint32_t)((unsigned char *)&(own)->reserved - (unsigned char *)(own)), (what))

#endif

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
                 const char *what) __attribute__((cold));

/* bp_struct_write with its sentence. */
int32_t bp_answer(void *given, const void *own, uint32_t own_size, const char *what);

/* A struct of this build's own size is copied at once; any other by the rule. */
static inline int32_t bp_adopt_sized(const void *given, void *own, uint32_t own_size,
                                     uint32_t reserved_offset, const char *what) {
    const bp_head *head = given;
    uint64_t reserved[4];
    if (!given || head->struct_version != 1 || head->struct_size != own_size)
        return bp_adopt(given, own, own_size, reserved_offset, what);
    memcpy(own, given, own_size);
    memcpy(reserved, (const unsigned char *)own + reserved_offset, sizeof(reserved));
    if (reserved[0] | reserved[1] | reserved[2] | reserved[3])
        return bp_adopt(given, own, own_size, reserved_offset, what);
    return BP_OK;
}

#define BP_ADOPT(given, own, what)                                                                 \
    bp_adopt_sized((given), (own), sizeof(*(own)),                                                 \
                   (uint32_t)((unsigned char *)&(own)->reserved - (unsigned char *)(own)), (what))

#endif

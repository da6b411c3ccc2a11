/*
 * The size rule of the ABI, for the side that reads and the side that answers. Header only.
 *
 * Reading: take the smaller of both sizes, the missing tail is zero, a non-zero tail that we do not
 * know or a non-zero reserved word is refused with its offset. Answering: write at most what the
 * caller has. A struct that says it is larger than BP_STRUCT_MOST is taken for garbage, and so is a
 * size that is no multiple of 8: every struct is one, and another size would cut a pointer in two.
 */
#ifndef BEDPLATE_HAL_STRUCT_H
#define BEDPLATE_HAL_STRUCT_H

#include "bedplate/hal.h"

#include <string.h>

/* Far above any struct of ours; bounds how much of a wild pointer is looked at. */
#define BP_STRUCT_MOST 65536u

/* Offset that bp_struct_read reports when the head itself is wrong. */
#define BP_STRUCT_HEAD 0u

/* Whether a head can be one of any version. */
static inline int bp_struct_head(const bp_head *head) {
    return head->struct_version == 1 && head->struct_size >= sizeof(*head) &&
           head->struct_size <= BP_STRUCT_MOST && head->struct_size % 8 == 0;
}

/* Copies `given` into `own` (own_size bytes, reserved[4] at reserved_offset). BP_OK, or
 * BP_INVALID_ARGUMENT for a bad head, or BP_INVALID_EXT with the offset of the first bad byte. */
static inline int32_t bp_struct_read(const void *given, void *own, uint32_t own_size,
                                     uint32_t reserved_offset, uint32_t *bad_offset) {
    const unsigned char *bytes = (const unsigned char *)given;
    bp_head head;
    *bad_offset = BP_STRUCT_HEAD;
    if (!given)
        return BP_INVALID_ARGUMENT;
    memcpy(&head, given, sizeof(head));
    if (!bp_struct_head(&head))
        return BP_INVALID_ARGUMENT;
    uint32_t shared = head.struct_size < own_size ? head.struct_size : own_size;
    memset(own, 0, own_size);
    memcpy(own, given, shared);
    for (uint32_t at = own_size; at < head.struct_size; at++) {
        if (bytes[at]) {
            *bad_offset = at;
            return BP_INVALID_EXT;
        }
    }
    for (uint32_t word = 0; word < 4; word++) {
        uint64_t value;
        memcpy(&value, (const unsigned char *)own + reserved_offset + 8u * word, sizeof(value));
        if (value) {
            *bad_offset = reserved_offset + 8u * word;
            return BP_INVALID_EXT;
        }
    }
    return BP_OK;
}

/* Writes `own` (own_size bytes) into the caller's struct behind its head; a tail of the caller's
 * that we do not know becomes zero. BP_INVALID_ARGUMENT for a bad head. */
static inline int32_t bp_struct_write(void *given, const void *own, uint32_t own_size) {
    bp_head head;
    if (!given)
        return BP_INVALID_ARGUMENT;
    memcpy(&head, given, sizeof(head));
    if (!bp_struct_head(&head))
        return BP_INVALID_ARGUMENT;
    uint32_t shared = head.struct_size < own_size ? head.struct_size : own_size;
    unsigned char *to = (unsigned char *)given;
    memcpy(to + sizeof(head), (const unsigned char *)own + sizeof(head), shared - sizeof(head));
    if (head.struct_size > own_size)
        memset(to + own_size, 0, head.struct_size - own_size);
    return BP_OK;
}

#endif /* BEDPLATE_HAL_STRUCT_H */

/* The size rule with sentences. */
#include "adopt.h"

int32_t bp_adopt(const void *given, void *own, uint32_t own_size, uint32_t reserved_offset,
                 const char *what) {
    uint32_t offset = 0;
    int32_t status = bp_struct_read(given, own, own_size, reserved_offset, &offset);
    if (status == BP_INVALID_EXT)
        return bp_fail(status, "%s has a non-zero byte at offset %u, which is reserved or unknown",
                       what, offset);
    if (status != BP_OK && !given)
        return bp_fail(status, "%s is null", what);
    if (status != BP_OK) {
        const bp_head *head = given;
        return bp_fail(
            status,
            "%s has struct_version %u and struct_size %u; 1 and multiples of 8 up to %u are known",
            what, head->struct_version, head->struct_size, BP_STRUCT_MOST);
    }
    return BP_OK;
}

int32_t bp_answer(void *given, const void *own, uint32_t own_size, const char *what) {
    if (bp_struct_write(given, own, own_size) == BP_OK)
        return BP_OK;
    if (!given)
        return bp_fail(BP_INVALID_ARGUMENT, "%s is null", what);
    const bp_head *head = given;
    return bp_fail(
        BP_INVALID_ARGUMENT,
        "%s has struct_version %u and struct_size %u; 1 and multiples of 8 up to %u are known",
        what, head->struct_version, head->struct_size, BP_STRUCT_MOST);
}

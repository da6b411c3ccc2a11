/* See command.h. */
#include "command.h"

#include "../adopt.h"

#include <stddef.h>

static const struct {
    uint32_t size, reserved;
    const char *name;
} KINDS[] = {
    [BP_COMMAND_COPY] = {sizeof(bp_copy_command), offsetof(bp_copy_command, reserved), "copy"},
    [BP_COMMAND_FILL] = {sizeof(bp_fill_command), offsetof(bp_fill_command, reserved), "fill"},
    [BP_COMMAND_LAUNCH] = {sizeof(bp_launch_command), offsetof(bp_launch_command, reserved),
                           "launch"},
    [BP_COMMAND_OP] = {sizeof(bp_op_command), offsetof(bp_op_command, reserved), "op"},
    [BP_COMMAND_TIMESTAMP] = {sizeof(bp_timestamp_command),
                              offsetof(bp_timestamp_command, reserved), "timestamp"},
};

const bp_any_command *bp_command_read(const bp_command *given, bp_any_command *own,
                                      int32_t *status) {
    *status = BP_INVALID_ARGUMENT;
    if (!given) {
        bp_fail(*status, "it is null");
        return NULL;
    }
    /* The kind is looked at only in a struct that says it has one. */
    if (!bp_struct_head(&given->head) || given->head.struct_size < sizeof(*given)) {
        bp_fail(*status, "struct_version %u and struct_size %u are not of a command",
                given->head.struct_version, given->head.struct_size);
        return NULL;
    }
    if (given->kind == 0 || given->kind >= sizeof(KINDS) / sizeof(KINDS[0])) {
        *status = bp_fail(BP_UNSUPPORTED, "struct_size %u and kind %u are not of a known command",
                          given->head.struct_size, given->kind);
        return NULL;
    }
    uint32_t size = KINDS[given->kind].size, reserved = KINDS[given->kind].reserved;
    const bp_any_command *command = (const bp_any_command *)(const void *)given;
    const uint64_t *words =
        (const uint64_t *)(const void *)((const unsigned char *)given + reserved);
    if (given->head.struct_size != size || given->head.struct_version != 1 ||
        (words[0] | words[1] | words[2] | words[3])) {
        *status = bp_adopt(given, own, size, reserved, KINDS[given->kind].name);
        command = own;
        if (*status)
            return NULL;
    }
    if (given->flags) {
        *status = bp_fail(BP_INVALID_ARGUMENT, "flags 0x%x are unknown", given->flags);
        return NULL;
    }
    *status = BP_OK;
    return command;
}

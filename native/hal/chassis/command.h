/*
 * A command by the size rule: kind, flags and reserved words are checked, its fields may be read.
 *
 * A command whose struct has our own size is read in place; any other is copied. Needs nothing of
 * the backend.
 */
#ifndef BEDPLATE_HAL_CHASSIS_COMMAND_H
#define BEDPLATE_HAL_CHASSIS_COMMAND_H

#include "../error.h"

#include <string.h>

typedef union bp_any_command {
    bp_command prefix;
    bp_copy_command copy;
    bp_fill_command fill;
    bp_launch_command launch;
    bp_op_command op;
    bp_timestamp_command timestamp;
} bp_any_command;

/* The command itself when it is a launch of our size that needs no second look, or null: then
 * bp_command_read is the one to ask. Here because most commands of most batches are such. */
static inline const bp_launch_command *bp_command_launch(const bp_command *given) {
    static const bp_head OURS = {1, sizeof(bp_launch_command)};
    const bp_launch_command *launch = (const bp_launch_command *)(const void *)given;
    if (!given || memcmp(&given->head, &OURS, sizeof(OURS)) || given->kind != BP_COMMAND_LAUNCH)
        return NULL;
    const uint64_t *words = launch->reserved;
    return launch->flags | words[0] | words[1] | words[2] | words[3] ? NULL : launch;
}

/* The command itself when it has our size, else a copy in `own`; null with *status and a sentence
 * when it is refused. */
const bp_any_command *bp_command_read(const bp_command *given, bp_any_command *own,
                                      int32_t *status);

#endif

/*
 * A command by the size rule: kind, flags and reserved words are checked, its fields may be read.
 *
 * A command whose struct has our own size is read in place; any other is copied. Needs nothing of
 * the backend.
 */
#ifndef BEDPLATE_HAL_CHASSIS_COMMAND_H
#define BEDPLATE_HAL_CHASSIS_COMMAND_H

#include "../error.h"

typedef union bp_any_command {
    bp_command prefix;
    bp_copy_command copy;
    bp_fill_command fill;
    bp_launch_command launch;
    bp_op_command op;
    bp_timestamp_command timestamp;
} bp_any_command;

/* The command itself when it has our size, else a copy in `own`; null with *status and a sentence
 * when it is refused. */
const bp_any_command *bp_command_read(const bp_command *given, bp_any_command *own,
                                      int32_t *status);

#endif

/* The list of portable ops. A new op is a file beside this one and a line here. */
#include "../ops.h"

extern const bp_cpu_op bp_cpu_op_convert;

const bp_cpu_op *const bp_cpu_op_table[] = {
    &bp_cpu_op_convert,
};

const uint32_t bp_cpu_op_count = sizeof(bp_cpu_op_table) / sizeof(bp_cpu_op_table[0]);

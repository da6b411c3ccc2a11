/* What both sides of the C interface must agree on; the Rust side asserts the same in abi.rs. */
#include <bedplate/runtime.h>

_Static_assert(sizeof(bp_runtime_block) == 40, "a block is five words");
_Static_assert(sizeof(bp_runtime_stats_out) == 2 * 6 * 32 + 12 * 8 + 2 * 40, "figures and words");
_Static_assert(sizeof(bp_runtime_seen) == 32, "a seen block is four words");
_Static_assert(sizeof(bp_runtime_record) == 40, "a record of a trace is 40 bytes");
_Static_assert(sizeof(bp_runtime_outcome) == 48, "an outcome is six words");

"""The HAL's ABI as Python sees it.

Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit.
"""

# fmt: off
# ruff: noqa: E501  generated: one declaration a line

ABI_VERSION = "0.4"
ABI_MAJOR = 0
ABI_MINOR = 4

BP_OK = 0
BP_INVALID_ARGUMENT = -1
BP_INVALID_EXT = -2
BP_UNSUPPORTED = -3
BP_UNAVAILABLE = -4
BP_OUT_OF_MEMORY = -5
BP_NOT_FOUND = -6
BP_DEADLINE = -7
BP_DEVICE_LOST = -8
BP_LAUNCH_FAULT = -9
BP_CANCELLED = -10
BP_VERSION = -11
BP_INTERNAL = -12
BP_BUSY = -13
STATUS_NAMES: dict[int, str] = {
    0: "BP_OK",
    -1: "BP_INVALID_ARGUMENT",
    -2: "BP_INVALID_EXT",
    -3: "BP_UNSUPPORTED",
    -4: "BP_UNAVAILABLE",
    -5: "BP_OUT_OF_MEMORY",
    -6: "BP_NOT_FOUND",
    -7: "BP_DEADLINE",
    -8: "BP_DEVICE_LOST",
    -9: "BP_LAUNCH_FAULT",
    -10: "BP_CANCELLED",
    -11: "BP_VERSION",
    -12: "BP_INTERNAL",
    -13: "BP_BUSY",
}

BP_DTYPE_F32 = 0x00012002
BP_DTYPE_F16 = 0x00011002
BP_DTYPE_BF16 = 0x00011004
BP_DTYPE_I8 = 0x00010800
BP_DTYPE_I32 = 0x00012000
BP_DTYPE_I64 = 0x00014000
BP_DTYPE_U8 = 0x00010801
BP_DTYPE_U32 = 0x00012001
BP_DTYPE_U64 = 0x00014001
BP_DTYPE_Q4_0 = 0x00010480
BP_DTYPE_Q4_1 = 0x00010481
BP_DTYPE_Q8_0 = 0x00010882
DTYPE_NAMES: dict[int, str] = {
    0x00012002: "BP_DTYPE_F32",
    0x00011002: "BP_DTYPE_F16",
    0x00011004: "BP_DTYPE_BF16",
    0x00010800: "BP_DTYPE_I8",
    0x00012000: "BP_DTYPE_I32",
    0x00014000: "BP_DTYPE_I64",
    0x00010801: "BP_DTYPE_U8",
    0x00012001: "BP_DTYPE_U32",
    0x00014001: "BP_DTYPE_U64",
    0x00010480: "BP_DTYPE_Q4_0",
    0x00010481: "BP_DTYPE_Q4_1",
    0x00010882: "BP_DTYPE_Q8_0",
}

BP_OP_MATMUL = 1
BP_OP_QUANTIZED_MATMUL = 2
BP_OP_RMSNORM = 3
BP_OP_ROPE = 4
BP_OP_PAGED_ATTENTION = 5
BP_OP_SOFTMAX = 6
BP_OP_SILU_MUL = 7
BP_OP_EMBEDDING = 8
BP_OP_SAMPLE = 9
BP_OP_KV_WRITE = 10
BP_OP_BLOCK_COPY = 11
BP_OP_REDUCE = 12
BP_OP_CONVERT = 13
OP_NAMES: dict[int, str] = {
    1: "BP_OP_MATMUL",
    2: "BP_OP_QUANTIZED_MATMUL",
    3: "BP_OP_RMSNORM",
    4: "BP_OP_ROPE",
    5: "BP_OP_PAGED_ATTENTION",
    6: "BP_OP_SOFTMAX",
    7: "BP_OP_SILU_MUL",
    8: "BP_OP_EMBEDDING",
    9: "BP_OP_SAMPLE",
    10: "BP_OP_KV_WRITE",
    11: "BP_OP_BLOCK_COPY",
    12: "BP_OP_REDUCE",
    13: "BP_OP_CONVERT",
}

BP_CAP_DEVICE_ADDRESS = 1
BP_CAP_HOST_VISIBLE = 2
BP_CAP_TIMELINE_WAIT_HOST = 3
BP_CAP_MODULE_NATIVE = 4
BP_CAP_MODULE_PTX = 5
BP_CAP_MODULE_CUBIN = 6
BP_CAP_MODULE_SPIRV = 7
BP_CAP_MODULE_OPENCL_C = 8
BP_CAP_OPS = 9
BP_CAP_CAPTURE = 10
BP_CAP_TIMESTAMP = 11
BP_CAP_PIN_HOST = 12
BP_CAP_ADDRESS_RESERVE = 13
BP_CAP_EXPORT_MEMORY = 14
BP_CAP_IMPORT_MEMORY = 15
BP_CAP_DYNAMIC_SHARED = 16
BP_CAP_CLUSTERS = 17
BP_CAP_TENSOR_MAP = 18
CAPABILITY_NAMES: dict[int, str] = {
    1: "BP_CAP_DEVICE_ADDRESS",
    2: "BP_CAP_HOST_VISIBLE",
    3: "BP_CAP_TIMELINE_WAIT_HOST",
    4: "BP_CAP_MODULE_NATIVE",
    5: "BP_CAP_MODULE_PTX",
    6: "BP_CAP_MODULE_CUBIN",
    7: "BP_CAP_MODULE_SPIRV",
    8: "BP_CAP_MODULE_OPENCL_C",
    9: "BP_CAP_OPS",
    10: "BP_CAP_CAPTURE",
    11: "BP_CAP_TIMESTAMP",
    12: "BP_CAP_PIN_HOST",
    13: "BP_CAP_ADDRESS_RESERVE",
    14: "BP_CAP_EXPORT_MEMORY",
    15: "BP_CAP_IMPORT_MEMORY",
    16: "BP_CAP_DYNAMIC_SHARED",
    17: "BP_CAP_CLUSTERS",
    18: "BP_CAP_TENSOR_MAP",
}

BP_CAPABILITY_FLAG = 1
BP_CAPABILITY_COUNT = 2
BP_CAPABILITY_BYTES = 3
CAPABILITY_TYPE_NAMES: dict[int, str] = {
    1: "BP_CAPABILITY_FLAG",
    2: "BP_CAPABILITY_COUNT",
    3: "BP_CAPABILITY_BYTES",
}

BP_COMMAND_COPY = 1
BP_COMMAND_FILL = 2
BP_COMMAND_LAUNCH = 3
BP_COMMAND_OP = 4
BP_COMMAND_TIMESTAMP = 5
COMMAND_NAMES: dict[int, str] = {
    1: "BP_COMMAND_COPY",
    2: "BP_COMMAND_FILL",
    3: "BP_COMMAND_LAUNCH",
    4: "BP_COMMAND_OP",
    5: "BP_COMMAND_TIMESTAMP",
}

BP_ARGUMENT_RANGE = 1
BP_ARGUMENT_BYTES = 2
ARGUMENT_NAMES: dict[int, str] = {
    1: "BP_ARGUMENT_RANGE",
    2: "BP_ARGUMENT_BYTES",
}

BP_MODULE_NATIVE = 1
BP_MODULE_PTX = 2
BP_MODULE_CUBIN = 3
BP_MODULE_SPIRV = 4
BP_MODULE_OPENCL_C = 5
MODULE_KIND_NAMES: dict[int, str] = {
    1: "BP_MODULE_NATIVE",
    2: "BP_MODULE_PTX",
    3: "BP_MODULE_CUBIN",
    4: "BP_MODULE_SPIRV",
    5: "BP_MODULE_OPENCL_C",
}

BP_OP_DETERMINISTIC = 1
BP_OP_CAPTURABLE = 2
OP_PLAN_FLAG_NAMES: dict[int, str] = {
    1: "BP_OP_DETERMINISTIC",
    2: "BP_OP_CAPTURABLE",
}

BP_MEMORY_EXPORTABLE = 1
MEMORY_FLAG_NAMES: dict[int, str] = {
    1: "BP_MEMORY_EXPORTABLE",
}

BP_EXTERNAL_FILE_DESCRIPTOR = 1
EXTERNAL_KIND_NAMES: dict[int, str] = {
    1: "BP_EXTERNAL_FILE_DESCRIPTOR",
}

BP_TENSOR_MAP_SWIZZLE_NONE = 0
BP_TENSOR_MAP_SWIZZLE_32 = 1
BP_TENSOR_MAP_SWIZZLE_64 = 2
BP_TENSOR_MAP_SWIZZLE_128 = 3
TENSOR_MAP_SWIZZLE_NAMES: dict[int, str] = {
    0: "BP_TENSOR_MAP_SWIZZLE_NONE",
    1: "BP_TENSOR_MAP_SWIZZLE_32",
    2: "BP_TENSOR_MAP_SWIZZLE_64",
    3: "BP_TENSOR_MAP_SWIZZLE_128",
}

BP_LOG_ERROR = 1
BP_LOG_WARNING = 2
BP_LOG_INFO = 3
BP_LOG_DEBUG = 4
LOG_LEVEL_NAMES: dict[int, str] = {
    1: "BP_LOG_ERROR",
    2: "BP_LOG_WARNING",
    3: "BP_LOG_INFO",
    4: "BP_LOG_DEBUG",
}

BP_ROPE_HALF_SPLIT = 0
BP_ROPE_ADJACENT = 1
ROPE_PAIRING_NAMES: dict[int, str] = {
    0: "BP_ROPE_HALF_SPLIT",
    1: "BP_ROPE_ADJACENT",
}

BP_ACTIVATION_FLOAT = 0
BP_ACTIVATION_INT8 = 1
ACTIVATION_NAMES: dict[int, str] = {
    0: "BP_ACTIVATION_FLOAT",
    1: "BP_ACTIVATION_INT8",
}

BP_MAX_RANK = 8
BP_MAX_OP_TENSORS = 16
BP_FAULT_TEXT_BYTES = 192
BP_MAX_LAUNCH_PARAMETER_BYTES = 4096
BP_TENSOR_MAP_BYTES = 128
BP_MAX_TENSOR_MAP_RANK = 5
LIMIT_NAMES: dict[int, str] = {
    8: "BP_MAX_RANK",
    16: "BP_MAX_OP_TENSORS",
    192: "BP_FAULT_TEXT_BYTES",
    4096: "BP_MAX_LAUNCH_PARAMETER_BYTES",
    128: "BP_TENSOR_MAP_BYTES",
    5: "BP_MAX_TENSOR_MAP_RANK",
}

OP_ATTRIBUTES: dict[str, str] = {
    "matmul": "bp_matmul_attributes",
    "quantized_matmul": "bp_quantized_matmul_attributes",
    "rmsnorm": "bp_rmsnorm_attributes",
    "rope": "bp_rope_attributes",
    "paged_attention": "bp_paged_attention_attributes",
    "softmax": "bp_softmax_attributes",
    "silu_mul": "bp_silu_mul_attributes",
    "embedding": "bp_embedding_attributes",
    "sample": "bp_sample_attributes",
    "kv_write": "bp_kv_write_attributes",
    "block_copy": "bp_block_copy_attributes",
    "reduce": "bp_reduce_attributes",
    "convert": "bp_convert_attributes",
}

OP_TENSORS: dict[str, str] = {
    "matmul": "a b bias? residual? count? out!",
    "quantized_matmul": "a w bias? residual? count? out!",
    "rmsnorm": "x weight count? out!",
    "rope": "x! positions inverse_frequency count?",
    "paged_attention": "q k_cache v_cache block_table query_start context_length sequence_count? out!",
    "softmax": "x count? out!",
    "silu_mul": "gate_up count? out!",
    "embedding": "table ids count? out!",
    "sample": "logits rows count? tokens! logprob?!",
    "kv_write": "k v slots count? k_cache! v_cache!",
    "block_copy": "pairs count? k_cache! v_cache!",
    "reduce": "x count? out!",
    "convert": "x count? out!",
}

LAYOUT: dict[str, tuple[int, dict[str, int]]] = {
    "bp_head": (8, {"struct_version": 0, "struct_size": 4}),
    "bp_text": (16, {"data": 0, "length": 8}),
    "bp_fence": (16, {"timeline": 0, "value": 8}),
    "bp_range": (24, {"memory": 0, "offset": 8, "length": 16}),
    "bp_capability": (16, {"id": 0, "type": 4, "value": 8}),
    "bp_property": (32, {"key": 0, "value": 16}),
    "bp_argument": (40, {"kind": 0, "bytes": 4, "range": 8, "data": 32}),
    "bp_command": (16, {"head": 0, "kind": 8, "flags": 12}),
    "bp_sample_row": (64, {"temperature": 0, "top_p": 4, "min_p": 8, "top_k": 12, "seed": 16, "token_index": 24, "padding": 32}),
    "bp_host": (64, {"head": 0, "user": 8, "log": 16, "service": 24, "reserved": 32}),
    "bp_device_properties": (96, {"head": 0, "name": 8, "driver": 24, "memory_bytes": 40, "properties": 48, "property_count": 56, "pad": 60, "reserved": 64}),
    "bp_module_source": (80, {"head": 0, "kind": 8, "pad": 12, "path": 16, "data": 32, "bytes": 40, "reserved": 48}),
    "bp_native_window": (24, {"base": 0, "bytes": 8, "host": 16}),
    "bp_native_launch": (152, {"head": 0, "parameters": 8, "parameters_bytes": 16, "grid": 24, "block": 36, "dynamic_shared_bytes": 48, "worker": 52, "shared": 56, "budget": 64, "cancel": 72, "fault": 80, "counters": 88, "printf_ring": 96, "reserved": 104, "windows": 136, "window_count": 144}),
    "bp_native_kernel": (24, {"name": 0, "entry": 16}),
    "bp_native_facts": (40, {"max_threads_per_block": 0, "argument_count": 4, "parameters_bytes": 8, "static_shared_bytes": 16, "block": 24, "pad": 36}),
    "bp_native_module": (80, {"head": 0, "isa": 8, "kernel_count": 24, "pad": 28, "kernels": 32, "reserved": 40, "facts": 72}),
    "bp_provider": (96, {"head": 0, "user": 8, "enumerate": 16, "properties": 24, "capabilities": 32, "load": 40, "unload": 48, "last_error": 56, "reserved": 64}),
    "bp_memory_info": (80, {"head": 0, "bytes": 8, "alignment": 16, "address": 24, "host": 32, "reserved": 40, "flags": 72, "pad": 76}),
    "bp_external": (64, {"head": 0, "kind": 8, "pad": 12, "value": 16, "bytes": 24, "reserved": 32}),
    "bp_queue_info": (48, {"head": 0, "priority": 8, "flags": 12, "reserved": 16}),
    "bp_module_info": (72, {"head": 0, "isa": 8, "kernels": 24, "kernel_count": 32, "pad": 36, "reserved": 40}),
    "bp_kernel_info": (72, {"head": 0, "name": 8, "max_threads_per_block": 24, "registers": 28, "static_shared_bytes": 32, "reserved": 40}),
    "bp_copy_command": (96, {"head": 0, "kind": 8, "flags": 12, "destination": 16, "source": 40, "reserved": 64}),
    "bp_fill_command": (80, {"head": 0, "kind": 8, "flags": 12, "destination": 16, "pattern": 40, "pattern_bytes": 44, "reserved": 48}),
    "bp_launch_command": (112, {"head": 0, "kind": 8, "flags": 12, "kernel": 16, "grid": 24, "block": 36, "cluster": 48, "dynamic_shared_bytes": 60, "arguments": 64, "argument_count": 72, "pad": 76, "reserved": 80}),
    "bp_op_command": (96, {"head": 0, "kind": 8, "flags": 12, "plan": 16, "bindings": 24, "binding_count": 32, "pad": 36, "workspace": 40, "reserved": 64}),
    "bp_timestamp_command": (72, {"head": 0, "kind": 8, "flags": 12, "destination": 16, "reserved": 40}),
    "bp_batch": (88, {"head": 0, "tag": 8, "wait": 16, "signal": 24, "commands": 32, "wait_count": 40, "signal_count": 44, "command_count": 48, "flags": 52, "reserved": 56}),
    "bp_tensor": (88, {"head": 0, "range": 8, "dtype": 32, "rank": 36, "shape": 40, "stride": 48, "reserved": 56}),
    "bp_op_plan": (80, {"head": 0, "plan": 8, "workspace_bytes": 16, "flags": 24, "pad": 28, "library": 32, "reserved": 48}),
    "bp_tensor_map_info": (72, {"head": 0, "tensor": 8, "tile": 16, "step": 24, "swizzle": 32, "pad": 36, "reserved": 40}),
    "bp_core": (88, {"head": 0, "enumerate": 8, "open": 16, "close": 24, "properties": 32, "capabilities": 40, "last_error": 48, "reserved": 56}),
    "bp_mem": (112, {"head": 0, "create": 8, "release": 16, "describe": 24, "reserve": 32, "map": 40, "unmap": 48, "pin": 56, "export_memory": 64, "import_memory": 72, "reserved": 80}),
    "bp_queue": (72, {"head": 0, "create": 8, "submit": 16, "flush": 24, "destroy": 32, "reserved": 40}),
    "bp_timeline": (80, {"head": 0, "create": 8, "signal": 16, "query": 24, "wait_host": 32, "destroy": 40, "reserved": 48}),
    "bp_module": (80, {"head": 0, "load": 8, "info": 16, "kernel": 24, "kernel_info": 32, "unload": 40, "reserved": 48}),
    "bp_capture": (72, {"head": 0, "begin": 8, "end": 16, "launch": 24, "release": 32, "reserved": 40}),
    "bp_api": (104, {"head": 0, "major": 8, "minor": 12, "core": 16, "mem": 24, "queue": 32, "timeline": 40, "module": 48, "capture": 56, "ext": 64, "reserved": 72}),
    "bp_native_fault": (256, {"head": 0, "claimed": 8, "status": 12, "block": 16, "value": 24, "text": 32, "reserved": 224}),
    "bp_matmul_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_quantized_matmul_attributes": (48, {"head": 0, "activation": 8, "pad": 12, "reserved": 16}),
    "bp_rmsnorm_attributes": (48, {"head": 0, "eps": 8, "pad": 12, "reserved": 16}),
    "bp_rope_attributes": (48, {"head": 0, "pairing": 8, "scale": 12, "reserved": 16}),
    "bp_paged_attention_attributes": (56, {"head": 0, "scale": 8, "sliding_window": 12, "soft_cap": 16, "pad": 20, "reserved": 24}),
    "bp_softmax_attributes": (48, {"head": 0, "scale": 8, "pad": 12, "reserved": 16}),
    "bp_silu_mul_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_embedding_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_sample_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_kv_write_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_block_copy_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_reduce_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_convert_attributes": (40, {"head": 0, "reserved": 8}),
    "bp_load_options": (80, {"head": 0, "path": 8, "host": 24, "major": 32, "minor": 36, "reserved": 40, "descriptor": 72, "pad": 76}),
    "bp_ops": (56, {"head": 0, "plan": 8, "release": 16, "reserved": 24}),
    "bp_tensor_maps": (48, {"head": 0, "encode": 8, "reserved": 16}),
}

CDEF = """
typedef struct bp_head { uint32_t struct_version; uint32_t struct_size; } bp_head;
typedef struct bp_text { const char *data; uint64_t length; } bp_text;
typedef struct bp_fence { uint64_t timeline; uint64_t value; } bp_fence;
typedef struct bp_range { uint64_t memory; uint64_t offset; uint64_t length; } bp_range;
typedef struct bp_capability { uint32_t id; uint32_t type; uint64_t value; } bp_capability;
typedef struct bp_property { bp_text key; bp_text value; } bp_property;
typedef struct bp_argument { uint32_t kind; uint32_t bytes; bp_range range; const void *data; } bp_argument;
typedef struct bp_command { bp_head head; uint32_t kind; uint32_t flags; } bp_command;
typedef struct bp_sample_row { float temperature; float top_p; float min_p; uint32_t top_k; uint64_t seed; uint64_t token_index; uint64_t padding[4]; } bp_sample_row;
typedef struct bp_host { bp_head head; void *user; void (*log)(void *user, uint32_t level, const bp_text *line); const void *(*service)(void *user, const bp_text *name); uint64_t reserved[4]; } bp_host;
typedef struct bp_device_properties { bp_head head; bp_text name; bp_text driver; uint64_t memory_bytes; const bp_property *properties; uint32_t property_count; uint32_t pad; uint64_t reserved[4]; } bp_device_properties;
typedef struct bp_module_source { bp_head head; uint32_t kind; uint32_t pad; bp_text path; const void *data; uint64_t bytes; uint64_t reserved[4]; } bp_module_source;
typedef struct bp_native_window { uint64_t base; uint64_t bytes; void *host; } bp_native_window;
typedef struct bp_native_launch { bp_head head; const void *parameters; uint64_t parameters_bytes; uint32_t grid[3]; uint32_t block[3]; uint32_t dynamic_shared_bytes; uint32_t worker; void *shared; uint64_t budget; const uint32_t *cancel; void *fault; uint64_t *counters; void *printf_ring; uint64_t reserved[4]; const bp_native_window *windows; uint64_t window_count; } bp_native_launch;
typedef int32_t (*bp_native_entry)(const bp_native_launch *launch, uint64_t first_block, uint64_t block_count);
typedef struct bp_native_kernel { bp_text name; bp_native_entry entry; } bp_native_kernel;
typedef struct bp_native_facts { uint32_t max_threads_per_block; uint32_t argument_count; uint64_t parameters_bytes; uint64_t static_shared_bytes; uint32_t block[3]; uint32_t pad; } bp_native_facts;
typedef struct bp_native_module { bp_head head; bp_text isa; uint32_t kernel_count; uint32_t pad; const bp_native_kernel *kernels; uint64_t reserved[4]; const bp_native_facts *facts; } bp_native_module;
typedef struct bp_provider { bp_head head; void *user; int32_t (*enumerate)(void *user, uint32_t *count); int32_t (*properties)(void *user, uint32_t index, bp_device_properties *out); int32_t (*capabilities)(void *user, uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count); int32_t (*load)(void *user, uint32_t index, const bp_module_source *source, const bp_native_module **module, uint64_t *token); int32_t (*unload)(void *user, uint64_t token); int32_t (*last_error)(void *user, char *buffer, uint64_t capacity, uint64_t *length); uint64_t reserved[4]; } bp_provider;
typedef struct bp_memory_info { bp_head head; uint64_t bytes; uint64_t alignment; uint64_t address; void *host; uint64_t reserved[4]; uint32_t flags; uint32_t pad; } bp_memory_info;
typedef struct bp_external { bp_head head; uint32_t kind; uint32_t pad; uint64_t value; uint64_t bytes; uint64_t reserved[4]; } bp_external;
typedef struct bp_queue_info { bp_head head; int32_t priority; uint32_t flags; uint64_t reserved[4]; } bp_queue_info;
typedef struct bp_module_info { bp_head head; bp_text isa; const bp_text *kernels; uint32_t kernel_count; uint32_t pad; uint64_t reserved[4]; } bp_module_info;
typedef struct bp_kernel_info { bp_head head; bp_text name; uint32_t max_threads_per_block; uint32_t registers; uint64_t static_shared_bytes; uint64_t reserved[4]; } bp_kernel_info;
typedef struct bp_copy_command { bp_head head; uint32_t kind; uint32_t flags; bp_range destination; bp_range source; uint64_t reserved[4]; } bp_copy_command;
typedef struct bp_fill_command { bp_head head; uint32_t kind; uint32_t flags; bp_range destination; uint32_t pattern; uint32_t pattern_bytes; uint64_t reserved[4]; } bp_fill_command;
typedef struct bp_launch_command { bp_head head; uint32_t kind; uint32_t flags; uint64_t kernel; uint32_t grid[3]; uint32_t block[3]; uint32_t cluster[3]; uint32_t dynamic_shared_bytes; const bp_argument *arguments; uint32_t argument_count; uint32_t pad; uint64_t reserved[4]; } bp_launch_command;
typedef struct bp_op_command { bp_head head; uint32_t kind; uint32_t flags; uint64_t plan; const bp_range *bindings; uint32_t binding_count; uint32_t pad; bp_range workspace; uint64_t reserved[4]; } bp_op_command;
typedef struct bp_timestamp_command { bp_head head; uint32_t kind; uint32_t flags; bp_range destination; uint64_t reserved[4]; } bp_timestamp_command;
typedef struct bp_batch { bp_head head; uint64_t tag; const bp_fence *wait; const bp_fence *signal; const bp_command *const*commands; uint32_t wait_count; uint32_t signal_count; uint32_t command_count; uint32_t flags; uint64_t reserved[4]; } bp_batch;
typedef struct bp_tensor { bp_head head; bp_range range; uint32_t dtype; uint32_t rank; const int64_t *shape; const int64_t *stride; uint64_t reserved[4]; } bp_tensor;
typedef struct bp_op_plan { bp_head head; uint64_t plan; uint64_t workspace_bytes; uint32_t flags; uint32_t pad; bp_text library; uint64_t reserved[4]; } bp_op_plan;
typedef struct bp_tensor_map_info { bp_head head; const bp_tensor *tensor; const uint32_t *tile; const uint32_t *step; uint32_t swizzle; uint32_t pad; uint64_t reserved[4]; } bp_tensor_map_info;
typedef struct bp_core { bp_head head; int32_t (*enumerate)(uint32_t *count); int32_t (*open)(uint32_t index, uint64_t *device); int32_t (*close)(uint64_t device); int32_t (*properties)(uint32_t index, bp_device_properties *out); int32_t (*capabilities)(uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count); int32_t (*last_error)(char *buffer, uint64_t capacity, uint64_t *length); uint64_t reserved[4]; } bp_core;
typedef struct bp_mem { bp_head head; int32_t (*create)(uint64_t device, const bp_memory_info *wanted, uint64_t *memory); int32_t (*release)(uint64_t device, uint64_t memory); int32_t (*describe)(uint64_t device, uint64_t memory, bp_memory_info *out); int32_t (*reserve)(uint64_t device, uint64_t bytes, uint64_t alignment, uint64_t *address); int32_t (*map)(uint64_t device, uint64_t address, const bp_range *range); int32_t (*unmap)(uint64_t device, uint64_t address, uint64_t bytes); int32_t (*pin)(uint64_t device, void *host, uint64_t bytes, uint64_t *memory); int32_t (*export_memory)(uint64_t device, uint64_t memory, bp_external *out); int32_t (*import_memory)(uint64_t device, const bp_external *external, uint64_t *memory); uint64_t reserved[4]; } bp_mem;
typedef struct bp_queue { bp_head head; int32_t (*create)(uint64_t device, const bp_queue_info *info, uint64_t *queue); int32_t (*submit)(uint64_t device, uint64_t queue, const bp_batch *batch); int32_t (*flush)(uint64_t device, uint64_t queue); int32_t (*destroy)(uint64_t device, uint64_t queue); uint64_t reserved[4]; } bp_queue;
typedef struct bp_timeline { bp_head head; int32_t (*create)(uint64_t device, uint64_t initial, uint64_t *timeline); int32_t (*signal)(uint64_t device, uint64_t timeline, uint64_t value); int32_t (*query)(uint64_t device, uint64_t timeline, uint64_t *value); int32_t (*wait_host)(uint64_t device, uint64_t timeline, uint64_t value, uint64_t deadline_ns); int32_t (*destroy)(uint64_t device, uint64_t timeline); uint64_t reserved[4]; } bp_timeline;
typedef struct bp_module { bp_head head; int32_t (*load)(uint64_t device, const bp_module_source *source, uint64_t *module); int32_t (*info)(uint64_t device, uint64_t module, bp_module_info *out); int32_t (*kernel)(uint64_t device, uint64_t module, const bp_text *name, uint64_t *kernel); int32_t (*kernel_info)(uint64_t device, uint64_t kernel, bp_kernel_info *out); int32_t (*unload)(uint64_t device, uint64_t module); uint64_t reserved[4]; } bp_module;
typedef struct bp_capture { bp_head head; int32_t (*begin)(uint64_t device, uint64_t queue); int32_t (*end)(uint64_t device, uint64_t queue, uint64_t *graph); int32_t (*launch)(uint64_t device, uint64_t queue, uint64_t graph, const bp_batch *fences); int32_t (*release)(uint64_t device, uint64_t graph); uint64_t reserved[4]; } bp_capture;
typedef struct bp_api { bp_head head; uint32_t major; uint32_t minor; const bp_core *core; const bp_mem *mem; const bp_queue *queue; const bp_timeline *timeline; const bp_module *module; const bp_capture *capture; const void *(*ext)(const bp_text *name); uint64_t reserved[4]; } bp_api;
typedef struct bp_native_fault { bp_head head; uint32_t claimed; int32_t status; uint64_t block; uint64_t value; char text[192]; uint64_t reserved[4]; } bp_native_fault;
typedef struct bp_matmul_attributes { bp_head head; uint64_t reserved[4]; } bp_matmul_attributes;
typedef struct bp_quantized_matmul_attributes { bp_head head; uint32_t activation; uint32_t pad; uint64_t reserved[4]; } bp_quantized_matmul_attributes;
typedef struct bp_rmsnorm_attributes { bp_head head; float eps; uint32_t pad; uint64_t reserved[4]; } bp_rmsnorm_attributes;
typedef struct bp_rope_attributes { bp_head head; uint32_t pairing; float scale; uint64_t reserved[4]; } bp_rope_attributes;
typedef struct bp_paged_attention_attributes { bp_head head; float scale; uint32_t sliding_window; float soft_cap; uint32_t pad; uint64_t reserved[4]; } bp_paged_attention_attributes;
typedef struct bp_softmax_attributes { bp_head head; float scale; uint32_t pad; uint64_t reserved[4]; } bp_softmax_attributes;
typedef struct bp_silu_mul_attributes { bp_head head; uint64_t reserved[4]; } bp_silu_mul_attributes;
typedef struct bp_embedding_attributes { bp_head head; uint64_t reserved[4]; } bp_embedding_attributes;
typedef struct bp_sample_attributes { bp_head head; uint64_t reserved[4]; } bp_sample_attributes;
typedef struct bp_kv_write_attributes { bp_head head; uint64_t reserved[4]; } bp_kv_write_attributes;
typedef struct bp_block_copy_attributes { bp_head head; uint64_t reserved[4]; } bp_block_copy_attributes;
typedef struct bp_reduce_attributes { bp_head head; uint64_t reserved[4]; } bp_reduce_attributes;
typedef struct bp_convert_attributes { bp_head head; uint64_t reserved[4]; } bp_convert_attributes;
typedef struct bp_load_options { bp_head head; bp_text path; const bp_host *host; uint32_t major; uint32_t minor; uint64_t reserved[4]; int32_t descriptor; uint32_t pad; } bp_load_options;
typedef struct bp_ops { bp_head head; int32_t (*plan)(uint64_t device, uint32_t op, const bp_tensor *const*tensors, uint32_t count, const void *attributes, uint64_t attribute_bytes, bp_op_plan *out); int32_t (*release)(uint64_t device, uint64_t plan); uint64_t reserved[4]; } bp_ops;
typedef struct bp_tensor_maps { bp_head head; int32_t (*encode)(uint64_t device, const bp_tensor_map_info *info, void *map); uint64_t reserved[4]; } bp_tensor_maps;
int32_t bp_hal_load(const bp_load_options *options, const bp_api **out);
int32_t bp_hal_adopt(const bp_api *answer, uint32_t major, uint32_t minor, const bp_api **out);
int32_t bp_hal_ops(const bp_api *api, const bp_ops **out);
int32_t bp_hal_tensor_maps(const bp_api *api, const bp_tensor_maps **out);
int32_t bp_hal_last_error(char *buffer, uint64_t capacity, uint64_t *length);
int32_t bp_hal_version(uint32_t *major, uint32_t *minor);
"""

/* Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit.
 *
 * The C ABI between Bedplate and an accelerator. A backend is one shared library that
 * exports bedplate_hal_backend_query. Nothing here unwinds, aborts or takes a struct by
 * value; every function may be called from any thread unless it says otherwise.
 */
#ifndef BEDPLATE_HAL_H
#define BEDPLATE_HAL_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#ifdef __cplusplus
extern "C" {
#endif

#define BP_ABI_MAJOR 0u
#define BP_ABI_MINOR 4u

/* What every function returns: 0, or one of these. The text is in core.last_error of the same
 * thread. */
#define BP_OK 0 /* done */
#define BP_INVALID_ARGUMENT (-1) /* an argument is wrong: stale handle, range past the end, overflow, bad shape */
#define BP_INVALID_EXT (-2) /* a reserved word or the unknown tail of a struct is not zero */
#define BP_UNSUPPORTED (-3) /* this backend does not have that function or that variant */
#define BP_UNAVAILABLE (-4) /* the backend exists but cannot work here: library, driver or instruction set missing */
#define BP_OUT_OF_MEMORY (-5) /* device or host memory is exhausted */
#define BP_NOT_FOUND (-6) /* no such device, module, kernel or table */
#define BP_DEADLINE (-7) /* the deadline passed before the condition held */
#define BP_DEVICE_LOST (-8) /* the device is gone; everything on it is poisoned */
#define BP_LAUNCH_FAULT (-9) /* a kernel or op refused or failed while it ran */
#define BP_CANCELLED (-10) /* the queue or timeline was destroyed first */
#define BP_VERSION (-11) /* the two sides have different majors */
#define BP_INTERNAL (-12) /* a broken invariant of the backend */
#define BP_BUSY (-13) /* the object is in use */

/* Element types. DLPack's (code, bits, lanes) packed as code | bits << 8 | lanes << 16; codes
 * from 128 are GGUF blocks of 32 elements. */
#define BP_DTYPE_F32 0x00012002u /* IEEE binary32 */
#define BP_DTYPE_F16 0x00011002u /* IEEE binary16 */
#define BP_DTYPE_BF16 0x00011004u /* bfloat16 */
#define BP_DTYPE_I8 0x00010800u /* signed 8-bit */
#define BP_DTYPE_I32 0x00012000u /* signed 32-bit */
#define BP_DTYPE_I64 0x00014000u /* signed 64-bit */
#define BP_DTYPE_U8 0x00010801u /* unsigned 8-bit */
#define BP_DTYPE_U32 0x00012001u /* unsigned 32-bit */
#define BP_DTYPE_U64 0x00014001u /* unsigned 64-bit */
#define BP_DTYPE_Q4_0 0x00010480u /* GGUF Q4_0: 18 bytes per 32 elements */
#define BP_DTYPE_Q4_1 0x00010481u /* GGUF Q4_1: 20 bytes per 32 elements */
#define BP_DTYPE_Q8_0 0x00010882u /* GGUF Q8_0: 34 bytes per 32 elements */

/* The vocabulary of bp.ops.1; shapes and dtypes are in the ops table of the reference. */
#define BP_OP_MATMUL 1u /* a [M,K], b [K,N], bias? [N], residual? [M,N], count? -> out [M,N] */
#define BP_OP_QUANTIZED_MATMUL 2u /* a [M,K], w [N,K] in GGUF rows, bias?, residual?, count? -> out [M,N] */
#define BP_OP_RMSNORM 3u /* x [T,H], weight [H], count? -> out [T,H] */
#define BP_OP_ROPE 4u /* x [T,Heads,D] in place, positions [T], inverse_frequency [D/2], count? */
#define BP_OP_PAGED_ATTENTION 5u /* q, k_cache, v_cache, block_table, query_start, context_length, sequence_count? -> out */
#define BP_OP_SOFTMAX 6u /* x [T,H], count? -> out [T,H] */
#define BP_OP_SILU_MUL 7u /* gate_up [T,2F], count? -> out [T,F] */
#define BP_OP_EMBEDDING 8u /* table [V,H], ids [T], count? -> out [T,H] */
#define BP_OP_SAMPLE 9u /* logits [R,V], rows u8 [R,64], count? -> tokens [R], logprob? [R] */
#define BP_OP_KV_WRITE 10u /* k, v [T,Hkv,D], slots [T], count?, k_cache, v_cache in place */
#define BP_OP_BLOCK_COPY 11u /* pairs [P,2], count?, k_cache, v_cache in place */
#define BP_OP_REDUCE 12u /* x [T,H], count? -> out [T] */
#define BP_OP_CONVERT 13u /* x [T,H], count? -> out [T,H] of another dtype */

/* What a device can do beyond the mandatory tables. An uncertified one reads as absent. */
#define BP_CAP_DEVICE_ADDRESS 1u /* mem.describe gives a raw device address */
#define BP_CAP_HOST_VISIBLE 2u /* mem.describe gives a host pointer to the same bytes */
#define BP_CAP_TIMELINE_WAIT_HOST 3u /* timeline.wait_host sleeps instead of polling */
#define BP_CAP_MODULE_NATIVE 4u /* module.load takes BP_MODULE_NATIVE */
#define BP_CAP_MODULE_PTX 5u /* module.load takes BP_MODULE_PTX */
#define BP_CAP_MODULE_CUBIN 6u /* module.load takes BP_MODULE_CUBIN */
#define BP_CAP_MODULE_SPIRV 7u /* module.load takes BP_MODULE_SPIRV */
#define BP_CAP_MODULE_OPENCL_C 8u /* module.load takes BP_MODULE_OPENCL_C */
#define BP_CAP_OPS 9u /* ext gives the table bp.ops.1 */
#define BP_CAP_CAPTURE 10u /* the capture table works */
#define BP_CAP_TIMESTAMP 11u /* the timestamp command works */
#define BP_CAP_PIN_HOST 12u /* mem.pin makes a handle over the caller's own memory, which copies and fills take; a device has this or BP_CAP_HOST_VISIBLE */
#define BP_CAP_ADDRESS_RESERVE 13u /* mem.reserve, map and unmap work */
#define BP_CAP_EXPORT_MEMORY 14u /* mem.export_memory works */
#define BP_CAP_IMPORT_MEMORY 15u /* mem.import_memory works */
#define BP_CAP_DYNAMIC_SHARED 16u /* launches may ask for dynamic shared memory; value: most bytes. A kernel of OpenCL C takes it as one more argument behind the others, a __local pointer */
#define BP_CAP_CLUSTERS 17u /* launches may ask for clusters; value: most blocks */
#define BP_CAP_TENSOR_MAP 18u /* ext gives the table bp.tensor_map.1 */

/* How to read bp_capability.value. */
#define BP_CAPABILITY_FLAG 1u /* value is 1 */
#define BP_CAPABILITY_COUNT 2u /* value is a number */
#define BP_CAPABILITY_BYTES 3u /* value is a size in bytes */

/* The kind in the prefix of every command. */
#define BP_COMMAND_COPY 1u /* bp_copy_command */
#define BP_COMMAND_FILL 2u /* bp_fill_command */
#define BP_COMMAND_LAUNCH 3u /* bp_launch_command */
#define BP_COMMAND_OP 4u /* bp_op_command */
#define BP_COMMAND_TIMESTAMP 5u /* bp_timestamp_command */

/* How one launch argument is given. */
#define BP_ARGUMENT_RANGE 1u /* packed as an 8-byte device address, or given as the buffer that it is where devices have none; memory 0 is a null address. Pinned memory may be refused as BP_UNSUPPORTED */
#define BP_ARGUMENT_BYTES 2u /* packed as given, aligned to its own size up to 8 */

/* What module.load is given. */
#define BP_MODULE_NATIVE 1u /* path of a shared object that exports bedplate_native_module_query */
#define BP_MODULE_PTX 2u /* PTX text */
#define BP_MODULE_CUBIN 3u /* a cubin or fatbin */
#define BP_MODULE_SPIRV 4u /* SPIR-V words */
#define BP_MODULE_OPENCL_C 5u /* OpenCL C text */

/* Facts about a plan. */
#define BP_OP_DETERMINISTIC 1u /* the same inputs give the same bits, whatever the thread count */
#define BP_OP_CAPTURABLE 2u /* running it neither allocates nor reads host memory */

/* What memory must be able to do beside holding bytes. */
#define BP_MEMORY_EXPORTABLE 1u /* mem.export_memory takes it; BP_UNSUPPORTED without BP_CAP_EXPORT_MEMORY */

/* How memory crosses. */
#define BP_EXTERNAL_FILE_DESCRIPTOR 1u /* value is a file descriptor of this process */

/* How a tile's rows lie in shared memory: pieces of 16 bytes change places within this many
 * bytes. */
#define BP_TENSOR_MAP_SWIZZLE_NONE 0u /* row after row */
#define BP_TENSOR_MAP_SWIZZLE_32 1u /* within 32 bytes */
#define BP_TENSOR_MAP_SWIZZLE_64 2u /* within 64 bytes */
#define BP_TENSOR_MAP_SWIZZLE_128 3u /* within 128 bytes */

/* Levels of bp_host.log. */
#define BP_LOG_ERROR 1u /* something failed */
#define BP_LOG_WARNING 2u /* something is odd */
#define BP_LOG_INFO 3u /* something happened */
#define BP_LOG_DEBUG 4u /* everything */

/* Which two elements rope rotates together. */
#define BP_ROPE_HALF_SPLIT 0u /* i with i + D/2 */
#define BP_ROPE_ADJACENT 1u /* 2i with 2i + 1 */

/* How quantized_matmul treats a. */
#define BP_ACTIVATION_FLOAT 0u /* stays float; weights are dequantised */
#define BP_ACTIVATION_INT8 1u /* quantised to int8 blocks of 32 */

/* Sizes fixed by the ABI. */
#define BP_MAX_RANK 8u /* most dimensions of a tensor */
#define BP_MAX_OP_TENSORS 16u /* most tensors of an op */
#define BP_FAULT_TEXT_BYTES 192u /* room for a kernel's own sentence in bp_native_fault */
#define BP_MAX_LAUNCH_PARAMETER_BYTES 4096u /* most packed parameter bytes of one launch */
#define BP_TENSOR_MAP_BYTES 128u /* size of a tensor map */
#define BP_MAX_TENSOR_MAP_RANK 5u /* most dimensions of a tensor map */

/* First field of every struct that may grow. The callee reads the smaller of both sizes, takes
 * the rest as zero, writes at most the caller's size. */
typedef struct bp_head {
    /* 1 */
    uint32_t struct_version;
    /* bytes the caller knows of the whole struct; a multiple of 8 */
    uint32_t struct_size;
} bp_head;

/* UTF-8 text without a terminator. Text returned by a backend lives as long as the library. */
typedef struct bp_text {
    /* first byte; may be null when length is 0 */
    const char *data;
    /* bytes */
    uint64_t length;
} bp_text;

/* A point on a timeline. */
typedef struct bp_fence {
    /* handle */
    uint64_t timeline;
    /* reached when the timeline is at or past it */
    uint64_t value;
} bp_fence;

/* A span of one memory object. */
typedef struct bp_range {
    /* handle */
    uint64_t memory;
    /* bytes */
    uint64_t offset;
    /* bytes */
    uint64_t length;
} bp_range;

/* One claim of a device. */
typedef struct bp_capability {
    /* BP_CAP_* */
    uint32_t id;
    /* BP_CAPABILITY_* */
    uint32_t type;
    /* by type */
    uint64_t value;
} bp_capability;

/* One fact about a device, as text. */
typedef struct bp_property {
    /* dotted name, e.g. cpu.isa */
    bp_text key;
    /* its value */
    bp_text value;
} bp_property;

/* One argument of a launch. */
typedef struct bp_argument {
    /* BP_ARGUMENT_* */
    uint32_t kind;
    /* length of data for BP_ARGUMENT_BYTES */
    uint32_t bytes;
    /* for BP_ARGUMENT_RANGE */
    bp_range range;
    /* for BP_ARGUMENT_BYTES; read during submit only */
    const void *data;
} bp_argument;

/* The prefix all commands share. A batch holds pointers to commands, so each kind grows alone. */
typedef struct bp_command {
    /* size of the whole command */
    bp_head head;
    /* BP_COMMAND_* */
    uint32_t kind;
    /* 0 */
    uint32_t flags;
} bp_command;

/* How to sample one row, as it lies in device memory: 64 bytes, zero padded. */
typedef struct bp_sample_row {
    /* 0 is greedy */
    float temperature;
    /* 1 is off */
    float top_p;
    /* 0 is off */
    float min_p;
    /* 0 is off */
    uint32_t top_k;
    /* Philox key */
    uint64_t seed;
    /* Philox counter; 0 is the first generated token */
    uint64_t token_index;
    /* 0 */
    uint64_t padding[4];
} bp_sample_row;

/* What the host offers a backend. Every slot may be null before the loader has filled it. */
typedef struct bp_host {
    bp_head head;
    /* given back to each callback */
    void *user;
    /* one line of text, no newline */
    void (*log)(void *user, uint32_t level, const bp_text *line);
    /* a host table by name, or null */
    const void *(*service)(void *user, const bp_text *name);
    uint64_t reserved[4];
} bp_host;

/* Facts about one device, known without opening it. */
typedef struct bp_device_properties {
    bp_head head;
    /* what people call it */
    bp_text name;
    /* version of what drives it; part of a certificate's key */
    bp_text driver;
    /* total */
    uint64_t memory_bytes;
    /* array */
    const bp_property *properties;
    uint32_t property_count;
    uint32_t pad;
    uint64_t reserved[4];
} bp_device_properties;

/* What to load. Path and data are read during the call only. */
typedef struct bp_module_source {
    bp_head head;
    /* BP_MODULE_* */
    uint32_t kind;
    uint32_t pad;
    /* for native: absolute path */
    bp_text path;
    /* for the others: the image */
    const void *data;
    /* of data */
    uint64_t bytes;
    uint64_t reserved[4];
} bp_module_source;

/* Device memory that a launch may touch, by its device address. */
typedef struct bp_native_window {
    /* device address */
    uint64_t base;
    /* size */
    uint64_t bytes;
    /* the same bytes for the host */
    void *host;
} bp_native_window;

/* What a native kernel entry is given; the same for `cpu` and `simt`. */
typedef struct bp_native_launch {
    bp_head head;
    /* packed arguments */
    const void *parameters;
    uint64_t parameters_bytes;
    /* blocks, x fastest */
    uint32_t grid[3];
    /* threads */
    uint32_t block[3];
    uint32_t dynamic_shared_bytes;
    /* index of the calling worker */
    uint32_t worker;
    /* this worker's dynamic_shared_bytes, aligned to 64; null when 0 */
    void *shared;
    /* instruction budget; 0 is none */
    uint64_t budget;
    /* becomes non-zero when the work is not wanted any more; may be null */
    const uint32_t *cancel;
    /* a bp_native_fault, or null */
    void *fault;
    /* or null */
    uint64_t *counters;
    /* or null */
    void *printf_ring;
    uint64_t reserved[4];
    /* all device memory, ascending, none overlapping; null where kernels are not held to it;
     * since 0.4 */
    const bp_native_window *windows;
    /* windows; since 0.4 */
    uint64_t window_count;
} bp_native_launch;

/* Runs blocks [first_block, first_block + block_count) of the flattened grid; 0 or a negative
 * status. Called from several threads at once. */
typedef int32_t (*bp_native_entry)(const bp_native_launch *launch, uint64_t first_block, uint64_t block_count);

/* One kernel of a native module. */
typedef struct bp_native_kernel {
    bp_text name;
    bp_native_entry entry;
} bp_native_kernel;

/* What a native kernel asks of its launches; others are refused when they are submitted. */
typedef struct bp_native_facts {
    /* at least 1 */
    uint32_t max_threads_per_block;
    uint32_t argument_count;
    /* of its packed arguments */
    uint64_t parameters_bytes;
    /* shared memory of its own, beside dynamic_shared_bytes */
    uint64_t static_shared_bytes;
    /* the only block it takes; 0 in the first is any */
    uint32_t block[3];
    /* 0 */
    uint32_t pad;
} bp_native_facts;

/* What bedplate_native_module_query answers; lives as long as the library. */
typedef struct bp_native_module {
    bp_head head;
    /* generic, avx2, avx512 or avx512_bf16 */
    bp_text isa;
    uint32_t kernel_count;
    uint32_t pad;
    /* array */
    const bp_native_kernel *kernels;
    uint64_t reserved[4];
    /* one for each kernel, or null when nothing is known; since 0.4 */
    const bp_native_facts *facts;
} bp_native_module;

/* A machine that lives in the host's process, as bp_host.service gives it under `bp.provider.1:`
 * and the backend's name. The backend has queues and memory; the machine turns sources into
 * native entries, which launches call directly. Functions may be called from any thread, never
 * by a launch. The table and its texts live until the process ends. */
typedef struct bp_provider {
    bp_head head;
    /* given back to each function */
    void *user;
    /* number of devices */
    int32_t (*enumerate)(void *user, uint32_t *count);
    int32_t (*properties)(void *user, uint32_t index, bp_device_properties *out);
    /* as in bp_core */
    int32_t (*capabilities)(void *user, uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count);
    /* compiles; the module lives until unload */
    int32_t (*load)(void *user, uint32_t index, const bp_module_source *source, const bp_native_module **module, uint64_t *token);
    /* no launch of the module runs or will run */
    int32_t (*unload)(void *user, uint64_t token);
    /* as in bp_core */
    int32_t (*last_error)(void *user, char *buffer, uint64_t capacity, uint64_t *length);
    uint64_t reserved[4];
} bp_provider;

/* Asked of mem.create (bytes, alignment) and answered by mem.describe (all of it). */
typedef struct bp_memory_info {
    bp_head head;
    /* size; at least 1 */
    uint64_t bytes;
    /* power of two; 0 is the device's own */
    uint64_t alignment;
    /* device address under BP_CAP_DEVICE_ADDRESS, else 0 */
    uint64_t address;
    /* host pointer under BP_CAP_HOST_VISIBLE, else null */
    void *host;
    uint64_t reserved[4];
    /* BP_MEMORY_*; since 0.3 */
    uint32_t flags;
    uint32_t pad;
} bp_memory_info;

/* Memory that crosses to another owner: another open, device or process. The descriptor that
 * export gives is the caller's to close; import looks at it during the call only. The bytes live
 * until the last owner releases them. */
typedef struct bp_external {
    bp_head head;
    /* BP_EXTERNAL_* */
    uint32_t kind;
    uint32_t pad;
    /* the descriptor */
    uint64_t value;
    /* size */
    uint64_t bytes;
    uint64_t reserved[4];
} bp_external;

/* How to make a queue. */
typedef struct bp_queue_info {
    bp_head head;
    /* 0 is normal; higher may run first */
    int32_t priority;
    /* 0 */
    uint32_t flags;
    uint64_t reserved[4];
} bp_queue_info;

/* What was loaded. */
typedef struct bp_module_info {
    bp_head head;
    /* instruction set it was built for */
    bp_text isa;
    /* names, array */
    const bp_text *kernels;
    uint32_t kernel_count;
    uint32_t pad;
    uint64_t reserved[4];
} bp_module_info;

/* What is known of a kernel. */
typedef struct bp_kernel_info {
    bp_head head;
    bp_text name;
    uint32_t max_threads_per_block;
    /* per thread; 0 is unknown */
    uint32_t registers;
    uint64_t static_shared_bytes;
    uint64_t reserved[4];
} bp_kernel_info;

/* Copies between two ranges, of the device or pinned: the way between host and device where the
 * host sees no device memory. Lengths are equal, ranges do not overlap. */
typedef struct bp_copy_command {
    bp_head head;
    uint32_t kind;
    /* 0 */
    uint32_t flags;
    bp_range destination;
    bp_range source;
    uint64_t reserved[4];
} bp_copy_command;

/* Repeats a pattern over a range whose length is a multiple of pattern_bytes. */
typedef struct bp_fill_command {
    bp_head head;
    uint32_t kind;
    /* 0 */
    uint32_t flags;
    bp_range destination;
    /* low bytes are used */
    uint32_t pattern;
    /* 1, 2 or 4 */
    uint32_t pattern_bytes;
    uint64_t reserved[4];
} bp_fill_command;

/* Runs a kernel over a grid of blocks. */
typedef struct bp_launch_command {
    bp_head head;
    uint32_t kind;
    /* 0 */
    uint32_t flags;
    /* handle */
    uint64_t kernel;
    /* blocks; each at least 1 */
    uint32_t grid[3];
    /* threads; each at least 1 */
    uint32_t block[3];
    /* blocks per cluster; all 0 without BP_CAP_CLUSTERS */
    uint32_t cluster[3];
    /* at most the value of BP_CAP_DYNAMIC_SHARED */
    uint32_t dynamic_shared_bytes;
    /* array */
    const bp_argument *arguments;
    uint32_t argument_count;
    uint32_t pad;
    uint64_t reserved[4];
} bp_launch_command;

/* Runs a plan of bp.ops.1. */
typedef struct bp_op_command {
    bp_head head;
    uint32_t kind;
    /* 0 */
    uint32_t flags;
    /* from bp_ops.plan */
    uint64_t plan;
    /* one per tensor of the plan; memory 0 where it is absent */
    const bp_range *bindings;
    uint32_t binding_count;
    uint32_t pad;
    /* at least the plan's workspace_bytes; memory 0 when that is 0 */
    bp_range workspace;
    uint64_t reserved[4];
} bp_op_command;

/* Writes the device's monotonic clock, nanoseconds as u64, into 8 bytes. */
typedef struct bp_timestamp_command {
    bp_head head;
    uint32_t kind;
    /* 0 */
    uint32_t flags;
    /* 8 bytes, aligned to 8 */
    bp_range destination;
    uint64_t reserved[4];
} bp_timestamp_command;

/* One submission: waits, then commands in order, then signals. Nothing in it is read after
 * submit returns. */
typedef struct bp_batch {
    bp_head head;
    /* the caller's; echoed in logs and error text */
    uint64_t tag;
    /* array */
    const bp_fence *wait;
    /* array */
    const bp_fence *signal;
    /* array of pointers */
    const bp_command *const*commands;
    uint32_t wait_count;
    uint32_t signal_count;
    uint32_t command_count;
    /* 0 */
    uint32_t flags;
    uint64_t reserved[4];
} bp_batch;

/* A view of a range. Shape and stride are arrays of rank entries, read during the call only;
 * strides count elements (blocks' rows: elements, a multiple of 32). */
typedef struct bp_tensor {
    bp_head head;
    /* may be all zero while planning */
    bp_range range;
    /* BP_DTYPE_* */
    uint32_t dtype;
    /* 0 to BP_MAX_RANK */
    uint32_t rank;
    /* elements */
    const int64_t *shape;
    /* elements; null is dense row-major */
    const int64_t *stride;
    uint64_t reserved[4];
} bp_tensor;

/* Answer of bp_ops.plan. */
typedef struct bp_op_plan {
    bp_head head;
    /* handle */
    uint64_t plan;
    /* what each op command must bring */
    uint64_t workspace_bytes;
    /* BP_OP_* */
    uint32_t flags;
    uint32_t pad;
    /* which code runs it */
    bp_text library;
    uint64_t reserved[4];
} bp_op_plan;

/* What a tensor map is made for: tiles of a tensor that a kernel's bulk copies take. All arrays
 * follow the tensor's dimensions, outermost first. */
typedef struct bp_tensor_map_info {
    bp_head head;
    /* with its range; rank 1 to BP_MAX_TENSOR_MAP_RANK, dense in its last dimension */
    const bp_tensor *tensor;
    /* elements of a tile in each dimension, 1 to 256 */
    const uint32_t *tile;
    /* elements from one to the next that is taken, 1 to 8; null is 1 everywhere */
    const uint32_t *step;
    /* BP_TENSOR_MAP_SWIZZLE_* */
    uint32_t swizzle;
    uint32_t pad;
    uint64_t reserved[4];
} bp_tensor_map_info;

/* Devices and errors. */
typedef struct bp_core {
    bp_head head;
    /* number of devices; initialises none */
    int32_t (*enumerate)(uint32_t *count);
    /* a device of its own: memory, queues and timelines are not shared between opens */
    int32_t (*open)(uint32_t index, uint64_t *device);
    /* waits for its queues, then releases all of it */
    int32_t (*close)(uint64_t device);
    /* without opening */
    int32_t (*properties)(uint32_t index, bp_device_properties *out);
    /* writes at most capacity, count is the true number */
    int32_t (*capabilities)(uint32_t index, bp_capability *out, uint32_t capacity, uint32_t *count);
    /* text of the calling thread's last failure, cut to capacity with its terminator; length is
     * the true one. Either pointer may be null: nothing is written there, nor into a buffer of
     * capacity 0 */
    int32_t (*last_error)(char *buffer, uint64_t capacity, uint64_t *length);
    uint64_t reserved[4];
} bp_core;

/* Memory. Released storage lives until every batch submitted before the release is done; its
 * handle is stale at once. */
typedef struct bp_mem {
    bp_head head;
    /* content undefined */
    int32_t (*create)(uint64_t device, const bp_memory_info *wanted, uint64_t *memory);
    int32_t (*release)(uint64_t device, uint64_t memory);
    int32_t (*describe)(uint64_t device, uint64_t memory, bp_memory_info *out);
    /* address space without memory */
    int32_t (*reserve)(uint64_t device, uint64_t bytes, uint64_t alignment, uint64_t *address);
    /* put memory behind reserved addresses */
    int32_t (*map)(uint64_t device, uint64_t address, const bp_range *range);
    int32_t (*unmap)(uint64_t device, uint64_t address, uint64_t bytes);
    /* a handle over the caller's memory, which must outlive it and the batches submitted with it */
    int32_t (*pin)(uint64_t device, void *host, uint64_t bytes, uint64_t *memory);
    /* memory made with BP_MEMORY_EXPORTABLE */
    int32_t (*export_memory)(uint64_t device, uint64_t memory, bp_external *out);
    /* the same bytes as a memory of this device, whichever device they lie on; BP_UNSUPPORTED
     * when it cannot reach them */
    int32_t (*import_memory)(uint64_t device, const bp_external *external, uint64_t *memory);
    uint64_t reserved[4];
} bp_mem;

/* Ordered, asynchronous execution. A batch starts after the one before it is done. */
typedef struct bp_queue {
    bp_head head;
    int32_t (*create)(uint64_t device, const bp_queue_info *info, uint64_t *queue);
    /* checks all of it first: a refused batch has no effect */
    int32_t (*submit)(uint64_t device, uint64_t queue, const bp_batch *batch);
    /* starts what was submitted; does not wait */
    int32_t (*flush)(uint64_t device, uint64_t queue);
    /* cancels what waits or has more commands to run, waits for the command that runs */
    int32_t (*destroy)(uint64_t device, uint64_t queue);
    uint64_t reserved[4];
} bp_queue;

/* 64-bit monotonic counters with a sticky error. A poisoned one answers with its code; the text
 * is in last_error. */
typedef struct bp_timeline {
    bp_head head;
    int32_t (*create)(uint64_t device, uint64_t initial, uint64_t *timeline);
    /* from the host; must grow */
    int32_t (*signal)(uint64_t device, uint64_t timeline, uint64_t value);
    /* the value is written even when poisoned */
    int32_t (*query)(uint64_t device, uint64_t timeline, uint64_t *value);
    /* absolute CLOCK_MONOTONIC time; 0 polls */
    int32_t (*wait_host)(uint64_t device, uint64_t timeline, uint64_t value, uint64_t deadline_ns);
    /* waiters wake with BP_CANCELLED */
    int32_t (*destroy)(uint64_t device, uint64_t timeline);
    uint64_t reserved[4];
} bp_timeline;

/* Code. */
typedef struct bp_module {
    bp_head head;
    int32_t (*load)(uint64_t device, const bp_module_source *source, uint64_t *module);
    int32_t (*info)(uint64_t device, uint64_t module, bp_module_info *out);
    /* valid until unload; not released alone */
    int32_t (*kernel)(uint64_t device, uint64_t module, const bp_text *name, uint64_t *kernel);
    int32_t (*kernel_info)(uint64_t device, uint64_t kernel, bp_kernel_info *out);
    /* stale at once; code stays until running batches are done */
    int32_t (*unload)(uint64_t device, uint64_t module);
    uint64_t reserved[4];
} bp_module;

/* Recorded work that is launched as one. A graph holds addresses and no handles: the memory,
 * modules and plans that its commands use must outlive its last launch. */
typedef struct bp_capture {
    bp_head head;
    int32_t (*begin)(uint64_t device, uint64_t queue);
    int32_t (*end)(uint64_t device, uint64_t queue, uint64_t *graph);
    /* waits and signals of an otherwise empty batch */
    int32_t (*launch)(uint64_t device, uint64_t queue, uint64_t graph, const bp_batch *fences);
    int32_t (*release)(uint64_t device, uint64_t graph);
    uint64_t reserved[4];
} bp_capture;

/* What a backend answers. The loader hands the host a copy without null tables or slots. */
typedef struct bp_api {
    bp_head head;
    uint32_t major;
    /* from the loader: the smaller of both sides */
    uint32_t minor;
    const bp_core *core;
    const bp_mem *mem;
    const bp_queue *queue;
    const bp_timeline *timeline;
    const bp_module *module;
    const bp_capture *capture;
    /* a table by name, or null */
    const void *(*ext)(const bp_text *name);
    uint64_t reserved[4];
} bp_api;

/* Where a native kernel says what went wrong; shared by all workers of a launch, the first to
 * claim it writes. */
typedef struct bp_native_fault {
    bp_head head;
    /* set from 0 to 1 atomically by the writer */
    uint32_t claimed;
    /* negative */
    int32_t status;
    /* flattened block */
    uint64_t block;
    /* the offending value */
    uint64_t value;
    /* one sentence, terminated */
    char text[192];
    uint64_t reserved[4];
} bp_native_fault;

/* None yet. */
typedef struct bp_matmul_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_matmul_attributes;

/* Precision class of the product. */
typedef struct bp_quantized_matmul_attributes {
    bp_head head;
    /* BP_ACTIVATION_* */
    uint32_t activation;
    uint32_t pad;
    uint64_t reserved[4];
} bp_quantized_matmul_attributes;

/* out = x * weight / sqrt(mean(x^2) + eps). */
typedef struct bp_rmsnorm_attributes {
    bp_head head;
    float eps;
    uint32_t pad;
    uint64_t reserved[4];
} bp_rmsnorm_attributes;

/* Angle = position * inverse_frequency; the rotated values are multiplied by scale. */
typedef struct bp_rope_attributes {
    bp_head head;
    /* BP_ROPE_* */
    uint32_t pairing;
    /* 1 for none */
    float scale;
    uint64_t reserved[4];
} bp_rope_attributes;

/* Causal attention over blocks. */
typedef struct bp_paged_attention_attributes {
    bp_head head;
    /* multiplies q.k */
    float scale;
    /* positions seen, own included; 0 is all */
    uint32_t sliding_window;
    /* c * tanh(s / c); 0 is none */
    float soft_cap;
    uint32_t pad;
    uint64_t reserved[4];
} bp_paged_attention_attributes;

/* Over the last dimension. */
typedef struct bp_softmax_attributes {
    bp_head head;
    /* multiplies x first; 1 for none */
    float scale;
    uint32_t pad;
    uint64_t reserved[4];
} bp_softmax_attributes;

/* None yet. */
typedef struct bp_silu_mul_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_silu_mul_attributes;

/* None yet. */
typedef struct bp_embedding_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_embedding_attributes;

/* None yet; each row carries its own bp_sample_row. */
typedef struct bp_sample_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_sample_attributes;

/* None yet. */
typedef struct bp_kv_write_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_kv_write_attributes;

/* None yet. */
typedef struct bp_block_copy_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_block_copy_attributes;

/* Sum over the last dimension. */
typedef struct bp_reduce_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_reduce_attributes;

/* None yet. */
typedef struct bp_convert_attributes {
    bp_head head;
    uint64_t reserved[4];
} bp_convert_attributes;

/* Library calls. A plan answers for exact shapes; an absent optional tensor is a null pointer. */
typedef struct bp_ops {
    bp_head head;
    int32_t (*plan)(uint64_t device, uint32_t op, const bp_tensor *const*tensors, uint32_t count, const void *attributes, uint64_t attribute_bytes, bp_op_plan *out);
    int32_t (*release)(uint64_t device, uint64_t plan);
    uint64_t reserved[4];
} bp_ops;

/* Descriptors for bulk copies of tiles. A map is plain bytes that hold an address: it works
 * while the memory lives, as the first argument of a kernel (BP_ARGUMENT_BYTES) or copied into
 * device memory at a multiple of 64. */
typedef struct bp_tensor_maps {
    bp_head head;
    /* writes BP_TENSOR_MAP_BYTES at map, which is aligned to 64 */
    int32_t (*encode)(uint64_t device, const bp_tensor_map_info *info, void *map);
    uint64_t reserved[4];
} bp_tensor_maps;

#if defined(__GNUC__)
#define BP_EXPORT __attribute__((visibility("default")))
#else
#define BP_EXPORT
#endif

/* The one symbol a backend exports. Before it is called the library does nothing. */
BP_EXPORT int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted_major, const bp_api **out);

/* The one symbol a native module exports. */
BP_EXPORT int32_t bedplate_native_module_query(uint32_t wanted_major, const bp_native_module **out);

#ifdef __cplusplus
}
#endif

#endif /* BEDPLATE_HAL_H */

// Generated from native/hal/spec.toml by python -m bedplate.hal.spec; do not edit.
//! The C ABI of the HAL, as Rust sees it.

#![allow(dead_code)]

use std::ffi::c_void;
use std::mem::size_of;

pub const BP_ABI_MAJOR: u32 = 0;
pub const BP_ABI_MINOR: u32 = 4;

// What every function returns: 0, or one of these. The text is in core.last_error of the same thread.
/// done
pub const BP_OK: i32 = 0;
/// an argument is wrong: stale handle, range past the end, overflow, bad shape
pub const BP_INVALID_ARGUMENT: i32 = -1;
/// a reserved word or the unknown tail of a struct is not zero
pub const BP_INVALID_EXT: i32 = -2;
/// this backend does not have that function or that variant
pub const BP_UNSUPPORTED: i32 = -3;
/// the backend exists but cannot work here: library, driver or instruction set missing
pub const BP_UNAVAILABLE: i32 = -4;
/// device or host memory is exhausted
pub const BP_OUT_OF_MEMORY: i32 = -5;
/// no such device, module, kernel or table
pub const BP_NOT_FOUND: i32 = -6;
/// the deadline passed before the condition held
pub const BP_DEADLINE: i32 = -7;
/// the device is gone; everything on it is poisoned
pub const BP_DEVICE_LOST: i32 = -8;
/// a kernel or op refused or failed while it ran
pub const BP_LAUNCH_FAULT: i32 = -9;
/// the queue or timeline was destroyed first
pub const BP_CANCELLED: i32 = -10;
/// the two sides have different majors
pub const BP_VERSION: i32 = -11;
/// a broken invariant of the backend
pub const BP_INTERNAL: i32 = -12;
/// the object is in use
pub const BP_BUSY: i32 = -13;

// Element types. DLPack's (code, bits, lanes) packed as code | bits << 8 | lanes << 16; codes from 128 are GGUF blocks of 32 elements.
/// IEEE binary32
pub const BP_DTYPE_F32: u32 = 0x00012002;
/// IEEE binary16
pub const BP_DTYPE_F16: u32 = 0x00011002;
/// bfloat16
pub const BP_DTYPE_BF16: u32 = 0x00011004;
/// signed 8-bit
pub const BP_DTYPE_I8: u32 = 0x00010800;
/// signed 32-bit
pub const BP_DTYPE_I32: u32 = 0x00012000;
/// signed 64-bit
pub const BP_DTYPE_I64: u32 = 0x00014000;
/// unsigned 8-bit
pub const BP_DTYPE_U8: u32 = 0x00010801;
/// unsigned 32-bit
pub const BP_DTYPE_U32: u32 = 0x00012001;
/// unsigned 64-bit
pub const BP_DTYPE_U64: u32 = 0x00014001;
/// GGUF Q4_0: 18 bytes per 32 elements
pub const BP_DTYPE_Q4_0: u32 = 0x00010480;
/// GGUF Q4_1: 20 bytes per 32 elements
pub const BP_DTYPE_Q4_1: u32 = 0x00010481;
/// GGUF Q8_0: 34 bytes per 32 elements
pub const BP_DTYPE_Q8_0: u32 = 0x00010882;

// The vocabulary of bp.ops.1; shapes and dtypes are in the ops table of the reference.
/// a [M,K], b [K,N], bias? [N], residual? [M,N], count? -> out [M,N]
pub const BP_OP_MATMUL: u32 = 1;
/// a [M,K], w [N,K] in GGUF rows, bias?, residual?, count? -> out [M,N]
pub const BP_OP_QUANTIZED_MATMUL: u32 = 2;
/// x [T,H], weight [H], count? -> out [T,H]
pub const BP_OP_RMSNORM: u32 = 3;
/// x [T,Heads,D] in place, positions [T], inverse_frequency [D/2], count?
pub const BP_OP_ROPE: u32 = 4;
/// q, k_cache, v_cache, block_table, query_start, context_length, sequence_count? -> out
pub const BP_OP_PAGED_ATTENTION: u32 = 5;
/// x [T,H], count? -> out [T,H]
pub const BP_OP_SOFTMAX: u32 = 6;
/// gate_up [T,2F], count? -> out [T,F]
pub const BP_OP_SILU_MUL: u32 = 7;
/// table [V,H], ids [T], count? -> out [T,H]
pub const BP_OP_EMBEDDING: u32 = 8;
/// logits [R,V], rows u8 [R,64], count? -> tokens [R], logprob? [R]
pub const BP_OP_SAMPLE: u32 = 9;
/// k, v [T,Hkv,D], slots [T], count?, k_cache, v_cache in place
pub const BP_OP_KV_WRITE: u32 = 10;
/// pairs [P,2], count?, k_cache, v_cache in place
pub const BP_OP_BLOCK_COPY: u32 = 11;
/// x [T,H], count? -> out [T]
pub const BP_OP_REDUCE: u32 = 12;
/// x [T,H], count? -> out [T,H] of another dtype
pub const BP_OP_CONVERT: u32 = 13;

// What a device can do beyond the mandatory tables. An uncertified one reads as absent.
/// mem.describe gives a raw device address
pub const BP_CAP_DEVICE_ADDRESS: u32 = 1;
/// mem.describe gives a host pointer to the same bytes
pub const BP_CAP_HOST_VISIBLE: u32 = 2;
/// timeline.wait_host sleeps instead of polling
pub const BP_CAP_TIMELINE_WAIT_HOST: u32 = 3;
/// module.load takes BP_MODULE_NATIVE
pub const BP_CAP_MODULE_NATIVE: u32 = 4;
/// module.load takes BP_MODULE_PTX
pub const BP_CAP_MODULE_PTX: u32 = 5;
/// module.load takes BP_MODULE_CUBIN
pub const BP_CAP_MODULE_CUBIN: u32 = 6;
/// module.load takes BP_MODULE_SPIRV
pub const BP_CAP_MODULE_SPIRV: u32 = 7;
/// module.load takes BP_MODULE_OPENCL_C
pub const BP_CAP_MODULE_OPENCL_C: u32 = 8;
/// ext gives the table bp.ops.1
pub const BP_CAP_OPS: u32 = 9;
/// the capture table works
pub const BP_CAP_CAPTURE: u32 = 10;
/// the timestamp command works
pub const BP_CAP_TIMESTAMP: u32 = 11;
/// mem.pin makes a handle over the caller's own memory, which copies and fills take; a device has this or BP_CAP_HOST_VISIBLE
pub const BP_CAP_PIN_HOST: u32 = 12;
/// mem.reserve, map and unmap work
pub const BP_CAP_ADDRESS_RESERVE: u32 = 13;
/// mem.export_memory works
pub const BP_CAP_EXPORT_MEMORY: u32 = 14;
/// mem.import_memory works
pub const BP_CAP_IMPORT_MEMORY: u32 = 15;
/// launches may ask for dynamic shared memory; value: most bytes. A kernel of OpenCL C takes it as one more argument behind the others, a __local pointer
pub const BP_CAP_DYNAMIC_SHARED: u32 = 16;
/// launches may ask for clusters; value: most blocks
pub const BP_CAP_CLUSTERS: u32 = 17;
/// ext gives the table bp.tensor_map.1
pub const BP_CAP_TENSOR_MAP: u32 = 18;

// How to read bp_capability.value.
/// value is 1
pub const BP_CAPABILITY_FLAG: u32 = 1;
/// value is a number
pub const BP_CAPABILITY_COUNT: u32 = 2;
/// value is a size in bytes
pub const BP_CAPABILITY_BYTES: u32 = 3;

// The kind in the prefix of every command.
/// bp_copy_command
pub const BP_COMMAND_COPY: u32 = 1;
/// bp_fill_command
pub const BP_COMMAND_FILL: u32 = 2;
/// bp_launch_command
pub const BP_COMMAND_LAUNCH: u32 = 3;
/// bp_op_command
pub const BP_COMMAND_OP: u32 = 4;
/// bp_timestamp_command
pub const BP_COMMAND_TIMESTAMP: u32 = 5;

// How one launch argument is given.
/// packed as an 8-byte device address, or given as the buffer that it is where devices have none; memory 0 is a null address. Pinned memory may be refused as BP_UNSUPPORTED
pub const BP_ARGUMENT_RANGE: u32 = 1;
/// packed as given, aligned to its own size up to 8
pub const BP_ARGUMENT_BYTES: u32 = 2;

// What module.load is given.
/// path of a shared object that exports bedplate_native_module_query
pub const BP_MODULE_NATIVE: u32 = 1;
/// PTX text
pub const BP_MODULE_PTX: u32 = 2;
/// a cubin or fatbin
pub const BP_MODULE_CUBIN: u32 = 3;
/// SPIR-V words
pub const BP_MODULE_SPIRV: u32 = 4;
/// OpenCL C text
pub const BP_MODULE_OPENCL_C: u32 = 5;

// Facts about a plan.
/// the same inputs give the same bits, whatever the thread count
pub const BP_OP_DETERMINISTIC: u32 = 1;
/// running it neither allocates nor reads host memory
pub const BP_OP_CAPTURABLE: u32 = 2;

// What memory must be able to do beside holding bytes.
/// mem.export_memory takes it; BP_UNSUPPORTED without BP_CAP_EXPORT_MEMORY
pub const BP_MEMORY_EXPORTABLE: u32 = 1;

// How memory crosses.
/// value is a file descriptor of this process
pub const BP_EXTERNAL_FILE_DESCRIPTOR: u32 = 1;

// How a tile's rows lie in shared memory: pieces of 16 bytes change places within this many bytes.
/// row after row
pub const BP_TENSOR_MAP_SWIZZLE_NONE: u32 = 0;
/// within 32 bytes
pub const BP_TENSOR_MAP_SWIZZLE_32: u32 = 1;
/// within 64 bytes
pub const BP_TENSOR_MAP_SWIZZLE_64: u32 = 2;
/// within 128 bytes
pub const BP_TENSOR_MAP_SWIZZLE_128: u32 = 3;

// Levels of bp_host.log.
/// something failed
pub const BP_LOG_ERROR: u32 = 1;
/// something is odd
pub const BP_LOG_WARNING: u32 = 2;
/// something happened
pub const BP_LOG_INFO: u32 = 3;
/// everything
pub const BP_LOG_DEBUG: u32 = 4;

// Which two elements rope rotates together.
/// i with i + D/2
pub const BP_ROPE_HALF_SPLIT: u32 = 0;
/// 2i with 2i + 1
pub const BP_ROPE_ADJACENT: u32 = 1;

// How quantized_matmul treats a.
/// stays float; weights are dequantised
pub const BP_ACTIVATION_FLOAT: u32 = 0;
/// quantised to int8 blocks of 32
pub const BP_ACTIVATION_INT8: u32 = 1;

// Sizes fixed by the ABI.
/// most dimensions of a tensor
pub const BP_MAX_RANK: u32 = 8;
/// most tensors of an op
pub const BP_MAX_OP_TENSORS: u32 = 16;
/// room for a kernel's own sentence in bp_native_fault
pub const BP_FAULT_TEXT_BYTES: u32 = 192;
/// most packed parameter bytes of one launch
pub const BP_MAX_LAUNCH_PARAMETER_BYTES: u32 = 4096;
/// size of a tensor map
pub const BP_TENSOR_MAP_BYTES: u32 = 128;
/// most dimensions of a tensor map
pub const BP_MAX_TENSOR_MAP_RANK: u32 = 5;

/// First field of every struct that may grow. The callee reads the smaller of both sizes, takes the rest as zero, writes at most the caller's size.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpHead {
    /// 1
    pub struct_version: u32,
    /// bytes the caller knows of the whole struct; a multiple of 8
    pub struct_size: u32,
}

/// UTF-8 text without a terminator. Text returned by a backend lives as long as the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpText {
    /// first byte; may be null when length is 0
    pub data: *const u8,
    /// bytes
    pub length: u64,
}

/// A point on a timeline.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpFence {
    /// handle
    pub timeline: u64,
    /// reached when the timeline is at or past it
    pub value: u64,
}

/// A span of one memory object.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpRange {
    /// handle
    pub memory: u64,
    /// bytes
    pub offset: u64,
    /// bytes
    pub length: u64,
}

/// One claim of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpCapability {
    /// BP_CAP_*
    pub id: u32,
    /// BP_CAPABILITY_*
    pub r#type: u32,
    /// by type
    pub value: u64,
}

/// One fact about a device, as text.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpProperty {
    /// dotted name, e.g. cpu.isa
    pub key: BpText,
    /// its value
    pub value: BpText,
}

/// One argument of a launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpArgument {
    /// BP_ARGUMENT_*
    pub kind: u32,
    /// length of data for BP_ARGUMENT_BYTES
    pub bytes: u32,
    /// for BP_ARGUMENT_RANGE
    pub range: BpRange,
    /// for BP_ARGUMENT_BYTES; read during submit only
    pub data: *const c_void,
}

/// The prefix all commands share. A batch holds pointers to commands, so each kind grows alone.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpCommand {
    /// size of the whole command
    pub head: BpHead,
    /// BP_COMMAND_*
    pub kind: u32,
    /// 0
    pub flags: u32,
}

/// How to sample one row, as it lies in device memory: 64 bytes, zero padded.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpSampleRow {
    /// 0 is greedy
    pub temperature: f32,
    /// 1 is off
    pub top_p: f32,
    /// 0 is off
    pub min_p: f32,
    /// 0 is off
    pub top_k: u32,
    /// Philox key
    pub seed: u64,
    /// Philox counter; 0 is the first generated token
    pub token_index: u64,
    /// 0
    pub padding: [u64; 4],
}

/// What the host offers a backend. Every slot may be null before the loader has filled it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpHost {
    pub head: BpHead,
    /// given back to each callback
    pub user: *mut c_void,
    /// one line of text, no newline
    pub log: Option<unsafe extern "C" fn(*mut c_void, u32, *const BpText)>,
    /// a host table by name, or null
    pub service: Option<unsafe extern "C" fn(*mut c_void, *const BpText) -> *const c_void>,
    pub reserved: [u64; 4],
}

/// Facts about one device, known without opening it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpDeviceProperties {
    pub head: BpHead,
    /// what people call it
    pub name: BpText,
    /// version of what drives it; part of a certificate's key
    pub driver: BpText,
    /// total
    pub memory_bytes: u64,
    /// array
    pub properties: *const BpProperty,
    pub property_count: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// What to load. Path and data are read during the call only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpModuleSource {
    pub head: BpHead,
    /// BP_MODULE_*
    pub kind: u32,
    pub pad: u32,
    /// for native: absolute path
    pub path: BpText,
    /// for the others: the image
    pub data: *const c_void,
    /// of data
    pub bytes: u64,
    pub reserved: [u64; 4],
}

/// Device memory that a launch may touch, by its device address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeWindow {
    /// device address
    pub base: u64,
    /// size
    pub bytes: u64,
    /// the same bytes for the host
    pub host: *mut c_void,
}

/// What a native kernel entry is given; the same for `cpu` and `simt`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeLaunch {
    pub head: BpHead,
    /// packed arguments
    pub parameters: *const c_void,
    pub parameters_bytes: u64,
    /// blocks, x fastest
    pub grid: [u32; 3],
    /// threads
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    /// index of the calling worker
    pub worker: u32,
    /// this worker's dynamic_shared_bytes, aligned to 64; null when 0
    pub shared: *mut c_void,
    /// instruction budget; 0 is none
    pub budget: u64,
    /// becomes non-zero when the work is not wanted any more; may be null
    pub cancel: *const u32,
    /// a bp_native_fault, or null
    pub fault: *mut c_void,
    /// or null
    pub counters: *mut u64,
    /// or null
    pub printf_ring: *mut c_void,
    pub reserved: [u64; 4],
    /// all device memory, ascending, none overlapping; null where kernels are not held to it; since 0.4
    pub windows: *const BpNativeWindow,
    /// windows; since 0.4
    pub window_count: u64,
}

/// Runs blocks [first_block, first_block + block_count) of the flattened grid; 0 or a negative status. Called from several threads at once.
pub type BpNativeEntry = Option<unsafe extern "C" fn(*const BpNativeLaunch, u64, u64) -> i32>;

/// One kernel of a native module.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeKernel {
    pub name: BpText,
    pub entry: BpNativeEntry,
}

/// What a native kernel asks of its launches; others are refused when they are submitted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeFacts {
    /// at least 1
    pub max_threads_per_block: u32,
    pub argument_count: u32,
    /// of its packed arguments
    pub parameters_bytes: u64,
    /// shared memory of its own, beside dynamic_shared_bytes
    pub static_shared_bytes: u64,
    /// the only block it takes; 0 in the first is any
    pub block: [u32; 3],
    /// 0
    pub pad: u32,
}

/// What bedplate_native_module_query answers; lives as long as the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeModule {
    pub head: BpHead,
    /// generic, avx2, avx512 or avx512_bf16
    pub isa: BpText,
    pub kernel_count: u32,
    pub pad: u32,
    /// array
    pub kernels: *const BpNativeKernel,
    pub reserved: [u64; 4],
    /// one for each kernel, or null when nothing is known; since 0.4
    pub facts: *const BpNativeFacts,
}

/// A machine that lives in the host's process, as bp_host.service gives it under `bp.provider.1:` and the backend's name. The backend has queues and memory; the machine turns sources into native entries, which launches call directly. Functions may be called from any thread, never by a launch. The table and its texts live until the process ends.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpProvider {
    pub head: BpHead,
    /// given back to each function
    pub user: *mut c_void,
    /// number of devices
    pub enumerate: Option<unsafe extern "C" fn(*mut c_void, *mut u32) -> i32>,
    pub properties: Option<unsafe extern "C" fn(*mut c_void, u32, *mut BpDeviceProperties) -> i32>,
    /// as in bp_core
    pub capabilities: Option<unsafe extern "C" fn(*mut c_void, u32, *mut BpCapability, u32, *mut u32) -> i32>,
    /// compiles; the module lives until unload
    pub load: Option<unsafe extern "C" fn(*mut c_void, u32, *const BpModuleSource, *mut *const BpNativeModule, *mut u64) -> i32>,
    /// no launch of the module runs or will run
    pub unload: Option<unsafe extern "C" fn(*mut c_void, u64) -> i32>,
    /// as in bp_core
    pub last_error: Option<unsafe extern "C" fn(*mut c_void, *mut u8, u64, *mut u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Asked of mem.create (bytes, alignment) and answered by mem.describe (all of it).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpMemoryInfo {
    pub head: BpHead,
    /// size; at least 1
    pub bytes: u64,
    /// power of two; 0 is the device's own
    pub alignment: u64,
    /// device address under BP_CAP_DEVICE_ADDRESS, else 0
    pub address: u64,
    /// host pointer under BP_CAP_HOST_VISIBLE, else null
    pub host: *mut c_void,
    pub reserved: [u64; 4],
    /// BP_MEMORY_*; since 0.3
    pub flags: u32,
    pub pad: u32,
}

/// Memory that crosses to another owner: another open, device or process. The descriptor that export gives is the caller's to close; import looks at it during the call only. The bytes live until the last owner releases them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpExternal {
    pub head: BpHead,
    /// BP_EXTERNAL_*
    pub kind: u32,
    pub pad: u32,
    /// the descriptor
    pub value: u64,
    /// size
    pub bytes: u64,
    pub reserved: [u64; 4],
}

/// How to make a queue.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpQueueInfo {
    pub head: BpHead,
    /// 0 is normal; higher may run first
    pub priority: i32,
    /// 0
    pub flags: u32,
    pub reserved: [u64; 4],
}

/// What was loaded.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpModuleInfo {
    pub head: BpHead,
    /// instruction set it was built for
    pub isa: BpText,
    /// names, array
    pub kernels: *const BpText,
    pub kernel_count: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// What is known of a kernel.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpKernelInfo {
    pub head: BpHead,
    pub name: BpText,
    pub max_threads_per_block: u32,
    /// per thread; 0 is unknown
    pub registers: u32,
    pub static_shared_bytes: u64,
    pub reserved: [u64; 4],
}

/// Copies between two ranges, of the device or pinned: the way between host and device where the host sees no device memory. Lengths are equal, ranges do not overlap.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpCopyCommand {
    pub head: BpHead,
    pub kind: u32,
    /// 0
    pub flags: u32,
    pub destination: BpRange,
    pub source: BpRange,
    pub reserved: [u64; 4],
}

/// Repeats a pattern over a range whose length is a multiple of pattern_bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpFillCommand {
    pub head: BpHead,
    pub kind: u32,
    /// 0
    pub flags: u32,
    pub destination: BpRange,
    /// low bytes are used
    pub pattern: u32,
    /// 1, 2 or 4
    pub pattern_bytes: u32,
    pub reserved: [u64; 4],
}

/// Runs a kernel over a grid of blocks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpLaunchCommand {
    pub head: BpHead,
    pub kind: u32,
    /// 0
    pub flags: u32,
    /// handle
    pub kernel: u64,
    /// blocks; each at least 1
    pub grid: [u32; 3],
    /// threads; each at least 1
    pub block: [u32; 3],
    /// blocks per cluster; all 0 without BP_CAP_CLUSTERS
    pub cluster: [u32; 3],
    /// at most the value of BP_CAP_DYNAMIC_SHARED
    pub dynamic_shared_bytes: u32,
    /// array
    pub arguments: *const BpArgument,
    pub argument_count: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// Runs a plan of bp.ops.1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpOpCommand {
    pub head: BpHead,
    pub kind: u32,
    /// 0
    pub flags: u32,
    /// from bp_ops.plan
    pub plan: u64,
    /// one per tensor of the plan; memory 0 where it is absent
    pub bindings: *const BpRange,
    pub binding_count: u32,
    pub pad: u32,
    /// at least the plan's workspace_bytes; memory 0 when that is 0
    pub workspace: BpRange,
    pub reserved: [u64; 4],
}

/// Writes the device's monotonic clock, nanoseconds as u64, into 8 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpTimestampCommand {
    pub head: BpHead,
    pub kind: u32,
    /// 0
    pub flags: u32,
    /// 8 bytes, aligned to 8
    pub destination: BpRange,
    pub reserved: [u64; 4],
}

/// One submission: waits, then commands in order, then signals. Nothing in it is read after submit returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpBatch {
    pub head: BpHead,
    /// the caller's; echoed in logs and error text
    pub tag: u64,
    /// array
    pub wait: *const BpFence,
    /// array
    pub signal: *const BpFence,
    /// array of pointers
    pub commands: *const *const BpCommand,
    pub wait_count: u32,
    pub signal_count: u32,
    pub command_count: u32,
    /// 0
    pub flags: u32,
    pub reserved: [u64; 4],
}

/// A view of a range. Shape and stride are arrays of rank entries, read during the call only; strides count elements (blocks' rows: elements, a multiple of 32).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpTensor {
    pub head: BpHead,
    /// may be all zero while planning
    pub range: BpRange,
    /// BP_DTYPE_*
    pub dtype: u32,
    /// 0 to BP_MAX_RANK
    pub rank: u32,
    /// elements
    pub shape: *const i64,
    /// elements; null is dense row-major
    pub stride: *const i64,
    pub reserved: [u64; 4],
}

/// Answer of bp_ops.plan.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpOpPlan {
    pub head: BpHead,
    /// handle
    pub plan: u64,
    /// what each op command must bring
    pub workspace_bytes: u64,
    /// BP_OP_*
    pub flags: u32,
    pub pad: u32,
    /// which code runs it
    pub library: BpText,
    pub reserved: [u64; 4],
}

/// What a tensor map is made for: tiles of a tensor that a kernel's bulk copies take. All arrays follow the tensor's dimensions, outermost first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpTensorMapInfo {
    pub head: BpHead,
    /// with its range; rank 1 to BP_MAX_TENSOR_MAP_RANK, dense in its last dimension
    pub tensor: *const BpTensor,
    /// elements of a tile in each dimension, 1 to 256
    pub tile: *const u32,
    /// elements from one to the next that is taken, 1 to 8; null is 1 everywhere
    pub step: *const u32,
    /// BP_TENSOR_MAP_SWIZZLE_*
    pub swizzle: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// Devices and errors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpCore {
    pub head: BpHead,
    /// number of devices; initialises none
    pub enumerate: Option<unsafe extern "C" fn(*mut u32) -> i32>,
    /// a device of its own: memory, queues and timelines are not shared between opens
    pub open: Option<unsafe extern "C" fn(u32, *mut u64) -> i32>,
    /// waits for its queues, then releases all of it
    pub close: Option<unsafe extern "C" fn(u64) -> i32>,
    /// without opening
    pub properties: Option<unsafe extern "C" fn(u32, *mut BpDeviceProperties) -> i32>,
    /// writes at most capacity, count is the true number
    pub capabilities: Option<unsafe extern "C" fn(u32, *mut BpCapability, u32, *mut u32) -> i32>,
    /// text of the calling thread's last failure, cut to capacity with its terminator; length is the true one. Either pointer may be null: nothing is written there, nor into a buffer of capacity 0
    pub last_error: Option<unsafe extern "C" fn(*mut u8, u64, *mut u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Memory. Released storage lives until every batch submitted before the release is done; its handle is stale at once.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpMem {
    pub head: BpHead,
    /// content undefined
    pub create: Option<unsafe extern "C" fn(u64, *const BpMemoryInfo, *mut u64) -> i32>,
    pub release: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub describe: Option<unsafe extern "C" fn(u64, u64, *mut BpMemoryInfo) -> i32>,
    /// address space without memory
    pub reserve: Option<unsafe extern "C" fn(u64, u64, u64, *mut u64) -> i32>,
    /// put memory behind reserved addresses
    pub map: Option<unsafe extern "C" fn(u64, u64, *const BpRange) -> i32>,
    pub unmap: Option<unsafe extern "C" fn(u64, u64, u64) -> i32>,
    /// a handle over the caller's memory, which must outlive it and the batches submitted with it
    pub pin: Option<unsafe extern "C" fn(u64, *mut c_void, u64, *mut u64) -> i32>,
    /// memory made with BP_MEMORY_EXPORTABLE
    pub export_memory: Option<unsafe extern "C" fn(u64, u64, *mut BpExternal) -> i32>,
    /// the same bytes as a memory of this device, whichever device they lie on; BP_UNSUPPORTED when it cannot reach them
    pub import_memory: Option<unsafe extern "C" fn(u64, *const BpExternal, *mut u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Ordered, asynchronous execution. A batch starts after the one before it is done.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpQueue {
    pub head: BpHead,
    pub create: Option<unsafe extern "C" fn(u64, *const BpQueueInfo, *mut u64) -> i32>,
    /// checks all of it first: a refused batch has no effect
    pub submit: Option<unsafe extern "C" fn(u64, u64, *const BpBatch) -> i32>,
    /// starts what was submitted; does not wait
    pub flush: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    /// cancels what waits or has more commands to run, waits for the command that runs
    pub destroy: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub reserved: [u64; 4],
}

/// 64-bit monotonic counters with a sticky error. A poisoned one answers with its code; the text is in last_error.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpTimeline {
    pub head: BpHead,
    pub create: Option<unsafe extern "C" fn(u64, u64, *mut u64) -> i32>,
    /// from the host; must grow
    pub signal: Option<unsafe extern "C" fn(u64, u64, u64) -> i32>,
    /// the value is written even when poisoned
    pub query: Option<unsafe extern "C" fn(u64, u64, *mut u64) -> i32>,
    /// absolute CLOCK_MONOTONIC time; 0 polls
    pub wait_host: Option<unsafe extern "C" fn(u64, u64, u64, u64) -> i32>,
    /// waiters wake with BP_CANCELLED
    pub destroy: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpModule {
    pub head: BpHead,
    pub load: Option<unsafe extern "C" fn(u64, *const BpModuleSource, *mut u64) -> i32>,
    pub info: Option<unsafe extern "C" fn(u64, u64, *mut BpModuleInfo) -> i32>,
    /// valid until unload; not released alone
    pub kernel: Option<unsafe extern "C" fn(u64, u64, *const BpText, *mut u64) -> i32>,
    pub kernel_info: Option<unsafe extern "C" fn(u64, u64, *mut BpKernelInfo) -> i32>,
    /// stale at once; code stays until running batches are done
    pub unload: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Recorded work that is launched as one. A graph holds addresses and no handles: the memory, modules and plans that its commands use must outlive its last launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpCapture {
    pub head: BpHead,
    pub begin: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub end: Option<unsafe extern "C" fn(u64, u64, *mut u64) -> i32>,
    /// waits and signals of an otherwise empty batch
    pub launch: Option<unsafe extern "C" fn(u64, u64, u64, *const BpBatch) -> i32>,
    pub release: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub reserved: [u64; 4],
}

/// What a backend answers. The loader hands the host a copy without null tables or slots.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpApi {
    pub head: BpHead,
    pub major: u32,
    /// from the loader: the smaller of both sides
    pub minor: u32,
    pub core: *const BpCore,
    pub mem: *const BpMem,
    pub queue: *const BpQueue,
    pub timeline: *const BpTimeline,
    pub module: *const BpModule,
    pub capture: *const BpCapture,
    /// a table by name, or null
    pub ext: Option<unsafe extern "C" fn(*const BpText) -> *const c_void>,
    pub reserved: [u64; 4],
}

/// Where a native kernel says what went wrong; shared by all workers of a launch, the first to claim it writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpNativeFault {
    pub head: BpHead,
    /// set from 0 to 1 atomically by the writer
    pub claimed: u32,
    /// negative
    pub status: i32,
    /// flattened block
    pub block: u64,
    /// the offending value
    pub value: u64,
    /// one sentence, terminated
    pub text: [u8; 192],
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpMatmulAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// Precision class of the product.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpQuantizedMatmulAttributes {
    pub head: BpHead,
    /// BP_ACTIVATION_*
    pub activation: u32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// out = x * weight / sqrt(mean(x^2) + eps).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpRmsnormAttributes {
    pub head: BpHead,
    pub eps: f32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// Angle = position * inverse_frequency; the rotated values are multiplied by scale.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpRopeAttributes {
    pub head: BpHead,
    /// BP_ROPE_*
    pub pairing: u32,
    /// 1 for none
    pub scale: f32,
    pub reserved: [u64; 4],
}

/// Causal attention over blocks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpPagedAttentionAttributes {
    pub head: BpHead,
    /// multiplies q.k
    pub scale: f32,
    /// positions seen, own included; 0 is all
    pub sliding_window: u32,
    /// c * tanh(s / c); 0 is none
    pub soft_cap: f32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// Over the last dimension.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpSoftmaxAttributes {
    pub head: BpHead,
    /// multiplies x first; 1 for none
    pub scale: f32,
    pub pad: u32,
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpSiluMulAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpEmbeddingAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// None yet; each row carries its own bp_sample_row.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpSampleAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpKvWriteAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpBlockCopyAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// Sum over the last dimension.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpReduceAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// None yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpConvertAttributes {
    pub head: BpHead,
    pub reserved: [u64; 4],
}

/// What to load. The caller has decided that the file may be trusted; the loader only opens it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpLoadOptions {
    pub head: BpHead,
    /// absolute path of the library
    pub path: BpText,
    /// null is the loader's own, which logs to stderr when BEDPLATE_HAL_LOG is set
    pub host: *const BpHost,
    /// wanted; 0 with minor 0 is this build's
    pub major: u32,
    pub minor: u32,
    pub reserved: [u64; 4],
    /// of the file that was checked: it is loaded, whatever lies at path by now; 0 is none
    pub descriptor: i32,
    pub pad: u32,
}

/// Library calls. A plan answers for exact shapes; an absent optional tensor is a null pointer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpOps {
    pub head: BpHead,
    pub plan: Option<unsafe extern "C" fn(u64, u32, *const *const BpTensor, u32, *const c_void, u64, *mut BpOpPlan) -> i32>,
    pub release: Option<unsafe extern "C" fn(u64, u64) -> i32>,
    pub reserved: [u64; 4],
}

/// Descriptors for bulk copies of tiles. A map is plain bytes that hold an address: it works while the memory lives, as the first argument of a kernel (BP_ARGUMENT_BYTES) or copied into device memory at a multiple of 64.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BpTensorMaps {
    pub head: BpHead,
    /// writes BP_TENSOR_MAP_BYTES at map, which is aligned to 64
    pub encode: Option<unsafe extern "C" fn(u64, *const BpTensorMapInfo, *mut c_void) -> i32>,
    pub reserved: [u64; 4],
}

const _: () = assert!(size_of::<BpHead>() == 8);
const _: () = assert!(size_of::<BpText>() == 16);
const _: () = assert!(size_of::<BpFence>() == 16);
const _: () = assert!(size_of::<BpRange>() == 24);
const _: () = assert!(size_of::<BpCapability>() == 16);
const _: () = assert!(size_of::<BpProperty>() == 32);
const _: () = assert!(size_of::<BpArgument>() == 40);
const _: () = assert!(size_of::<BpCommand>() == 16);
const _: () = assert!(size_of::<BpSampleRow>() == 64);
const _: () = assert!(size_of::<BpHost>() == 64);
const _: () = assert!(size_of::<BpDeviceProperties>() == 96);
const _: () = assert!(size_of::<BpModuleSource>() == 80);
const _: () = assert!(size_of::<BpNativeWindow>() == 24);
const _: () = assert!(size_of::<BpNativeLaunch>() == 152);
const _: () = assert!(size_of::<BpNativeKernel>() == 24);
const _: () = assert!(size_of::<BpNativeFacts>() == 40);
const _: () = assert!(size_of::<BpNativeModule>() == 80);
const _: () = assert!(size_of::<BpProvider>() == 96);
const _: () = assert!(size_of::<BpMemoryInfo>() == 80);
const _: () = assert!(size_of::<BpExternal>() == 64);
const _: () = assert!(size_of::<BpQueueInfo>() == 48);
const _: () = assert!(size_of::<BpModuleInfo>() == 72);
const _: () = assert!(size_of::<BpKernelInfo>() == 72);
const _: () = assert!(size_of::<BpCopyCommand>() == 96);
const _: () = assert!(size_of::<BpFillCommand>() == 80);
const _: () = assert!(size_of::<BpLaunchCommand>() == 112);
const _: () = assert!(size_of::<BpOpCommand>() == 96);
const _: () = assert!(size_of::<BpTimestampCommand>() == 72);
const _: () = assert!(size_of::<BpBatch>() == 88);
const _: () = assert!(size_of::<BpTensor>() == 88);
const _: () = assert!(size_of::<BpOpPlan>() == 80);
const _: () = assert!(size_of::<BpTensorMapInfo>() == 72);
const _: () = assert!(size_of::<BpCore>() == 88);
const _: () = assert!(size_of::<BpMem>() == 112);
const _: () = assert!(size_of::<BpQueue>() == 72);
const _: () = assert!(size_of::<BpTimeline>() == 80);
const _: () = assert!(size_of::<BpModule>() == 80);
const _: () = assert!(size_of::<BpCapture>() == 72);
const _: () = assert!(size_of::<BpApi>() == 104);
const _: () = assert!(size_of::<BpNativeFault>() == 256);
const _: () = assert!(size_of::<BpMatmulAttributes>() == 40);
const _: () = assert!(size_of::<BpQuantizedMatmulAttributes>() == 48);
const _: () = assert!(size_of::<BpRmsnormAttributes>() == 48);
const _: () = assert!(size_of::<BpRopeAttributes>() == 48);
const _: () = assert!(size_of::<BpPagedAttentionAttributes>() == 56);
const _: () = assert!(size_of::<BpSoftmaxAttributes>() == 48);
const _: () = assert!(size_of::<BpSiluMulAttributes>() == 40);
const _: () = assert!(size_of::<BpEmbeddingAttributes>() == 40);
const _: () = assert!(size_of::<BpSampleAttributes>() == 40);
const _: () = assert!(size_of::<BpKvWriteAttributes>() == 40);
const _: () = assert!(size_of::<BpBlockCopyAttributes>() == 40);
const _: () = assert!(size_of::<BpReduceAttributes>() == 40);
const _: () = assert!(size_of::<BpConvertAttributes>() == 40);
const _: () = assert!(size_of::<BpLoadOptions>() == 80);
const _: () = assert!(size_of::<BpOps>() == 56);
const _: () = assert!(size_of::<BpTensorMaps>() == 48);

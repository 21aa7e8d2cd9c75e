// SPDX-License-Identifier: MIT
// Rotates Q and K in host memory on the best Vulkan device, through the C interface. Then records
// calls with kernels of its own, one for all calls whose infos are equal: a layer without RoPE with
// second destinations, a latent row, keys that move in a cache, int4 with scales of groups.
//
// The program uses structs that the library makes only through pointers; it declares all fields of
// structs that it makes itself.
use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr};
use std::hash::{Hash, Hasher};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Error {
    code: i32,
    vk_result: i32,
    what: [c_char; 240],
}

/// The first field of vkrope_device_info.
#[repr(C)]
struct DeviceInfo {
    name: *const c_char,
}

/// The same as vkrope_host_shape.
#[repr(C)]
struct HostShape {
    batch: u32,
    tokens: u32,
    heads: [u32; 3],
    head_dim: [u32; 3],
    element: u32,
    layout: u32,
    positions: *const i32,
    position_count: usize,
    axes: u32,
    first_position: i32,
    angles: u32,
    mapping: u32,
    conversion: u32,
    in_place: u32,
}

type Handle = *mut c_void;

/// VkDescriptorBufferInfo.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Part {
    buffer: u64,
    offset: u64,
    range: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Norm {
    kind: u32,
    span: u32,
    place: u32,
    eps: f32,
    weight: u32,
    weight_offset: u32,
    bias: u32,
    round_between: u32,
    first_channel: u32,
    channels: u32,
    weight_bound: u32,
    weight_type: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Ops {
    bias: u32,
    norm: Norm,
    clip: f32,
    scale: f32,
    scale_call: u32,
    scale_tokens: u32,
    hadamard: u32,
    store_scale: u32,
    scale_floor: f32,
    scale_layout: u32,
    hadamard_of_input: u32,
    store_scale_group: u32,
    scale_type: u32,
    scales_in: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct TensorInfo {
    input: u32,
    output: u32,
    head_dim: u32,
    rotary_offset: u32,
    heads: u32,
    ops: Ops,
    second_of: u32,
    second: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelInfo {
    pairing: u32,
    rotary_dim: u32,
    tensor: [TensorInfo; 3],
    angles: u32,
    positions: u32,
    mapping: u32,
    tuning: [u32; 3],
    pairing_out: u32,
    scatter_kv: u32,
    gather_kv: u32,
    windows: [[u32; 2]; 4],
    sections: [u32; 11],
    phase: u32,
    head_groups: u32,
    table: u32,
    channel_angles: u32,
    conversion: u32,
    two_parameter_sets: u32,
    token_count: u32,
}

impl PartialEq for KernelInfo {
    fn eq(&self, other: &Self) -> bool {
        unsafe { vkrope_kernel_info_equal(self, other) != 0 }
    }
}
impl Eq for KernelInfo {}
impl Hash for KernelInfo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(unsafe { vkrope_kernel_info_hash(self) });
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Tensor {
    place: Part,
    heads: u32,
    token_stride: i64,
    head_stride: i64,
    batch_stride: i64,
    heads_per_group: u32,
    group_stride: i64,
    buffer_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Positions {
    first: i32,
    ids: Part,
    int64: u32,
    strides: [i64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Angles {
    layout: usize,
    view: u64,
    buffer: Part,
    sin: Part,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PagedCache {
    slot_mapping: Part,
    source_mapping: Part,
    v_mappings: [Part; 2],
    int64: u32,
    page_size: u32,
    strides: [i64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Call {
    batch: u32,
    tokens: u32,
    input: [Tensor; 3],
    output: [Tensor; 3],
    positions: Positions,
    angles: Angles,
    direction: u32,
    gain: u32,
    paged_cache: PagedCache,
    token_count: Part,
    out_of_range: Part,
    parameters: Part,
    first_set_tokens: u32,
    q_scale: f32,
    scale_tokens: [Part; 3],
    scales_out: [Part; 3],
    scales_in: [Part; 3],
    second: [Part; 3],
    norm_weight: [Part; 3],
}

/// The first fields of vkrope_device_ref.
#[repr(C)]
struct DeviceRef {
    handles: [usize; 4],
    enabled: u32,
}

type Recorder = extern "C" fn(user: *const c_void, commands: Handle, error: *mut Error) -> i32;

extern "C" {
    fn vkrope_model_from_hf_config(
        json: *const c_char,
        bytes: usize,
        query: *const c_void,
        model: *mut Handle,
        error: *mut Error,
    ) -> i32;
    fn vkrope_model_get_params(model: Handle) -> *const c_void;
    fn vkrope_model_destroy(model: Handle);
    fn vkrope_device_open(options: *const c_void, device: *mut Handle, error: *mut Error) -> i32;
    fn vkrope_device_get_info(device: Handle) -> *const DeviceInfo;
    fn vkrope_device_destroy(device: Handle);
    fn vkrope_host_rotation_create(
        device: Handle,
        rotation: *const c_void,
        shape: *const HostShape,
        made: *mut Handle,
        error: *mut Error,
    ) -> i32;
    fn vkrope_host_rotation_upload(
        made: Handle,
        q: *const f32,
        k: *const f32,
        v: *const f32,
        error: *mut Error,
    ) -> i32;
    fn vkrope_host_rotation_run(
        made: Handle,
        run: *const c_void,
        nanoseconds: *mut f64,
        error: *mut Error,
    ) -> i32;
    fn vkrope_host_rotation_download(
        made: Handle,
        q: *mut f32,
        k: *mut f32,
        v: *mut f32,
        error: *mut Error,
    ) -> i32;
    fn vkrope_host_rotation_destroy(made: Handle);
    fn vkrope_device_get_ref(device: Handle) -> *const DeviceRef;
    fn vkrope_device_submit(
        device: Handle,
        record: Recorder,
        user: *const c_void,
        nanoseconds: *mut f64,
        error: *mut Error,
    ) -> i32;
    fn vkrope_buffer_create(
        device: Handle,
        bytes: u64,
        made: *mut Handle,
        error: *mut Error,
    ) -> i32;
    fn vkrope_buffer_whole(buffer: Handle) -> Part;
    fn vkrope_buffer_upload(
        buffer: Handle,
        source: *const u8,
        bytes: usize,
        offset: u64,
        error: *mut Error,
    ) -> i32;
    fn vkrope_buffer_download(
        buffer: Handle,
        target: *mut u8,
        bytes: usize,
        offset: u64,
        error: *mut Error,
    ) -> i32;
    fn vkrope_buffer_destroy(buffer: Handle);
    fn vkrope_angle_table_create(
        device: Handle,
        rotation: *const c_void,
        source: u32,
        max_position: u64,
        made: *mut Handle,
        error: *mut Error,
    ) -> i32;
    fn vkrope_angle_table_get(table: Handle) -> *const Angles;
    fn vkrope_angle_table_destroy(table: Handle);
    fn vkrope_kernel_create(
        device: *const DeviceRef,
        info: *const KernelInfo,
        made: *mut Handle,
        error: *mut Error,
    ) -> i32;
    fn vkrope_kernel_destroy(kernel: Handle);
    fn vkrope_kernel_info_equal(a: *const KernelInfo, b: *const KernelInfo) -> u32;
    fn vkrope_kernel_info_hash(info: *const KernelInfo) -> u64;
    fn vkrope_arena_create(kernel: Handle, calls: u32, made: *mut Handle, error: *mut Error)
        -> i32;
    fn vkrope_arena_destroy(arena: Handle);
    fn vkrope_get_dispatches(
        kernel: Handle,
        call: *const Call,
        dispatches: *mut u64,
        error: *mut Error,
    ) -> i32;
    fn vkrope_record(
        commands: Handle,
        kernel: Handle,
        call: *const Call,
        arena: Handle,
        error: *mut Error,
    ) -> i32;
}

/// Returns the error of a call as a Rust error.
fn check(call: impl FnOnce(*mut Error) -> i32) -> Result<(), String> {
    let mut error = Error {
        code: 0,
        vk_result: 0,
        what: [0; 240],
    };
    match call(&mut error) {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(error.what.as_ptr()) }
            .to_string_lossy()
            .into_owned()),
    }
}

/// An object of the library, and the function that destroys it.
struct Owned(Handle, unsafe extern "C" fn(Handle));

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.1)(self.0) }
    }
}

fn make(
    destroy: unsafe extern "C" fn(Handle),
    create: impl FnOnce(*mut Handle, *mut Error) -> i32,
) -> Result<Owned, String> {
    let mut handle = null_mut();
    check(|error| create(&mut handle, error))?;
    Ok(Owned(handle, destroy))
}

const HALF_SPLIT: u32 = 1;
const Q8_0: u32 = 6;
const IQ4_NL: u32 = 11;
const INT4: u32 = 12;
const POSITIONS_IDS: u32 = 1;
const GAIN_OMIT: u32 = 1;
const STORE_SCALE_MADE: u32 = 3;
const FACTORED_TEXTURE: u32 = 1;
const RMS: u32 = 1;
const SECOND_RESULT: u32 = 1;
const SECOND_INPUT: u32 = 2;
const PUSH_DESCRIPTOR: u32 = 1;
const K: usize = 1;
const V: usize = 2;

struct Work {
    kernel: Handle,
    arena: Handle,
    call: Call,
}

extern "C" fn record(user: *const c_void, commands: Handle, error: *mut Error) -> i32 {
    let work = unsafe { &*user.cast::<Work>() };
    unsafe { vkrope_record(commands, work.kernel, &work.call, work.arena, error) }
}

/// A device and its kernels.
struct Engine {
    device: Handle,
    kernels: HashMap<KernelInfo, Owned>,
}

impl Engine {
    fn kernel(&mut self, info: &KernelInfo) -> Result<Handle, String> {
        if let Some(kernel) = self.kernels.get(info) {
            return Ok(kernel.0);
        }
        let kernel = make(vkrope_kernel_destroy, |made, error| unsafe {
            vkrope_kernel_create(vkrope_device_get_ref(self.device), info, made, error)
        })?;
        let handle = kernel.0;
        self.kernels.insert(*info, kernel);
        Ok(handle)
    }
}

/// Runs a call whose parts are all in `memory`.
fn submit(
    engine: &mut Engine,
    info: &KernelInfo,
    call: &Call,
    memory: &mut [u8],
) -> Result<(), String> {
    let device = engine.device;
    let buffer = make(vkrope_buffer_destroy, |made, error| unsafe {
        vkrope_buffer_create(device, memory.len() as u64, made, error)
    })?;
    let handle = unsafe { vkrope_buffer_whole(buffer.0) }.buffer;
    let mut call = *call;
    let tensors = call.input.iter_mut().chain(call.output.iter_mut());
    let parts = tensors.map(|tensor| &mut tensor.place);
    for part in parts
        .chain(call.second.iter_mut())
        .chain(call.scales_in.iter_mut())
        .chain(call.scales_out.iter_mut())
        .chain([
            &mut call.paged_cache.slot_mapping,
            &mut call.paged_cache.source_mapping,
            &mut call.positions.ids,
        ])
    {
        part.buffer = if part.range > 0 { handle } else { 0 };
    }
    let reference = unsafe { vkrope_device_get_ref(device) };
    let kernel = engine.kernel(info)?;
    let mut dispatches = 0;
    check(|e| unsafe { vkrope_get_dispatches(kernel, &call, &mut dispatches, e) })?;
    let arena = make(vkrope_arena_destroy, |made, error| unsafe {
        match (*reference).enabled & PUSH_DESCRIPTOR {
            0 => vkrope_arena_create(kernel, dispatches as u32, made, error),
            _ => 0,
        }
    })?;
    let work = Work {
        kernel,
        arena: arena.0,
        call,
    };
    let user = (&work as *const Work).cast();
    unsafe {
        check(|e| vkrope_buffer_upload(buffer.0, memory.as_ptr(), memory.len(), 0, e))?;
        check(|e| vkrope_device_submit(device, record, user, null_mut(), e))?;
        check(|e| vkrope_buffer_download(buffer.0, memory.as_mut_ptr(), memory.len(), 0, e))
    }
}

fn part(offset: u64, range: u64) -> Part {
    Part {
        buffer: 0,
        offset,
        range,
    }
}

/// A tensor of one head.
fn tensor(offset: u64, range: u64) -> Tensor {
    Tensor {
        place: part(offset, range),
        heads: 1,
        ..Default::default()
    }
}

fn bytes_of(row: &[f32]) -> Vec<u8> {
    row.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

fn bytes_of_ids(ids: &[i32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// Compares all bytes of a buffer. Returns their number.
fn same(what: &str, memory: &[u8], expected: &[u8]) -> Result<usize, String> {
    match memory
        .iter()
        .zip(expected)
        .position(|(got, right)| got != right)
    {
        Some(at) => Err(format!("{what}: byte {at} differs")),
        None => Ok(memory.len()),
    }
}

/// K goes to a cache of q8_0, V to one of f32, and both, packed, to second destinations. Of two
/// tokens the first has slot 3, the second none. Returns the number of bytes that were compared.
fn layer_without_rope(engine: &mut Engine) -> Result<usize, String> {
    const ROW: u64 = 32 * 4;
    let mut info = KernelInfo {
        scatter_kv: 1,
        ..Default::default()
    };
    for (t, output, second_of) in [(K, Q8_0, SECOND_RESULT), (V, 0, SECOND_INPUT)] {
        info.tensor[t] = TensorInfo {
            output,
            head_dim: 32,
            heads: 1,
            second_of,
            ..Default::default()
        };
    }
    let mut call = Call {
        tokens: 2,
        ..Default::default()
    };
    call.paged_cache.slot_mapping = part(1536, 8);
    for (t, second, cache, bytes) in [(K, 256, 768, 4 * 34), (V, 512, 1024, 4 * ROW)] {
        call.input[t] = tensor(0, 2 * ROW);
        call.second[t] = part(second, 2 * ROW);
        call.output[t] = tensor(cache, bytes);
    }
    // The largest of 32 channels is 127/64, so that q8_0 stores them exactly.
    let number = |i: usize| {
        if i % 32 == 4 {
            127
        } else {
            (53 * i % 253) as i32 - 126
        }
    };
    let rows = bytes_of(
        &(0..64)
            .map(|i| number(i) as f32 / 64.0)
            .collect::<Vec<f32>>(),
    );
    let mut memory = vec![0u8; 1792];
    memory[..256].copy_from_slice(&rows);
    memory[1536..1540].copy_from_slice(&3i32.to_ne_bytes());
    memory[1540..1544].copy_from_slice(&(-1i32).to_ne_bytes());
    let mut expected = memory.clone();
    expected[256..512].copy_from_slice(&rows);
    expected[512..768].copy_from_slice(&rows);
    let block = 768 + 3 * 34;
    expected[block + 1] = 0x24; // 1/64 in f16
    for i in 0..32 {
        expected[block + 2 + i] = number(i) as u8;
    }
    expected[1024 + 3 * 128..1536].copy_from_slice(&rows[..128]);
    submit(engine, &info, &call, &mut memory)?;
    same("a layer without RoPE", &memory, &expected)
}

/// The channels up to HEAD_DIM of a row have a norm, the others rotate: in place, in one dispatch.
fn latent_row(engine: &mut Engine, rotation: *const c_void) -> Result<usize, String> {
    const POSITION: i32 = 9;
    let table = make(vkrope_angle_table_destroy, |made, error| unsafe {
        vkrope_angle_table_create(engine.device, rotation, FACTORED_TEXTURE, 16, made, error)
    })?;
    let mut info = KernelInfo {
        pairing: HALF_SPLIT,
        rotary_dim: HEAD_DIM as u32,
        angles: FACTORED_TEXTURE,
        ..Default::default()
    };
    info.tensor[K].head_dim = 2 * HEAD_DIM as u32;
    info.tensor[K].rotary_offset = HEAD_DIM as u32;
    info.tensor[K].ops.norm = Norm {
        kind: RMS,
        eps: 1e-6,
        channels: HEAD_DIM as u32,
        ..Default::default()
    };
    let mut call = Call {
        tokens: 1,
        angles: unsafe { *vkrope_angle_table_get(table.0) },
        ..Default::default()
    };
    call.positions.first = POSITION;
    call.input[K] = tensor(0, 8 * HEAD_DIM as u64);
    call.output[K] = call.input[K];
    let row: Vec<f32> = (0..2 * HEAD_DIM)
        .map(|i| (29 * i % 61) as f32 / 16.0 - 2.0)
        .collect();
    let mut memory = bytes_of(&row);
    submit(engine, &info, &call, &mut memory)?;
    let x = |i: usize| f64::from(row[i]);
    let mean = (0..HEAD_DIM).map(|i| x(i) * x(i)).sum::<f64>() / HEAD_DIM as f64;
    for (i, word) in memory.chunks_exact(4).enumerate() {
        let got = f64::from(f32::from_ne_bytes(word.try_into().unwrap()));
        let exact = if i < HEAD_DIM {
            x(i) / (mean + f64::from(1e-6f32)).sqrt()
        } else {
            let half = HEAD_DIM / 2;
            let pair = i % half;
            let angle = f64::from(POSITION) * 10000f64.powf(-(pair as f64) / half as f64);
            let (x0, x1) = (x(HEAD_DIM + pair), x(HEAD_DIM + half + pair));
            if i < HEAD_DIM + half {
                x0 * angle.cos() - x1 * angle.sin()
            } else {
                x0 * angle.sin() + x1 * angle.cos()
            }
        };
        // 10 u of a normalised channel; 6 u (|x0| + |x1|) of a rotated one.
        if (got - exact).abs() > 24.0 / f64::from(1 << 24) {
            return Err(format!("latent row: channel {i} is {got}, not {exact}"));
        }
    }
    Ok(memory.len())
}

/// The first fields of vkrope_rope_params, and more bytes than the others need, which are 0.
#[repr(C)]
struct RopeParams {
    pairing: u32,
    head_dim: u32,
    rotary_dim: u32,
    offsets: [u32; 2],
    no_rope: u32,
    inv_freq: *const f64,
    inv_freq_count: usize,
    rest: [u64; 256],
}

/// A cache of q8_0 for K, of iq4_nl for V: token 0 moves to another slot and turns, token 1 stays
/// as it is, token 2 turns in place. Quarter turns exchange the blocks of a key; V is copied.
fn moved_keys(engine: &mut Engine) -> Result<usize, String> {
    const K_ROW: usize = 2 * 34;
    const V_ROW: usize = 2 * 18;
    const V_CACHE: usize = 4 * K_ROW;
    const IDS: usize = V_CACHE + 4 * V_ROW;
    let (to, from, deltas) = ([3i32, 1, 2], [0i32, 1, 2], [1i32, 0, -1]);
    let quarters = [std::f64::consts::FRAC_PI_2; HEAD_DIM / 2];
    let rotation = RopeParams {
        pairing: HALF_SPLIT,
        head_dim: HEAD_DIM as u32,
        rotary_dim: HEAD_DIM as u32,
        offsets: [0; 2],
        no_rope: 0,
        inv_freq: quarters.as_ptr(),
        inv_freq_count: quarters.len(),
        rest: [0; 256],
    };
    let table = make(vkrope_angle_table_destroy, |made, error| unsafe {
        let rotation = (&rotation as *const RopeParams).cast();
        vkrope_angle_table_create(engine.device, rotation, FACTORED_TEXTURE, 8, made, error)
    })?;
    let mut info = KernelInfo {
        pairing: HALF_SPLIT,
        rotary_dim: HEAD_DIM as u32,
        angles: FACTORED_TEXTURE,
        positions: POSITIONS_IDS,
        scatter_kv: 1,
        gather_kv: 1,
        ..Default::default()
    };
    let mut call = Call {
        tokens: 3,
        angles: unsafe { *vkrope_angle_table_get(table.0) },
        gain: GAIN_OMIT,
        ..Default::default()
    };
    for (t, element, cache, bytes) in [(K, Q8_0, 0, 4 * K_ROW), (V, IQ4_NL, V_CACHE, 4 * V_ROW)] {
        info.tensor[t].input = element;
        info.tensor[t].output = element;
        info.tensor[t].head_dim = HEAD_DIM as u32;
        call.input[t] = tensor(cache as u64, bytes as u64);
        call.output[t] = call.input[t];
    }
    call.positions.ids = part(IDS as u64, 12);
    call.paged_cache.slot_mapping = part(IDS as u64 + 12, 12);
    call.paged_cache.source_mapping = part(IDS as u64 + 24, 12);
    // A row of any bytes keeps them unless it turns; a row that turns has a code of 127 in each
    // block, so that the turned block has the same scale.
    let mut memory: Vec<u8> = (0..IDS).map(|i| (157 * i + i / 5) as u8).collect();
    for block in (0..8).filter(|block| block / 2 != 1) {
        let bytes = &mut memory[34 * block..34 * (block + 1)];
        bytes[0] = 31 * block as u8;
        bytes[1] = 0x2c; // f16, about 1/16
        for (c, code) in bytes[2..].iter_mut().enumerate() {
            *code = if c == 7 {
                127
            } else {
                ((61 * c + block) % 255) as u8
            };
            *code = if *code == 128 { 0 } else { *code }; // -128 is no code
        }
    }
    for ids in [&deltas, &to, &from] {
        memory.extend(bytes_of_ids(ids));
    }
    let mut expected = memory.clone();
    for t in 0..3 {
        let (to, from) = (to[t] as usize, from[t] as usize);
        let old = memory[K_ROW * from..K_ROW * (from + 1)].to_vec();
        let row = &mut expected[K_ROW * to..K_ROW * (to + 1)];
        row.copy_from_slice(&old);
        if deltas[t] != 0 {
            // (x0, x1) becomes (-x1, x0), or (x1, -x0).
            row.rotate_left(34);
            let negated = if deltas[t] > 0 { 2..34 } else { 36..68 };
            for code in &mut row[negated] {
                *code = code.wrapping_neg();
            }
        }
        expected.copy_within(
            V_CACHE + V_ROW * from..V_CACHE + V_ROW * (from + 1),
            V_CACHE + V_ROW * to,
        );
    }
    submit(engine, &info, &call, &mut memory)?;
    same("moved keys", &memory, &expected)
}

/// K goes to int4 with a scale for 32 channels, and comes back.
fn scales_of_groups(engine: &mut Engine) -> Result<usize, String> {
    const ROW: usize = 4 * HEAD_DIM;
    const CODES: usize = 2 * ROW;
    const SCALES: usize = CODES + HEAD_DIM / 2;
    let mut info = KernelInfo::default();
    info.tensor[K] = TensorInfo {
        output: INT4,
        head_dim: HEAD_DIM as u32,
        heads: 1,
        ..Default::default()
    };
    info.tensor[K].ops.store_scale = STORE_SCALE_MADE;
    info.tensor[K].ops.store_scale_group = 32;
    let mut call = Call {
        tokens: 1,
        ..Default::default()
    };
    call.input[K] = tensor(0, ROW as u64);
    call.output[K] = tensor(CODES as u64, HEAD_DIM as u64 / 2);
    call.scales_out[K] = part(SCALES as u64, 8);
    // Each group has a code of 7 or -7.
    let code = |c: usize| (11 * c % 15) as i32 - 7;
    let scale = |c: usize| if c < 32 { 0.5 } else { 0.125f32 };
    let row: Vec<f32> = (0..HEAD_DIM).map(|c| code(c) as f32 * scale(c)).collect();
    let mut memory = bytes_of(&row);
    memory.resize(SCALES + 8, 0);
    let mut expected = memory.clone();
    for c in 0..HEAD_DIM {
        expected[CODES + c / 2] |= (code(c) as u8 & 15) << (4 * (c % 2));
    }
    expected[SCALES..].copy_from_slice(&bytes_of(&[0.5, 0.125]));
    submit(engine, &info, &call, &mut memory)?;
    same("int4", &memory, &expected)?;
    let ops = &mut info.tensor[K].ops;
    ops.store_scale = 0;
    ops.scales_in = 1;
    info.tensor[K].input = INT4;
    info.tensor[K].output = 0;
    call.input[K] = call.output[K];
    call.output[K] = tensor(ROW as u64, ROW as u64);
    call.scales_in = call.scales_out;
    call.scales_out = Default::default();
    expected[ROW..2 * ROW].copy_from_slice(&bytes_of(&row));
    submit(engine, &info, &call, &mut memory)?;
    same("int4 that is read", &memory, &expected)
}

const CONFIG: &str = r#"{"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "rope_theta": 10000.0, "max_position_embeddings": 2048}"#;
const TOKENS: usize = 5;
const HEAD_DIM: usize = 64;

fn run() -> Result<String, String> {
    let model = make(vkrope_model_destroy, |made, error| unsafe {
        vkrope_model_from_hf_config(CONFIG.as_ptr().cast(), CONFIG.len(), null(), made, error)
    })?;
    let device = make(vkrope_device_destroy, |made, error| unsafe {
        vkrope_device_open(null(), made, error)
    })?;
    let shape = HostShape {
        batch: 1,
        tokens: TOKENS as u32,
        heads: [4, 2, 0],
        head_dim: [0; 3],
        element: 0,
        layout: 0,
        positions: null(),
        position_count: 0,
        axes: 0,
        first_position: 0,
        angles: 0,
        mapping: 0,
        conversion: 0,
        in_place: 0,
    };
    let rotation = unsafe { vkrope_model_get_params(model.0) };
    let work = make(vkrope_host_rotation_destroy, |made, error| unsafe {
        vkrope_host_rotation_create(device.0, rotation, &shape, made, error)
    })?;
    // The layout is [tokens, heads, head_dim]; pair j of each row is the point (1, 0).
    let row = |i: usize| {
        if i % HEAD_DIM < HEAD_DIM / 2 {
            1.0f32
        } else {
            0.0
        }
    };
    let mut q: Vec<f32> = (0..TOKENS * 4 * HEAD_DIM).map(row).collect();
    let mut k: Vec<f32> = (0..TOKENS * 2 * HEAD_DIM).map(row).collect();
    unsafe {
        check(|e| vkrope_host_rotation_upload(work.0, q.as_ptr(), k.as_ptr(), null(), e))?;
        check(|e| vkrope_host_rotation_run(work.0, null(), null_mut(), e))?;
        check(|e| {
            vkrope_host_rotation_download(work.0, q.as_mut_ptr(), k.as_mut_ptr(), null_mut(), e)
        })?;
    }
    for (name, values, heads) in [("q", &q, 4), ("k", &k, 2)] {
        for (i, &value) in values.iter().enumerate() {
            let (position, channel) = (i / (heads * HEAD_DIM), i % HEAD_DIM);
            let pair = channel % (HEAD_DIM / 2);
            let angle = position as f64 * 10000f64.powf(-2.0 * pair as f64 / HEAD_DIM as f64);
            let exact = if channel < HEAD_DIM / 2 {
                angle.cos()
            } else {
                angle.sin()
            };
            if (f64::from(value) - exact).abs() > 4e-7 {
                return Err(format!("{name}[{i}] is {value}, not {exact}"));
            }
        }
    }
    let name =
        unsafe { CStr::from_ptr((*vkrope_device_get_info(device.0)).name) }.to_string_lossy();
    let mut engine = Engine {
        device: device.0,
        kernels: HashMap::new(),
    };
    let mut layers = 0;
    for _ in 0..2 {
        layers += layer_without_rope(&mut engine)?
            + latent_row(&mut engine, rotation)?
            + moved_keys(&mut engine)?
            + scales_of_groups(&mut engine)?;
        if engine.kernels.len() != 5 {
            return Err(format!("there are {} kernels, not 5", engine.kernels.len()));
        }
    }
    Ok(format!(
        "Rust: {} values rotated on {name}, {layers} bytes of layers compared",
        q.len() + k.len()
    ))
}

fn main() {
    match run() {
        Ok(sentence) => println!("{sentence}"),
        Err(sentence) => {
            eprintln!("rotate: {sentence}");
            std::process::exit(1);
        }
    }
}

// SPDX-License-Identifier: MIT
// An engine that loads Vulkan itself and records a step with a paged cache: use_paged_step of
// c_app/main.c. Argument: the file that c_app has written, whose bytes it must compute. It also
// calls every safe function of the crate.
use std::collections::HashMap;
use std::error::Error;
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use vkrope::{sys, Kernel, KernelInfo, K, Q, V};

#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code
)]
mod vulkan;
use vulkan::*;

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}
const RTLD_NOW: c_int = 2;

type Outcome<T> = Result<T, Box<dyn Error>>;

macro_rules! vk {
    ($vk:expr, $name:ident($($argument:expr),* $(,)?)) => {
        ($vk.$name.ok_or(concat!("there is no ", stringify!($name)))?)($($argument),*)
    };
}

macro_rules! functions_of {
    ($find:expr, $instance:expr; $($name:ident)*) => {
        functions {
            $($name: transmute($find($instance, concat!(stringify!($name), "\0").as_ptr().cast())),)*
        }
    };
}

/// The buffer of the step; after it the table in staging memory. All offsets are in bytes.
const STEP: usize = 35072;
const BYTES: usize = STEP + 1024;
const TOKENS: usize = 8;
const CHANNELS: usize = 64;
const HEADS: [usize; 3] = [4, 2, 2];
const PAGE: u32 = 8;
const SLOTS: usize = 5 * PAGE as usize;
const IN: [usize; 3] = [0, 8192, 12288];
const OUT: [usize; 3] = [0, 16384, 22016];
const OUT_BYTES: [usize; 3] = [
    8192,
    SLOTS * HEADS[K] * 2 * 34,
    SLOTS * HEADS[V] * CHANNELS * 2,
];
const CU_SEQLENS: usize = 32256;
const FIRST_IDS: usize = 32512;
const IDS: usize = 33024;
const SLOT_MAPPING: usize = 33280;
const TOKEN_COUNT: usize = 33536;
const OUT_OF_RANGE: usize = 33792;
const ANGLES: usize = 34048;

fn initial(memory: &mut [u8]) {
    for (i, byte) in memory.iter_mut().enumerate() {
        *byte = (151 * i) as u8;
    }
    let mut put = |at: usize, numbers: &[[u8; 4]]| {
        memory[at..at + 4 * numbers.len()].copy_from_slice(&numbers.concat());
    };
    for i in 0..OUT[K] / 4 {
        put(
            4 * i,
            &[((37 * i % 253) as f32 / 64.0 - 126.0 / 64.0).to_ne_bytes()],
        );
    }
    put(CU_SEQLENS, &[0i32, 3, 3, 5].map(i32::to_ne_bytes));
    put(FIRST_IDS, &[7i32, 0, 3].map(i32::to_ne_bytes));
    put(SLOT_MAPPING, &[31i32, 8, 9, 3, 4].map(i32::to_ne_bytes));
    put(TOKEN_COUNT, &[5i32.to_ne_bytes()]);
    put(OUT_OF_RANGE, &[[0; 4]]);
}

fn checked(result: VkResult, what: &str) -> Outcome<()> {
    match result {
        0 => Ok(()),
        _ => Err(format!("{what}: VkResult {result}").into()),
    }
}

/// Returns the bytes of the step.
unsafe fn step(push_descriptors: bool) -> Outcome<Vec<u8>> {
    let library = dlopen("libvulkan.so.1\0".as_ptr().cast(), RTLD_NOW);
    if library.is_null() {
        return Err("there is no libvulkan.so.1".into());
    }
    let found = dlsym(library, "vkGetInstanceProcAddr\0".as_ptr().cast());
    let get: sys::PFN_vkGetInstanceProcAddr = transmute(found);
    let find = get.ok_or("the loader has no vkGetInstanceProcAddr")?;
    let create: PFN_vkCreateInstance =
        transmute(find(null_mut(), "vkCreateInstance\0".as_ptr().cast()));
    let application = VkApplicationInfo {
        sType: VK_STRUCTURE_TYPE_APPLICATION_INFO,
        apiVersion: 1 << 22 | 1 << 12,
        ..Default::default()
    };
    let info = VkInstanceCreateInfo {
        sType: VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        pApplicationInfo: &application,
        ..Default::default()
    };
    let mut instance = null_mut();
    let create = create.ok_or("there is no vkCreateInstance")?;
    checked(create(&info, null(), &mut instance), "vkCreateInstance")?;
    let vk = functions_of!(find, instance;
        vkAllocateCommandBuffers vkAllocateMemory vkBeginCommandBuffer vkBindBufferMemory
        vkCmdPipelineBarrier vkCreateBuffer vkCreateCommandPool vkCreateDevice vkDestroyBuffer
        vkDestroyCommandPool vkDestroyDevice vkDestroyInstance vkEndCommandBuffer
        vkEnumeratePhysicalDevices vkFreeMemory vkGetBufferMemoryRequirements vkGetDeviceQueue
        vkGetPhysicalDeviceMemoryProperties vkGetPhysicalDeviceQueueFamilyProperties vkMapMemory
        vkQueueSubmit vkQueueWaitIdle);

    let (mut count, mut physical) = (1, null_mut());
    vk!(
        vk,
        vkEnumeratePhysicalDevices(instance, &mut count, &mut physical)
    );
    if count == 0 {
        return Err("there is no Vulkan device".into());
    }
    let needs = vkrope::requirements(instance, physical, get)?;
    let mut families = [VkQueueFamilyProperties::default(); 16];
    let mut count = families.len() as u32;
    let to = families.as_mut_ptr();
    vk!(
        vk,
        vkGetPhysicalDeviceQueueFamilyProperties(physical, &mut count, to)
    );
    let family = families[..count as usize]
        .iter()
        .position(|family| family.queueFlags & VK_QUEUE_COMPUTE_BIT != 0)
        .ok_or("the device has no compute queue")? as u32;
    let priority = 1.0;
    let queue_info = VkDeviceQueueCreateInfo {
        sType: VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        queueFamilyIndex: family,
        queueCount: 1,
        pQueuePriorities: &priority,
        ..Default::default()
    };
    let device_info = VkDeviceCreateInfo {
        sType: VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        queueCreateInfoCount: 1,
        pQueueCreateInfos: &queue_info,
        enabledExtensionCount: needs.optional_extension_count,
        ppEnabledExtensionNames: needs.optional_extensions.as_ptr(),
        ..Default::default()
    };
    let mut device = null_mut();
    let result = vk!(
        vk,
        vkCreateDevice(physical, &device_info, null(), &mut device)
    );
    checked(result, "vkCreateDevice")?;
    let mut queue = null_mut();
    vk!(vk, vkGetDeviceQueue(device, family, 0, &mut queue));
    let mut reference = vkrope::DeviceRef {
        instance,
        physical,
        device,
        get_instance_proc_addr: get,
        enabled: needs.enabled,
        ..Default::default()
    };
    if !push_descriptors {
        reference.enabled &= !sys::VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR;
    }

    // A buffer that the host sees.
    let buffer_info = VkBufferCreateInfo {
        sType: VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        size: BYTES as u64,
        usage: VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
            | VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        ..Default::default()
    };
    let mut buffer = 0;
    let result = vk!(
        vk,
        vkCreateBuffer(device, &buffer_info, null(), &mut buffer)
    );
    checked(result, "vkCreateBuffer")?;
    let mut memory_needs = VkMemoryRequirements::default();
    vk!(
        vk,
        vkGetBufferMemoryRequirements(device, buffer, &mut memory_needs)
    );
    let mut offered = VkPhysicalDeviceMemoryProperties::default();
    vk!(
        vk,
        vkGetPhysicalDeviceMemoryProperties(physical, &mut offered)
    );
    let seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    let fits = |of: &u32| {
        memory_needs.memoryTypeBits >> of & 1 != 0
            && offered.memoryTypes[*of as usize].propertyFlags & seen == seen
    };
    let memory_info = VkMemoryAllocateInfo {
        sType: VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        allocationSize: memory_needs.size,
        memoryTypeIndex: (0..32).find(fits).ok_or("the host sees no memory")?,
        ..Default::default()
    };
    let mut memory = 0;
    let result = vk!(
        vk,
        vkAllocateMemory(device, &memory_info, null(), &mut memory)
    );
    checked(result, "vkAllocateMemory")?;
    checked(
        vk!(vk, vkBindBufferMemory(device, buffer, memory, 0)),
        "vkBindBufferMemory",
    )?;
    let mut mapped = null_mut();
    let result = vk!(vk, vkMapMemory(device, memory, 0, u64::MAX, 0, &mut mapped));
    checked(result, "vkMapMemory")?;
    let mapped = std::slice::from_raw_parts_mut(mapped.cast::<u8>(), BYTES);
    initial(&mut mapped[..STEP]);

    // Once a model.
    let rotation = rotation()?;
    let layout = rotation.plan_angles(sys::VKROPE_ANGLES_COMPUTED, 2048, 0)?;
    rotation.fill_angles(&layout, &mut mapped[STEP..])?;
    let f32 = Some(sys::VKROPE_F32);
    let mut info = rotation.kernel_info(Some(&layout), f32, f32, f32)?;
    info.positions = sys::VKROPE_POSITIONS_IDS;
    info.scatter_kv = 1;
    info.token_count = 1;
    info.tensor[K].out = sys::VKROPE_Q8_0;
    info.tensor[V].out = sys::VKROPE_F16;
    let mut kernels = HashMap::<KernelInfo, Kernel>::new();
    for yes in 1..3 {
        info.scatter_kv = yes; // 2 is as true as 1
        if !kernels.contains_key(&info) {
            kernels.insert(info, Kernel::new(&reference, &info)?);
        }
    }
    if kernels.len() != 1 {
        return Err("two layers with equal infos do not share a kernel".into());
    }
    let kernel = &kernels[&info];
    let positions = vkrope::PositionKernel::new(&reference)?;

    // Each step.
    let part = |offset: usize, bytes: usize| sys::VkDescriptorBufferInfo {
        buffer,
        offset: offset as u64,
        range: bytes as u64,
    };
    let tensor = |offset, bytes, heads: usize| vkrope::Tensor {
        r#where: part(offset, bytes),
        heads: heads as u32,
        ..Default::default()
    };
    let ids = vkrope::PositionCall {
        tokens: 5,
        offsets: part(FIRST_IDS, 12),
        cu_seqlens: part(CU_SEQLENS, 16),
        sequences: 3,
        out: part(IDS, 20),
        out_of_range: part(OUT_OF_RANGE, 4),
        ..Default::default()
    };
    let call = vkrope::Call {
        tokens: TOKENS as u32,
        r#in: [Q, K, V].map(|t| tensor(IN[t], 4 * TOKENS * HEADS[t] * CHANNELS, HEADS[t])),
        out: [Q, K, V].map(|t| tensor(OUT[t], OUT_BYTES[t], HEADS[t])),
        positions: vkrope::Positions {
            ids: part(IDS, 4 * TOKENS),
            ..Default::default()
        },
        angles: vkrope::Angles {
            layout: &layout,
            buffer: part(ANGLES, layout.bytes),
            ..Default::default()
        },
        paged_cache: vkrope::PagedCache {
            slot_mapping: part(SLOT_MAPPING, 4 * TOKENS),
            page_size: PAGE,
            ..Default::default()
        },
        token_count: part(TOKEN_COUNT, 4),
        out_of_range: part(OUT_OF_RANGE, 4),
        ..Default::default()
    };
    let upload = vkrope::AngleUpload {
        staging: part(STEP, layout.bytes),
        buffer: call.angles.buffer,
        ..Default::default()
    };
    let (mut arena, mut ids_arena) = (None, None);
    if reference.enabled & sys::VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR == 0 {
        arena = Some(kernel.create_arena(kernel.dispatches(&call)? as u32)?);
        ids_arena = Some(positions.create_arena(1)?);
    }
    let pool_info = VkCommandPoolCreateInfo {
        sType: VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        queueFamilyIndex: family,
        ..Default::default()
    };
    let mut pool = 0;
    let result = vk!(
        vk,
        vkCreateCommandPool(device, &pool_info, null(), &mut pool)
    );
    checked(result, "vkCreateCommandPool")?;
    let commands_info = VkCommandBufferAllocateInfo {
        sType: VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        commandPool: pool,
        level: VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        commandBufferCount: 1,
        ..Default::default()
    };
    let mut commands = null_mut();
    let result = vk!(
        vk,
        vkAllocateCommandBuffers(device, &commands_info, &mut commands)
    );
    checked(result, "vkAllocateCommandBuffers")?;
    let begin = VkCommandBufferBeginInfo {
        sType: VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        ..Default::default()
    };
    checked(
        vk!(vk, vkBeginCommandBuffer(commands, &begin)),
        "vkBeginCommandBuffer",
    )?;
    let boundary = vkrope::boundary();
    let barrier = |to: VkPipelineStageFlags, access: VkAccessFlags| -> Outcome<()> {
        let barrier = VkMemoryBarrier {
            sType: VK_STRUCTURE_TYPE_MEMORY_BARRIER,
            srcAccessMask: boundary.output_access,
            dstAccessMask: access,
            ..Default::default()
        };
        let (from, none, no_image) = (boundary.stage, null(), null());
        vk!(
            vk,
            vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, none, 0, no_image)
        );
        Ok(())
    };
    vkrope::record_angle_upload(commands, &reference, &layout, &upload)?;
    positions.record(commands, &ids, ids_arena.as_mut())?;
    barrier(
        boundary.stage,
        boundary.input_access | boundary.output_access,
    )?;
    let mut wrong = call;
    wrong.positions.ids = Default::default();
    refused(
        kernel.record(commands, &wrong, arena.as_mut()),
        "positions.ids",
    )?;
    kernel.record(commands, &call, arena.as_mut())?;
    barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT)?;
    checked(vk!(vk, vkEndCommandBuffer(commands)), "vkEndCommandBuffer")?;
    let submission = VkSubmitInfo {
        sType: VK_STRUCTURE_TYPE_SUBMIT_INFO,
        commandBufferCount: 1,
        pCommandBuffers: &commands,
        ..Default::default()
    };
    checked(
        vk!(vk, vkQueueSubmit(queue, 1, &submission, 0)),
        "vkQueueSubmit",
    )?;
    checked(vk!(vk, vkQueueWaitIdle(queue)), "vkQueueWaitIdle")?;
    let bytes = mapped[..STEP].to_vec();

    if let Some(arena) = arena.as_mut() {
        arena.reset();
    }
    drop((arena, ids_arena, positions, kernels));
    vk!(vk, vkDestroyCommandPool(device, pool, null()));
    vk!(vk, vkDestroyBuffer(device, buffer, null()));
    vk!(vk, vkFreeMemory(device, memory, null()));
    vk!(vk, vkDestroyDevice(device, null()));
    vk!(vk, vkDestroyInstance(instance, null()));
    Ok(bytes)
}

fn rotation() -> vkrope::Result<vkrope::RopeParams> {
    let fields = sys::vkrope_rope_params {
        pairing: sys::VKROPE_HALF_SPLIT,
        head_dim: CHANNELS as u32,
        rotary_dim: CHANNELS as u32,
        ..Default::default()
    };
    let inv_freq = vkrope::default_inv_freq(1e4, fields.rotary_dim)?;
    Ok(vkrope::RopeParams::new(fields, inv_freq))
}

/// Checks that a call is refused with a sentence that has `word`.
fn refused<T>(result: vkrope::Result<T>, word: &str) -> Outcome<()> {
    match result.err() {
        Some(e) if e.code == sys::VKROPE_ERROR_INVALID_ARGUMENT && e.what.contains(word) => Ok(()),
        other => Err(format!("'{word}' was expected in the error: {other:?}").into()),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, expected: T) -> Outcome<()> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{got:?} is not {expected:?}").into())
}

fn functions_without_a_device() -> Outcome<()> {
    let freqs = || vkrope::default_inv_freq(1e4, 4);
    same(freqs()?, vec![1.0, 0.01])?;
    same(
        vkrope::proportional_inv_freq(1e4, 4, &Default::default())?,
        freqs()?,
    )?;
    refused(vkrope::default_inv_freq(1e4, u32::MAX), "rotary_dim")?;
    let halves = vec![0.5, 0.005];
    let twos = [2.0, 2.0];
    let mut scaled = freqs()?;
    vkrope::scale_linear(&mut scaled, 2.0)?;
    same(&scaled, &halves)?;
    scaled = freqs()?;
    vkrope::scale_positions(&mut scaled, 0.5)?;
    same(&scaled, &halves)?;
    scaled = freqs()?;
    vkrope::scale_divisors(&mut scaled, &twos)?;
    same(&scaled, &halves)?;
    scaled = freqs()?;
    let unset = vkrope::GgmlScaling {
        attn_factor: -1.0,
        ..Default::default()
    };
    same(vkrope::scale_ggml(&mut scaled, 1e4, &twos, &unset)?, 1.0)?;
    same(&scaled, &halves)?;
    scaled = freqs()?;
    let longrope = vkrope::LongRopeScaling {
        original_max_position_embeddings: 16.0,
        factor: 1.0,
        ..Default::default()
    };
    same(
        vkrope::scale_longrope(&mut scaled, &[1.0; 2], &twos, &longrope, 17)?,
        1.0,
    )?;
    same(&scaled, &halves)?;
    refused(
        vkrope::scale_longrope(&mut scaled, &twos, &[1.0], &longrope, 0),
        "long_factor",
    )?;
    vkrope::stop_slow_pairs(&mut scaled, 16.0)?;
    same(&scaled, &vec![0.5, 0.0])?;
    scaled = freqs()?;
    vkrope::scale_ntk(&mut scaled, 4.0)?; // the base becomes 16 times as large
    same((scaled[1] * 400.0 - 1.0).abs() < 1e-12, true)?;
    let dynamic = vkrope::DynamicNtkScaling {
        factor: 4.0,
        max_position_embeddings: 16.0,
    };
    let mut dynamic_scaled = freqs()?; // alpha is 4 * 28 / 16 - 3
    vkrope::scale_dynamic_ntk(&mut dynamic_scaled, &dynamic, 28)?;
    same(&dynamic_scaled, &scaled)?;
    let yarn = vkrope::YarnScaling {
        factor: 4.0,
        original_max_position_embeddings: 16.0,
        ..Default::default()
    };
    scaled = freqs()?;
    let factor = vkrope::scale_yarn(&mut scaled, 1e4, &yarn)?;
    same((factor - (0.1 * 4f64.ln() + 1.0)).abs() < 1e-12, true)?;
    same(scaled[1], 0.0025)?;
    let deepseek = vkrope::DeepseekYarnScaling {
        factor: 4.0,
        original_max_position_embeddings: 16.0,
        mscale_all_dim: 1.0,
        ..Default::default()
    };
    let (one, softmax) = vkrope::scale_deepseek_yarn(&mut freqs()?, 1e4, &deepseek)?;
    same(
        (one, (softmax - factor * factor).abs() < 1e-12),
        (1.0, true),
    )?;

    let ggml = vkrope::GgmlRope {
        head_dim: 8,
        n_dims: 4,
        mode: 2,
        freq_base: 1e4,
        attn_factor: -1.0,
        ..Default::default()
    };
    let mut params = vkrope::RopeParams::from_ggml(&ggml, &twos)?;
    same(
        (&params.inv_freq, params.pairing),
        (&halves, sys::VKROPE_HALF_SPLIT),
    )?;
    let mut op = [0; 16];
    op[1..3].copy_from_slice(&[4, 2]); // n_dims and mode
    for (at, value) in [(5, 1e4f32), (6, 1.0), (8, 1.0)] {
        op[at] = value.to_bits() as i32; // freq_base, freq_scale and attn_factor
    }
    let from_op = vkrope::RopeParams::from_ggml_op(&op, 8, &[2.0; 2])?;
    same(&from_op.inv_freq, &params.inv_freq)?;
    let axis = vkrope::GridAxis {
        count: 3,
        unit: 2.0,
        origin: 1.0,
        ..Default::default()
    };
    params.fold_grid(&[axis])?;
    same(
        (&params.inv_freq, &params.phase),
        (&vec![1.0, 0.01], &halves),
    )?;
    refused(params.fold_grid(&[]), "axis_count")?;

    let scale = vkrope::QueryScale {
        kind: sys::VKROPE_QUERY_SCALING_LLAMA4,
        length: 4.0,
        beta: 0.1,
        ..Default::default()
    };
    let steps = vkrope::plan_query_scales(&scale, 8)?;
    let mut memory = vec![0; steps.bytes];
    vkrope::fill_query_scales(&steps, &mut memory)?;
    let factors = [1f64, 2.0, 3.0].map(|steps| (0.1 * steps.ln() + 1.0) as f32);
    same(memory, factors.map(f32::to_ne_bytes).concat())?;

    let cache = vkrope::plan_cos_sin_cache(2, 8, 0, sys::VKROPE_F32, false)?;
    same(cache.bytes, 64)?;
    let rotation = rotation()?;
    let texture = rotation.plan_angles(sys::VKROPE_ANGLES_DIRECT_TEXTURE, 16, 1024)?;
    let image = vkrope::angle_image_info(&texture)?;
    same(
        (image.extent.width, image.format),
        (texture.extent.width, texture.format),
    )?;
    same(vkrope::angle_view_info(&texture, 5)?.image, 5)?;
    let mut memory = vec![0; texture.bytes];
    refused(rotation.fill_angles(&texture, &mut memory[4..]), "bytes")?;

    let mut info = rotation.kernel_info(Some(&texture), None, Some(sys::VKROPE_F32), None)?;
    info.tensor[K].ops.norm = vkrope::Norm {
        kind: sys::VKROPE_NORM_RMS,
        eps: 1e-6,
        weight: sys::VKROPE_PARAMETER_CHANNEL,
        ..Default::default()
    };
    let plan = vkrope::plan_parameters(&info)?;
    let weight = [0x80, 0x3f].repeat(CHANNELS); // ones in bf16
    let mut sources = [vkrope::TensorSources::default(); 3];
    sources[K].weight = vkrope::Source {
        element: sys::VKROPE_BF16,
        bytes: &weight,
    };
    sources[K].bias.element = sys::VKROPE_BF16; // without bytes: absent
    let mut memory = vec![0; plan.bytes];
    vkrope::fill_parameters(&plan, &sources, &mut memory)?;
    same(memory.clone(), 1f32.to_ne_bytes().repeat(CHANNELS))?;
    sources[K].weight.bytes = &weight[1..];
    refused(
        vkrope::fill_parameters(&plan, &sources, &mut memory),
        "weight has 127 bytes",
    )?;
    sources[K].weight.bytes = &weight[2..];
    refused(
        vkrope::fill_parameters(&plan, &sources, &mut memory),
        "weight",
    )
}

fn run() -> Outcome<()> {
    functions_without_a_device()?;
    let path = std::env::args().nth(1).ok_or("usage: engine FILE")?;
    let expected = std::fs::read(path)?;
    same(expected.len(), STEP)?;
    for push_descriptors in [true, false] {
        let got = unsafe { step(push_descriptors) }?;
        if let Some(at) = (0..STEP).find(|&at| got[at] != expected[at]) {
            return Err(format!("byte {at} is {}, in C {}", got[at], expected[at]).into());
        }
    }
    println!("Rust: {STEP} bytes as in C");
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("engine: {error}");
        std::process::exit(1);
    }
}

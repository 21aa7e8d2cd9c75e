// SPDX-License-Identifier: MIT
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

use std::ffi::{c_void, CStr};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::{null, null_mut, NonNull};

pub use vkrope_sys as sys;

mod names;
pub use names::*;

/// Indices of the tensors in arrays of three.
pub const Q: usize = sys::VKROPE_Q as usize;
/// See [`Q`].
pub const K: usize = sys::VKROPE_K as usize;
/// See [`Q`].
pub const V: usize = sys::VKROPE_V as usize;

/// Error of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `sys::VKROPE_ERROR_...`
    pub code: ErrorCode,
    /// The VkResult that caused the error, else 0.
    pub vk_result: i32,
    /// One sentence: field, value, rule.
    pub what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.what)
    }
}

impl std::error::Error for Error {}

/// Value of a call, or its error.
pub type Result<T> = std::result::Result<T, Error>;

fn invalid<T>(what: String) -> Result<T> {
    let code = sys::VKROPE_ERROR_INVALID_ARGUMENT;
    let vk_result = 0;
    Err(Error {
        code,
        vk_result,
        what,
    })
}

fn status(call: impl FnOnce(*mut sys::vkrope_error) -> ErrorCode) -> Result<()> {
    let mut error = sys::vkrope_error::default();
    match call(&mut error) {
        sys::VKROPE_SUCCESS => Ok(()),
        code => Err(Error {
            code,
            vk_result: error.vk_result,
            // The library terminates the text with a null.
            what: unsafe { CStr::from_ptr(error.what.as_ptr()) }
                .to_string_lossy()
                .into_owned(),
        }),
    }
}

fn value<T: Default>(call: impl FnOnce(*mut T, *mut sys::vkrope_error) -> ErrorCode) -> Result<T> {
    let mut value = T::default();
    status(|error| call(&mut value, error))?;
    Ok(value)
}

macro_rules! owner {
    ($(#[$text:meta])* $name:ident, $object:ident, $destroy:ident) => {
        $(#[$text])*
        #[derive(Debug)]
        pub struct $name(NonNull<sys::$object>);

        // The library has no global state and no object of a thread.
        unsafe impl Send for $name {}

        impl $name {
            fn made(
                create: impl FnOnce(*mut *mut sys::$object, *mut sys::vkrope_error) -> ErrorCode,
            ) -> Result<Self> {
                let mut object = null_mut();
                status(|error| create(&mut object, error))?;
                Ok(Self(NonNull::new(object).expect("the library made an object")))
            }

            /// The object, for functions of `sys`. It stays owned.
            pub fn as_ptr(&self) -> *mut sys::$object {
                self.0.as_ptr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { sys::$destroy(self.as_ptr()) }
            }
        }
    };
}

owner! {
    /// The pipelines of one kind of rotation. Any number of threads may record with it.
    Kernel, vkrope_kernel, vkrope_kernel_destroy
}
owner! {
    /// Computes ids, slots, factors and the number of tokens, once per step for all layers. Any
    /// number of threads may record with it.
    PositionKernel, vkrope_position_kernel, vkrope_position_kernel_destroy
}
owner! {
    /// Descriptor sets for devices without push descriptors.
    DescriptorArena, vkrope_arena, vkrope_arena_destroy
}
unsafe impl Sync for Kernel {}
unsafe impl Sync for PositionKernel {}

fn pointer_of(arena: Option<&mut DescriptorArena>) -> *mut sys::vkrope_arena {
    arena.map_or(null_mut(), |arena| arena.as_ptr())
}

// ---- Kernel and call ----

/// What to enable at vkCreateDevice. All of it is optional.
///
/// # Safety
/// The handles are valid, and the function is the loader's vkGetInstanceProcAddr.
pub unsafe fn requirements(
    instance: sys::VkInstance,
    physical: sys::VkPhysicalDevice,
    get_instance_proc_addr: sys::PFN_vkGetInstanceProcAddr,
) -> Result<Requirements> {
    value(|needs, error| {
        sys::vkrope_get_requirements(instance, physical, get_instance_proc_addr, needs, error)
    })
}

/// Stages and accesses for barriers around the commands of a kernel: the same for every call.
pub fn boundary() -> Boundary {
    value(|boundary, error| unsafe { sys::vkrope_get_boundary(boundary, error) })
        .expect("it fails only for a null pointer")
}

impl Kernel {
    /// Compiles every pipeline that [`Kernel::record`] may choose.
    ///
    /// # Safety
    /// The handles of `device` and its `allocator` are valid and outlive the kernel and its arenas;
    /// any thread may call the allocator; no other thread uses a pipeline cache that is externally
    /// synchronised; and `enabled` names only what was enabled.
    pub unsafe fn new(device: &DeviceRef, info: &KernelInfo) -> Result<Self> {
        Self::made(|kernel, error| sys::vkrope_kernel_create(device, info, kernel, error))
    }

    /// Creates descriptor sets for 1 to 65536 calls, for every kernel of the device.
    pub fn create_arena(&self, calls: u32) -> Result<DescriptorArena> {
        DescriptorArena::made(|arena, error| unsafe {
            sys::vkrope_arena_create(self.as_ptr(), calls, arena, error)
        })
    }

    /// Number of dispatches of a call, and of sets that it takes from an arena.
    ///
    /// # Safety
    /// `call.angles.layout` is null or valid.
    pub unsafe fn dispatches(&self, call: &Call) -> Result<u64> {
        value(|count, error| sys::vkrope_get_dispatches(self.as_ptr(), call, count, error))
    }

    /// Records one call. It does not submit, wait, allocate or compile. On error nothing has been
    /// recorded.
    ///
    /// # Safety
    /// `commands` is recording, on a compute queue family, and no other thread uses it. The handles
    /// of `call` are valid, as vkrope.h describes them, and `call.angles.layout` is null or valid.
    /// Kernel, arena and resources live until the device has executed the commands, and the caller
    /// orders them against others with [`boundary`].
    pub unsafe fn record(
        &self,
        commands: sys::VkCommandBuffer,
        call: &Call,
        arena: Option<&mut DescriptorArena>,
    ) -> Result<()> {
        let arena = pointer_of(arena);
        status(|error| sys::vkrope_record(commands, self.as_ptr(), call, arena, error))
    }
}

impl DescriptorArena {
    /// Makes all sets available again.
    ///
    /// # Safety
    /// No command buffer recorded with the arena is pending or will be submitted.
    pub unsafe fn reset(&mut self) {
        sys::vkrope_arena_reset(self.as_ptr())
    }
}

impl PositionKernel {
    /// Compiles the pipelines of [`PositionKernel::record`].
    ///
    /// # Safety
    /// As for [`Kernel::new`].
    pub unsafe fn new(device: &DeviceRef) -> Result<Self> {
        Self::made(|kernel, error| sys::vkrope_position_kernel_create(device, kernel, error))
    }

    /// As [`Kernel::create_arena`]. A call takes a set for each output.
    pub fn create_arena(&self, calls: u32) -> Result<DescriptorArena> {
        DescriptorArena::made(|arena, error| unsafe {
            sys::vkrope_position_arena_create(self.as_ptr(), calls, arena, error)
        })
    }

    /// Records one dispatch for each output of the call.
    ///
    /// # Safety
    /// As for [`Kernel::record`]; `call.query_scale_layout` is null or valid.
    pub unsafe fn record(
        &self,
        commands: sys::VkCommandBuffer,
        call: &PositionCall,
        arena: Option<&mut DescriptorArena>,
    ) -> Result<()> {
        let arena = pointer_of(arena);
        status(|error| sys::vkrope_record_positions(commands, self.as_ptr(), call, arena, error))
    }
}

// ---- Rotation and its angle table ----

/// RoPE parameters that own their arrays. The other fields are those of
/// [`sys::vkrope_rope_params`], whose pointers and counts are not read here.
#[derive(Clone, Debug, Default)]
pub struct RopeParams {
    fields: sys::vkrope_rope_params,
    /// Radians per position, one for each pair.
    pub inv_freq: Vec<f64>,
    /// Radians that are added to the angle of each pair; empty: none.
    pub phase: Vec<f64>,
}

// Nothing reads the pointers of `fields`.
unsafe impl Send for RopeParams {}
unsafe impl Sync for RopeParams {}

impl Deref for RopeParams {
    type Target = sys::vkrope_rope_params;
    fn deref(&self) -> &Self::Target {
        &self.fields
    }
}

impl DerefMut for RopeParams {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.fields
    }
}

fn pointer_to<T>(numbers: &[T]) -> *const T {
    if numbers.is_empty() {
        null()
    } else {
        numbers.as_ptr()
    }
}

impl RopeParams {
    /// Parameters with these frequencies and the other fields of `fields`.
    pub fn new(fields: sys::vkrope_rope_params, inv_freq: Vec<f64>) -> Self {
        Self {
            fields,
            inv_freq,
            phase: Vec::new(),
        }
    }

    /// The parameters for functions of `sys`, valid until this object changes.
    pub fn view(&self) -> sys::vkrope_rope_params {
        sys::vkrope_rope_params {
            inv_freq: pointer_to(&self.inv_freq),
            inv_freq_count: self.inv_freq.len(),
            phase: pointer_to(&self.phase),
            phase_count: self.phase.len(),
            rope_type: null(),
            warnings: null(),
            warning_count: 0,
            ..self.fields
        }
    }

    /// Plans a table for every position with |position| < `max_position`. `max_image_side`:
    /// maxImageDimension2D of the device, for textures.
    pub fn plan_angles(
        &self,
        source: AngleSource,
        max_position: u64,
        max_image_side: u32,
    ) -> Result<AngleTableLayout> {
        value(|layout, error| unsafe {
            sys::vkrope_plan_angles(
                &self.view(),
                source,
                max_position,
                max_image_side,
                layout,
                error,
            )
        })
    }

    /// Writes the table of `layout` into `layout.bytes` bytes, aligned to 4: host memory or mapped
    /// memory of the device.
    pub fn fill_angles(&self, layout: &AngleTableLayout, memory: &mut [u8]) -> Result<()> {
        let (to, bytes) = (memory.as_mut_ptr().cast(), memory.len());
        status(|error| unsafe { sys::vkrope_fill_angles(&self.view(), layout, to, bytes, error) })
    }

    /// The info of a kernel, for tensors of these element types; None: the kernel does not handle
    /// the tensor. A layer without RoPE has no layout.
    pub fn kernel_info(
        &self,
        layout: Option<&AngleTableLayout>,
        q: Option<Element>,
        k: Option<Element>,
        v: Option<Element>,
    ) -> Result<KernelInfo> {
        fn given<T>(of: &Option<T>) -> *const T {
            of.as_ref().map_or(null(), |of| of)
        }
        let layout = layout.map_or(null(), |layout| layout);
        value(|info, error| unsafe {
            let (q, k, v) = (given(&q), given(&k), given(&v));
            sys::vkrope_get_kernel_info(&self.view(), layout, q, k, v, info, error)
        })
    }

    /// The rotation of a ggml_rope_ext or ggml_rope_multi; `freq_factors` replaces the pointer and
    /// the count of `rope`.
    pub fn from_ggml(rope: &GgmlRope, freq_factors: &[f64]) -> Result<Self> {
        let mut rope = *rope;
        rope.freq_factors = pointer_to(freq_factors);
        rope.freq_factor_count = freq_factors.len();
        Self::with_pairs(rope.head_dim, |inv_freq, pairs, made, error| unsafe {
            sys::vkrope_rope_params_from_ggml(&rope, inv_freq, pairs, made, error)
        })
    }

    /// The rotation of a node of ggml's graph, from its `op_params`.
    pub fn from_ggml_op(
        op_params: &[i32; 16],
        head_dim: u32,
        freq_factors: &[f32],
    ) -> Result<Self> {
        let (factors, count) = (pointer_to(freq_factors), freq_factors.len());
        let op = op_params.as_ptr();
        Self::with_pairs(head_dim, |inv_freq, pairs, made, error| unsafe {
            sys::vkrope_rope_params_from_ggml_op(
                op, head_dim, factors, count, inv_freq, pairs, made, error,
            )
        })
    }

    fn with_pairs(
        head_dim: u32,
        call: impl FnOnce(
            *mut f64,
            usize,
            *mut sys::vkrope_rope_params,
            *mut sys::vkrope_error,
        ) -> ErrorCode,
    ) -> Result<Self> {
        let mut inv_freq = vec![0.0; pairs_of(head_dim)];
        let (to, pairs) = (inv_freq.as_mut_ptr(), inv_freq.len());
        let fields: sys::vkrope_rope_params = value(|made, error| call(to, pairs, made, error))?;
        inv_freq.truncate(fields.inv_freq_count);
        Ok(Self::new(fields, inv_freq))
    }

    /// Folds the units and origins of a grid's axes into frequencies and phases. On error nothing
    /// changes.
    pub fn fold_grid(&mut self, axes: &[GridAxis]) -> Result<()> {
        let mut inv_freq = vec![0.0; self.inv_freq.len()];
        // A rotation has at least as many frequencies as phases; the library refuses others.
        let groups = self.head_groups.clamp(1, 65535) as usize;
        let phases = groups * pairs_of(self.rotary_dim);
        let mut phase = vec![0.0; phases.min(self.inv_freq.len())];
        let count = u32::try_from(axes.len()).unwrap_or(u32::MAX);
        let mut folded = self.view();
        status(|error| unsafe {
            sys::vkrope_fold_grid(
                axes.as_ptr(),
                count,
                inv_freq.as_mut_ptr(),
                phase.as_mut_ptr(),
                &mut folded,
                error,
            )
        })?;
        self.base = folded.base;
        self.inv_freq = inv_freq;
        if !folded.phase.is_null() {
            self.phase = phase;
        }
        Ok(())
    }
}

/// The library refuses more channels than the largest head has, and writes nothing.
fn pairs_of(channels: u32) -> usize {
    channels.min(sys::VKROPE_MAX_HEAD_DIM) as usize / 2
}

/// base^(-2j / rotary_dim), radians per position, for the rotary_dim / 2 pairs j.
pub fn default_inv_freq(base: f64, rotary_dim: u32) -> Result<Vec<f64>> {
    let mut inv_freq = vec![0.0; pairs_of(rotary_dim)];
    status(|error| unsafe {
        sys::vkrope_default_inv_freq(base, rotary_dim, inv_freq.as_mut_ptr(), error)
    })?;
    Ok(inv_freq)
}

/// Frequencies of Gemma 4's full-attention layers: head_dim / 2 of them.
pub fn proportional_inv_freq(
    base: f64,
    head_dim: u32,
    scaling: &ProportionalScaling,
) -> Result<Vec<f64>> {
    let mut inv_freq = vec![0.0; pairs_of(head_dim)];
    status(|error| unsafe {
        let to = inv_freq.as_mut_ptr();
        sys::vkrope_proportional_inv_freq(base, head_dim, scaling, to, error)
    })?;
    Ok(inv_freq)
}

/// Plans the layout of cos and sin buffers of the caller, [rows, row_stride] each.
pub fn plan_cos_sin_cache(
    pairs: u32,
    rows: u32,
    row_stride: u32,
    element: Element,
    channel_angles: bool,
) -> Result<AngleTableLayout> {
    let channels = channel_angles.into();
    value(|layout, error| unsafe {
        sys::vkrope_plan_cos_sin_cache(pairs, rows, row_stride, element, channels, layout, error)
    })
}

/// Argument of vkCreateImage for the texture of a layout.
pub fn angle_image_info(layout: &AngleTableLayout) -> Result<sys::VkImageCreateInfo> {
    value(|info, error| unsafe { sys::vkrope_get_angle_image_info(layout, info, error) })
}

/// Argument of vkCreateImageView for `Angles::view`.
pub fn angle_view_info(
    layout: &AngleTableLayout,
    image: sys::VkImage,
) -> Result<sys::VkImageViewCreateInfo> {
    value(|info, error| unsafe { sys::vkrope_get_angle_view_info(layout, image, info, error) })
}

/// Records the copy of a table from staging memory, with its barriers.
///
/// # Safety
/// As for [`Kernel::new`] and [`Kernel::record`].
pub unsafe fn record_angle_upload(
    commands: sys::VkCommandBuffer,
    device: &DeviceRef,
    layout: &AngleTableLayout,
    upload: &AngleUpload,
) -> Result<()> {
    status(|error| sys::vkrope_record_angle_upload(commands, device, layout, upload, error))
}

// ---- Ops ----

/// A weight, bias or scale as the model stores it, row by row; without bytes: absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    /// Element type.
    pub element: Element,
    /// The elements.
    pub bytes: &'a [u8],
}

impl Source<'_> {
    fn view(&self, name: &str) -> Result<ParameterSource> {
        if self.bytes.is_empty() {
            return Ok(ParameterSource::default());
        }
        let (element, bytes) = (self.element, self.bytes.len());
        let size = unsafe { sys::vkrope_element_bytes(element) }.max(1) as usize;
        if bytes % size != 0 {
            return invalid(format!("{name} has {bytes} bytes: an element has {size}"));
        }
        Ok(ParameterSource {
            data: self.bytes.as_ptr().cast::<c_void>(),
            element,
            count: bytes / size,
        })
    }
}

/// Sources of one tensor, named as in [`TensorParameters`].
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct TensorSources<'a> {
    pub bias: Source<'a>,
    pub weight: Source<'a>,
    pub norm_bias: Source<'a>,
    pub store_scale: Source<'a>,
}

/// Plans the weights, biases and scales of a kernel in one buffer.
pub fn plan_parameters(info: &KernelInfo) -> Result<ParameterLayout> {
    value(|layout, error| unsafe { sys::vkrope_plan_parameters(info, layout, error) })
}

/// Writes the parameters of Q, K and V into `layout.bytes` bytes, aligned to 4.
pub fn fill_parameters(
    layout: &ParameterLayout,
    sources: &[TensorSources<'_>; 3],
    memory: &mut [u8],
) -> Result<()> {
    let mut given = ParameterSources::default();
    for (to, from) in given.tensor.iter_mut().zip(sources) {
        to.bias = from.bias.view("bias")?;
        to.weight = from.weight.view("weight")?;
        to.norm_bias = from.norm_bias.view("norm_bias")?;
        to.store_scale = from.store_scale.view("store_scale")?;
    }
    let (to, bytes) = (memory.as_mut_ptr().cast(), memory.len());
    status(|error| unsafe { sys::vkrope_fill_parameters(layout, &given, to, bytes, error) })
}

/// Plans the table of the factors of the query scale, for [`PositionCall`].
pub fn plan_query_scales(scale: &QueryScale, max_position: u64) -> Result<QueryScaleLayout> {
    value(|layout, error| unsafe {
        sys::vkrope_plan_query_scales(scale, max_position, layout, error)
    })
}

/// Writes the table of `layout` into `layout.bytes` bytes, aligned to 4.
pub fn fill_query_scales(layout: &QueryScaleLayout, memory: &mut [u8]) -> Result<()> {
    let (to, bytes) = (memory.as_mut_ptr().cast(), memory.len());
    status(|error| unsafe { sys::vkrope_fill_query_scales(layout, to, bytes, error) })
}

// ---- Scalings, which change frequencies in place ----

macro_rules! scalings {
    ($($(#[$text:meta])* $name:ident = $function:ident($($argument:ident: $kind:ty),*);)*) => {$(
        $(#[$text])*
        pub fn $name(inv_freq: &mut [f64], $($argument: $kind),*) -> Result<()> {
            let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
            status(|error| unsafe { sys::$function(to, count, $($argument,)* error) })
        }
    )*};
}

scalings! {
    /// Divides the frequencies by `factor`.
    scale_linear = vkrope_scale_linear(factor: f64);
    /// Multiplies the frequencies by `seq_scale`.
    scale_positions = vkrope_scale_positions(seq_scale: f64);
    /// NTK scaling by `alpha`.
    scale_ntk = vkrope_scale_ntk(alpha: f64);
    /// Sets the frequencies to 0 that make less than a turn in `length`.
    stop_slow_pairs = vkrope_stop_slow_pairs(length: f64);
    /// Dynamic NTK scaling for a sequence length.
    scale_dynamic_ntk = vkrope_scale_dynamic_ntk(scaling: &DynamicNtkScaling, seq_len: u64);
    /// Llama 3.1's scaling.
    scale_llama3 = vkrope_scale_llama3(scaling: &Llama3Scaling);
}

/// Divides each frequency by its own divisor.
pub fn scale_divisors(inv_freq: &mut [f64], divisors: &[f64]) -> Result<()> {
    let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
    status(|error| unsafe {
        sys::vkrope_scale_divisors(to, count, divisors.as_ptr(), divisors.len(), error)
    })
}

/// YaRN. Returns the attention factor.
pub fn scale_yarn(inv_freq: &mut [f64], base: f64, scaling: &YarnScaling) -> Result<f64> {
    let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
    value(|factor, error| unsafe {
        sys::vkrope_scale_yarn(to, count, base, scaling, factor, error)
    })
}

/// DeepSeek's YaRN. Returns the attention factor and the factor of the softmax scale.
pub fn scale_deepseek_yarn(
    inv_freq: &mut [f64],
    base: f64,
    scaling: &DeepseekYarnScaling,
) -> Result<(f64, f64)> {
    let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
    let (mut factor, mut softmax) = (0.0, 0.0);
    status(|error| unsafe {
        let (a, b) = (&mut factor, &mut softmax);
        sys::vkrope_scale_deepseek_yarn(to, count, base, scaling, a, b, error)
    })?;
    Ok((factor, softmax))
}

/// LongRoPE, with divisors that replace the pointers and the count of `scaling`. Returns the
/// attention factor.
pub fn scale_longrope(
    inv_freq: &mut [f64],
    short_factor: &[f64],
    long_factor: &[f64],
    scaling: &LongRopeScaling,
    seq_len: u64,
) -> Result<f64> {
    let (short, long) = (short_factor.len(), long_factor.len());
    if short != long {
        return invalid(format!(
            "long_factor has {long} numbers, short_factor {short}"
        ));
    }
    let scaling = LongRopeScaling {
        short_factor: pointer_to(short_factor),
        long_factor: pointer_to(long_factor),
        count: short_factor.len(),
        ..*scaling
    };
    let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
    value(|factor, error| unsafe {
        sys::vkrope_scale_longrope(to, count, &scaling, seq_len, factor, error)
    })
}

/// ggml's scaling; `freq_factors` replaces the pointer and the count of `scaling`. Returns the
/// attention factor.
pub fn scale_ggml(
    inv_freq: &mut [f64],
    base: f64,
    freq_factors: &[f64],
    scaling: &GgmlScaling,
) -> Result<f64> {
    let scaling = GgmlScaling {
        freq_factors: pointer_to(freq_factors),
        freq_factor_count: freq_factors.len(),
        ..*scaling
    };
    let (to, count) = (inv_freq.as_mut_ptr(), inv_freq.len());
    value(|factor, error| unsafe {
        sys::vkrope_scale_ggml(to, count, base, &scaling, factor, error)
    })
}

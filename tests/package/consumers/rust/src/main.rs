// SPDX-License-Identifier: MIT
// Rotates Q and K in host memory on the best Vulkan device, through the C interface.
//
// The program uses structs that the library makes only through pointers; it declares all fields of
// structs that it makes itself.
use std::ffi::{c_char, c_void, CStr};
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
    let work = make(vkrope_host_rotation_destroy, |made, error| unsafe {
        vkrope_host_rotation_create(device.0, vkrope_model_get_params(model.0), &shape, made, error)
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
    let name = unsafe { CStr::from_ptr((*vkrope_device_get_info(device.0)).name) }.to_string_lossy();
    Ok(format!(
        "Rust: {} values rotated on {name}",
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

//! Uniform variables of kernels as Rust structs.
//!
//! A kernel declares a struct and one uniform variable of it. A struct in Rust has the same fields with the same names, so a
//! dispatch names each number instead of relying on an order. A test parses every kernel and compares names, types, offsets
//! and sizes.

use bytemuck::Pod;

/// A Rust struct with the memory layout of a kernel's uniform variable.
pub trait Uniform: Pod {
    /// What the kernel must declare for this struct.
    const LAYOUT: UniformLayout;
}

/// Where a uniform variable is declared, and how its struct is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformLayout {
    /// The WGSL file that declares the variable.
    pub file: &'static str,
    /// The variable's name.
    pub variable: &'static str,
    /// The fields of its struct, in order.
    pub fields: &'static [UniformField],
    /// Bytes of the Rust struct. WGSL rounds the size up to the struct's alignment.
    pub bytes: usize,
}

/// One field of a uniform struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformField {
    /// Its name.
    pub name: &'static str,
    /// Its type as WGSL writes it.
    pub wgsl_type: &'static str,
    /// Bytes from the start of the struct.
    pub offset: usize,
}

/// A Rust type with a counterpart in WGSL.
pub(super) trait WgslType {
    /// How WGSL writes the type.
    const NAME: &'static str;
}

impl WgslType for u32 {
    const NAME: &'static str = "u32";
}

impl WgslType for f32 {
    const NAME: &'static str = "f32";
}

impl WgslType for [u32; 2] {
    const NAME: &'static str = "vec2<u32>";
}

impl WgslType for [u32; 4] {
    const NAME: &'static str = "vec4<u32>";
}

/// The value of a uniform variable of any struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniformValue {
    layout: UniformLayout,
    bytes: Vec<u8>,
}

impl UniformValue {
    /// The alignment of every struct that WebGPU accepts as a uniform: sizes are rounded up to it.
    const ALIGNMENT: usize = 16;

    /// What the kernel must declare for this value.
    pub fn layout(&self) -> &UniformLayout {
        &self.layout
    }

    /// The value's bytes, padded to a multiple of sixteen.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Uniform> From<T> for UniformValue {
    fn from(value: T) -> Self {
        let mut bytes = bytemuck::bytes_of(&value).to_vec();
        bytes.resize(bytes.len().next_multiple_of(Self::ALIGNMENT), 0);
        Self { layout: T::LAYOUT, bytes }
    }
}

/// Declares the uniform structs of WGSL files: `Name: "file" variable { field: type, … }`.
macro_rules! uniforms {
    ($($(#[$doc:meta])* $name:ident: $file:literal $variable:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
            #[repr(C)]
            #[expect(missing_docs, reason = "the WGSL file says what each field means")]
            pub struct $name { $(pub $field: $type,)* }

            impl Uniform for $name {
                const LAYOUT: UniformLayout = UniformLayout {
                    file: $file,
                    variable: stringify!($variable),
                    fields: &[$(UniformField {
                        name: stringify!($field),
                        wgsl_type: <$type as WgslType>::NAME,
                        offset: std::mem::offset_of!($name, $field),
                    },)*],
                    bytes: size_of::<$name>(),
                };
            }
        )*

        /// The layouts of all structs of this module.
        pub const LAYOUTS: &[UniformLayout] = &[$($name::LAYOUT,)*];
    };
}

pub(super) use uniforms;

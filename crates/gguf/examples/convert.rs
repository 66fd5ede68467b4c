//! Writes a model again with its large matrices in another format.
//!
//! ```console
//! $ cargo run --release -p rullama-gguf --example convert -- model-f16.gguf model-q8_0.gguf Q8_0
//! ```
//!
//! Vectors, and matrices whose rows are not whole blocks of the new format, stay as they are.
//! One tensor is in memory at a time.

use std::{fs::File, io::BufWriter};

use rullama_gguf::{Format, ModelTensor, Writer, open_path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, format] = arguments.as_slice() else {
        return Err("usage: convert INPUT OUTPUT FORMAT".into());
    };
    let wanted: Format = format.parse()?;
    let format_of = |tensor: &ModelTensor<'_>| {
        let matrix = tensor.shape.rows() > 1;
        let whole = wanted.row_bytes(tensor.shape.row_len()).is_some();
        if matrix && whole { wanted } else { tensor.format }
    };

    pollster::block_on(async {
        let model = open_path(input).await?;
        let mut writer = Writer::new();
        for (key, value) in model.header().entries() {
            if key == "general.alignment" {
                writer.set_alignment(model.header().alignment().try_into()?)?;
            } else {
                writer.set(key, value)?;
            }
        }
        for tensor in model.tensors() {
            writer.add_tensor(tensor.name, tensor.shape.dims(), format_of(&tensor))?;
        }
        let mut body = writer.begin(BufWriter::new(File::create(output)?))?;
        for tensor in model.tensors() {
            let bytes = model.read(tensor.range()).await?;
            let format = format_of(&tensor);
            if format == tensor.format {
                body.write_tensor(&bytes)?;
                continue;
            }
            let mut values = vec![0.0; usize::try_from(tensor.shape.values())?];
            tensor.format.decode(&bytes, &mut values)?;
            let row_bytes = format.row_bytes(tensor.shape.row_len()).unwrap_or_default();
            let mut encoded = vec![0; usize::try_from(row_bytes * tensor.shape.rows())?];
            format.encode(&values, &mut encoded)?;
            body.write_tensor(&encoded)?;
        }
        body.finish()?;
        Ok(())
    })
}

//! A model: one GGUF file, or several that belong together, with the source of its bytes.

use std::ops::Range;

use crate::{
    ByteSource, Format, Header, HeaderError, Metadata, MetadataError, ModelError, PartsSource, Shape,
    SourceError, Tensor,
};

/// An opened model. Its weights stay where they are until they are read.
pub struct Model {
    source: Box<dyn ByteSource>,
    /// Each file's header with the position of that file in `source`.
    parts: Vec<(u64, Header)>,
}

/// A tensor of a model, with the place of its data in the model's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelTensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its extents, fastest varying first.
    pub shape: Shape,
    /// How its values are stored.
    pub format: Format,
    /// Its offset as its file states it, counted from the start of that file's data section.
    pub offset: u64,
    /// Size of its data.
    pub bytes: u64,
    /// Which file of the model it is in, counted from 0.
    pub part: usize,
    start: u64,
}

impl ModelTensor<'_> {
    /// Its bytes in the model's source.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    /// The bytes of some of its rows in the model's source.
    pub fn rows_range(&self, rows: Range<u64>) -> Range<u64> {
        assert!(rows.start <= rows.end && rows.end <= self.shape.rows(), "rows {rows:?} of {}", self.shape);
        let row_bytes = self.row_bytes();
        self.start + rows.start * row_bytes..self.start + rows.end * row_bytes
    }

    /// The same values as rows of `width`, as they lie: a kernel of a convolution as a matrix. `None` if no number of such
    /// rows holds them, or if a row would end within a row of the file.
    pub fn as_rows_of(self, width: u64) -> Option<Self> {
        let (row, values) = (self.shape.row_len(), self.shape.values());
        if width == row {
            return Some(self);
        }
        let fits = row > 0 && width > 0 && width.is_multiple_of(row) && values.is_multiple_of(width);
        let shape = fits.then(|| Shape::new(&[width, values / width]))??;
        Some(Self { shape, ..self })
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> u64 {
        self.format.row_bytes(self.shape.row_len()).expect("checked when the header was read")
    }
}

impl Model {
    /// Opens a model that is one file.
    pub async fn open(source: Box<dyn ByteSource>) -> Result<Self, ModelError> {
        let header = read_header(source.as_ref()).await?;
        let expected = split_count(&header)?;
        if expected > 1 {
            return Err(ModelError::PartCount { found: 1, expected });
        }
        Ok(Self { source, parts: vec![(0, header)] })
    }

    /// Opens a model that is split into several files, given in order.
    pub async fn open_parts(sources: Vec<Box<dyn ByteSource>>) -> Result<Self, ModelError> {
        let source = PartsSource::new(sources);
        let mut parts: Vec<(u64, Header)> = Vec::new();
        for (start, part) in source.parts() {
            parts.push((start, read_header(part).await?));
        }
        let names: Vec<&str> = source.parts().map(|(_, part)| part.name()).collect();
        check_parts(&parts, &names)?;
        Ok(Self { source: Box::new(source), parts })
    }

    /// This model with the tensors of another beside its own, such as a projector's beside those of the text model. Its
    /// metadata stay its own; those of the other are in [`headers`](Self::headers).
    pub fn join(self, other: Self) -> Result<Self, ModelError> {
        if let Some(tensor) = other.tensors().find(|tensor| self.tensor(tensor.name).is_some()) {
            return Err(ModelError::DuplicateTensor { name: tensor.name.to_owned() });
        }
        let start = self.source.len();
        let mut parts = self.parts;
        parts.extend(other.parts.into_iter().map(|(at, header)| (start + at, header)));
        let source = Box::new(PartsSource::new(vec![self.source, other.source]));
        Ok(Self { source, parts })
    }

    /// The headers of all of its files, in order.
    pub fn headers(&self) -> impl Iterator<Item = &Header> {
        self.parts.iter().map(|(_, header)| header)
    }

    /// The header of the model's first file, which holds all of its metadata.
    pub fn header(&self) -> &Header {
        &self.parts[0].1
    }

    /// The model's metadata.
    pub fn metadata(&self) -> Metadata<'_> {
        self.header().metadata()
    }

    /// Where the model's bytes come from.
    pub fn source(&self) -> &dyn ByteSource {
        self.source.as_ref()
    }

    /// How many files the model is made of.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Every tensor, file by file, in the order of the files.
    pub fn tensors(&self) -> impl Iterator<Item = ModelTensor<'_>> {
        self.parts
            .iter()
            .enumerate()
            .flat_map(|(part, (_, header))| header.tensors().map(move |tensor| (part, tensor)))
            .map(|(part, tensor)| self.located(part, tensor))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<ModelTensor<'_>> {
        self.parts
            .iter()
            .enumerate()
            .find_map(|(part, (_, header))| Some(self.located(part, header.tensor(name)?)))
    }

    /// Reads a range of the model's bytes, such as [`ModelTensor::range`].
    pub async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.source.read(range).await
    }

    fn located<'a>(&self, part: usize, tensor: Tensor<'a>) -> ModelTensor<'a> {
        let (start, header) = &self.parts[part];
        ModelTensor {
            name: tensor.name,
            shape: tensor.shape,
            format: tensor.format,
            offset: tensor.offset,
            bytes: tensor.bytes,
            part,
            start: start + header.data_start() + tensor.offset,
        }
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("source", &self.source.name()).field("parts", &self.parts).finish()
    }
}

/// Opens the model at `path`; of a split model, any of its files names all of them.
#[cfg(any(unix, windows))]
pub async fn open_path(path: impl AsRef<std::path::Path>) -> Result<Model, ModelError> {
    let path = path.as_ref();
    let file = |path: &std::path::Path| -> Result<Box<dyn ByteSource>, SourceError> {
        Ok(Box::new(crate::FileSource::open(path)?))
    };
    let split = path.file_name().and_then(|name| crate::SplitName::parse(name.to_str()?));
    match split {
        None => Model::open(file(path)?).await,
        Some(split) => {
            let sources = split.parts().map(|name| file(&path.with_file_name(name)));
            Model::open_parts(sources.collect::<Result<_, _>>()?).await
        }
    }
}

async fn read_header(source: &dyn ByteSource) -> Result<Header, ModelError> {
    Header::read(source).await.map_err(|error| match error {
        HeaderError::Source(error) => ModelError::Source(error),
        source_error => ModelError::Header { name: source.name().to_owned(), source: source_error },
    })
}

/// How many files the model of this header is made of.
fn split_count(header: &Header) -> Result<u64, MetadataError> {
    Ok(header.metadata().optional_u64("split.count")?.unwrap_or(1).max(1))
}

/// The files are all of one model, complete, in order, and no tensor is in two of them.
fn check_parts(parts: &[(u64, Header)], names: &[&str]) -> Result<(), ModelError> {
    let found = parts.len() as u64;
    let Some((_, first)) = parts.first() else {
        return Err(ModelError::PartCount { found, expected: 1 });
    };
    for (index, (_, header)) in parts.iter().enumerate() {
        let expected = split_count(header)?;
        if expected != found {
            return Err(ModelError::PartCount { found, expected });
        }
        let number = header.metadata().optional_u64("split.no")?.unwrap_or(0);
        if number != index as u64 {
            let name = names[index].to_owned();
            let (found, expected) = (number.saturating_add(1), index as u64 + 1);
            return Err(ModelError::PartNumber { name, found, expected });
        }
    }
    let found: u64 = parts.iter().map(|(_, header)| header.tensor_count() as u64).sum();
    if let Some(expected) = first.metadata().optional_u64("split.tensors.count")?
        && expected != found
    {
        return Err(ModelError::PartTensors { found, expected });
    }
    for (index, (_, header)) in parts.iter().enumerate() {
        for tensor in header.tensors() {
            if parts[..index].iter().any(|(_, earlier)| earlier.tensor(tensor.name).is_some()) {
                return Err(ModelError::DuplicateTensor { name: tensor.name.to_owned() });
            }
        }
    }
    Ok(())
}

//! From the patches of a picture to the inputs of its graph.

use rullama_gguf::{Model, ModelTensor};

use super::{VisionConfig, VisionTower, config::AXES};
use crate::{GemmaError, TowerError, clip::decoded, names};

/// The base of the frequencies with which patches are turned.
const BASE: f64 = 100.0;

/// A picture, cut into patches.
#[derive(Debug, Clone, Copy)]
pub struct Patches<'a> {
    /// Patches in a row of the picture.
    pub columns: u32,
    /// Rows of patches.
    pub rows: u32,
    /// The patches, row by row of the picture: of each all red values, then the green and the blue ones, each row by row.
    pub values: &'a [f32],
}

/// The inputs of a picture's graph: rows of values, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionInputs {
    /// The patches, cell by cell.
    pub patches: Vec<f32>,
    /// What says where each patch is.
    pub places: Vec<f32>,
    /// The angles by which each patch's heads are turned, as cosines and sines; none without a tower.
    pub turns: Vec<f32>,
}

impl VisionInputs {
    /// The inputs by the names that the graph has for them.
    pub fn by_name(&self) -> Vec<(&'static str, &[f32])> {
        let all = [("patches", &self.patches), ("places", &self.places), ("turns", &self.turns)];
        all.into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| (name, &values[..]))
            .collect()
    }
}

/// Where a patch is: its column and its row.
type Place = [u32; AXES as usize];

impl VisionConfig {
    /// How many soft rows so many columns and rows of patches become: one for each cell.
    pub fn soft_rows(&self, columns: u32, rows: u32) -> Result<u32, TowerError> {
        let (side, most) = (self.cell_side(), self.positions);
        let fits = |patches: u32| (side..=most).contains(&patches) && patches.is_multiple_of(side);
        if fits(columns) && fits(rows) {
            Ok((columns / side).saturating_mul(rows / side))
        } else {
            Err(TowerError::Patches { columns, rows, multiple: side, most })
        }
    }

    /// The inputs of a picture. Reads the entries of the position tables that it needs.
    pub async fn inputs(&self, model: &Model, picture: Patches<'_>) -> Result<VisionInputs, TowerError> {
        let Patches { columns, rows, values } = picture;
        self.soft_rows(columns, rows)?;
        let (width, count) = (self.patch_width() as usize, (columns as usize).saturating_mul(rows as usize));
        if values.len() != count.saturating_mul(width) {
            return Err(TowerError::PatchValues { found: values.len(), patches: count, width });
        }
        let places = self.places([columns, rows]);
        let patch = |&[column, row]: &Place| &values[(row * columns + column) as usize * width..][..width];
        let patches = places.iter().flat_map(patch).copied().collect();
        let turns = match &self.tower {
            Some(tower) => turns(tower, self.width, &places),
            None => Vec::new(),
        };
        let places = self.place_rows(model, [columns, rows], &places).await?;
        Ok(VisionInputs { patches, places, turns })
    }

    /// Where the rows of the graph are, in their order: cell by cell, row by row of the picture, and the same within a cell.
    fn places(&self, [columns, rows]: [u32; 2]) -> Vec<Place> {
        let side = self.cell_side();
        let cells = (0..rows / side).flat_map(|row| (0..columns / side).map(move |column| [column, row]));
        let within = move |[column, row]: Place| {
            (0..side * side).map(move |at| [column * side + at % side, row * side + at / side])
        };
        cells.flat_map(within).collect()
    }

    /// For each place, the sum of what the tables have for its column and for its row.
    async fn place_rows(
        &self,
        model: &Model,
        extents: [u32; 2],
        places: &[Place],
    ) -> Result<Vec<f32>, TowerError> {
        let width = self.width as usize;
        let name = names::PLACES;
        let tensor = model.tensor(name).ok_or_else(|| GemmaError::MissingTensor { name: name.to_owned() })?;
        let columns = self.table(model, &tensor, 0, extents[0]).await?;
        let rows = self.table(model, &tensor, 1, extents[1]).await?;
        let mut out = Vec::with_capacity(places.len() * width);
        for &[column, row] in places {
            let (column, row) = (&columns[column as usize * width..], &rows[row as usize * width..]);
            out.extend(column[..width].iter().zip(&row[..width]).map(|(a, b)| a + b));
        }
        Ok(out)
    }

    /// The first entries of the table of one axis.
    async fn table(
        &self,
        model: &Model,
        tensor: &ModelTensor<'_>,
        axis: u64,
        entries: u32,
    ) -> Result<Vec<f32>, TowerError> {
        let first = axis * u64::from(self.positions);
        let range = tensor.rows_range(first..first + u64::from(entries));
        decoded(tensor, &model.read(range).await?)
    }
}

/// For each place, the cosines and then the sines of the angles of each axis.
fn turns(tower: &VisionTower, width: u32, places: &[Place]) -> Vec<f32> {
    let part = tower.head_width(width) / AXES;
    let frequency = |pair: u32| BASE.powf(-2.0 * f64::from(pair) / f64::from(part));
    let frequencies: Vec<f64> = (0..part / 2).map(frequency).collect();
    let mut out = Vec::with_capacity(places.len() * (AXES * part) as usize);
    for place in places {
        for &position in place {
            let angles = frequencies.iter().map(|frequency| f64::from(position) * frequency);
            out.extend(angles.clone().map(|angle| angle.cos() as f32));
            out.extend(angles.map(|angle| angle.sin() as f32));
        }
    }
    out
}

//! One conversation with a model on the GPU, and the steps that add to it.

mod choosing;
mod input;

use std::{future::poll_fn, rc::Rc, task::Poll};

use futures_util::lock::MutexGuard;
pub use input::{RowInput, StepInput};

use rullama_graph::Ahead;

use crate::{
    GpuError, GpuModel,
    options::prompt_shape,
    plan::Plan,
    readback,
    rows::{MOST_SLOTS, RowTable, StepSize},
    run::{BufferCopy, Ending, SharedRun, soft_token, write_table},
    step_buffers::soft_width,
};

/// One conversation with a model. Opening one costs nothing: it gets a slot of the model's cache pool when it reads its first
/// token. Where there are more conversations than slots, the one used least recently loses its slot and forgets everything;
/// what it is asked next fails with [`GpuError::Evicted`], until it is [set back](Self::truncate).
pub struct GpuState {
    pub(crate) model: Rc<GpuModel>,
    pub(crate) shared: Rc<SharedRun>,
    pub(crate) id: u64,
}

/// A step that was written and may be submitted.
pub(crate) struct WrittenStep {
    pub(crate) plan: Rc<Plan>,
    pub(crate) size: StepSize,
}

impl GpuState {
    pub(crate) fn new(model: Rc<GpuModel>) -> Result<Self, GpuError> {
        let shared = model.run()?;
        let id = shared.borrow().open();
        Ok(Self { model, shared, id })
    }

    /// Tokens remembered.
    pub fn len(&self) -> usize {
        self.shared.borrow().conversation(self.id).len as usize
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps the first `len` tokens, or none if a sliding layer has overwritten keys that are still needed.
    pub fn truncate(&mut self, len: usize) {
        let mut run = self.shared.borrow();
        let conversation = run.conversation(self.id);
        conversation.end();
        conversation.evicted = false;
        let len = conversation.len.min(len as u32);
        let caches = self.model.graph.caches().iter().zip(&self.model.capacities);
        let forgotten = caches.filter_map(|(cache, &capacity)| Some((cache.window?, capacity))).any(
            // What a row at `len` sees begins a window before it; what is still there begins a ring before the end.
            |(window, capacity)| (len + 1).saturating_sub(window) + capacity < conversation.written,
        );
        conversation.len = if forgotten { 0 } else { len };
        if conversation.len == 0 {
            conversation.written = 0;
            if let Some(slot) = run.pool.slot_of(self.id) {
                run.pool.repair(&self.model.gpu, slot);
            }
        }
    }

    /// Ends the reply that was begun, if any was: its tokens are not wanted any more. What was read stays.
    pub fn end(&mut self) {
        self.shared.borrow().conversation(self.id).end();
        self.unpin();
    }

    /// Tokens a step may have.
    pub fn rows_at_once(&self) -> usize {
        self.model.rows_at_once()
    }

    /// Tokens that a conversation may have.
    pub fn context(&self) -> usize {
        self.model.options.context as usize
    }

    /// Tokens in the vocabulary: columns of the output.
    pub fn vocabulary(&self) -> usize {
        self.model.graph.value(self.model.graph.output()).shape.width as usize
    }

    /// Reads the rows of `input` and gives the graph's output, row by row. If it fails or is dropped, nothing was read.
    pub async fn step(&mut self, input: impl Into<StepInput<'_>>) -> Result<Vec<f32>, GpuError> {
        let input = input.into();
        let output = self.model.graph.value(self.model.graph.output()).shape;
        let bytes = 4 * u64::from(output.width) * output.rows.count(input.rows.len()) as u64;
        let result = self.step_in_turn(&input, bytes).await;
        // A step that follows the chunks of a prompt ends it.
        self.unpin();
        let (slot, read, submission) = result?;
        let logits = readback::floats(&self.model.gpu, &read, bytes, submission).await?;
        let tokens = {
            let mut run = self.shared.borrow();
            run.spare.push(read);
            let conversation = run.conversation(self.id);
            let tokens = conversation.len as usize + input.rows.len();
            // Evicted meanwhile, it remembers nothing; the logits are right all the same.
            if conversation.evicted { None } else { Some(tokens) }
        };
        self.check_finite(&logits, slot, tokens.unwrap_or(input.rows.len()))?;
        if tokens.is_some() {
            self.shared.borrow().conversation(self.id).len += input.rows.len() as u32;
        }
        Ok(logits)
    }

    /// Writes and submits a step, and a copy of its output. Gives the slot, and where the output comes back.
    async fn step_in_turn(
        &self,
        input: &StepInput<'_>,
        bytes: u64,
    ) -> Result<(u32, wgpu::Buffer, wgpu::SubmissionIndex), GpuError> {
        let (_turn, slot) = self.turn().await?;
        let WrittenStep { plan, size } = self.write(input, slot).await?;
        let (from, to) = {
            let mut run = self.shared.borrow();
            (run.buffers.outputs[0].clone(), run.read_buffer(&self.model, bytes))
        };
        let copy = BufferCopy { from, to: to.clone(), to_offset: 0, bytes };
        let ending = Ending { choosers: Vec::new(), copies: vec![copy] };
        let submission = self.model.submit(&self.shared, &plan, size, ending).await?;
        Ok((slot, to, submission))
    }

    /// Refuses logits that are not finite. Those after a row with an infinity or NaN are all NaN, so the first few tell.
    fn check_finite(&self, logits: &[f32], slot: u32, tokens: usize) -> Result<(), GpuError> {
        if logits.iter().all(|logit| logit.is_finite()) { Ok(()) } else { Err(self.not_finite(slot, tokens)) }
    }

    fn not_finite(&self, slot: u32, tokens: usize) -> GpuError {
        let mut run = self.shared.borrow();
        if run.pool.held_by(self.id) == Some(slot) {
            run.pool.damage(slot);
        }
        GpuError::NotFinite { value: "logits", tokens }
    }

    /// Checks a step's rows and writes what the step reads. The turn is held.
    pub(crate) async fn write(&self, input: &StepInput<'_>, slot: u32) -> Result<WrittenStep, GpuError> {
        let StepInput { rows, spans } = input;
        let (model, shared) = (&*self.model, &*self.shared);
        let position = shared.borrow().conversation(self.id).len;
        let (context, cached) = (model.options.context as usize, position as usize);
        if rows.is_empty() || rows.len() > self.rows_at_once() || cached + rows.len() > context {
            return Err(GpuError::StepSize { rows: rows.len(), cached, context });
        }
        let ids = self.checked_ids(rows)?;
        input.check_spans()?;
        let ahead = shared.borrow().ahead;
        let count = rows.len() as u32;
        let shape = prompt_shape(count, model.options.most_rows());
        let plan = model.prepare(shared, shape).await?;
        let row_tables = shared.borrow().buffers.row_tables.clone();
        if let Some(tables) = row_tables {
            tables.fill(&model.gpu, model.set.source(), &model.manifest, &ids).await?;
        }
        let mut table = RowTable::prompt(slot, position, count);
        let mut soft: Vec<f32> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if let RowInput::Soft(given) = row {
                table.soften(index, (soft.len() / given.len()) as u32);
                soft.extend_from_slice(given);
            }
        }
        for span in spans {
            table.join(span.clone(), ahead.layers(Ahead::Span));
        }
        table.join(0..rows.len(), ahead.layers(Ahead::Step));
        let mut run = shared.borrow();
        model.gpu.queue.write_buffer(&run.buffers.soft_rows, 0, bytemuck::cast_slice(&soft));
        model.gpu.queue.write_buffer(
            &run.buffers.tokens,
            4 * u64::from(MOST_SLOTS),
            bytemuck::cast_slice(&ids),
        );
        let conversation = run.conversation(self.id);
        conversation.written = conversation.written.max(position + count);
        drop(run);
        write_table(model, shared, &table, shape);
        Ok(WrittenStep { plan, size: table.size() })
    }

    /// The tokens of rows; where a tower made a row, the token that stands for it.
    fn checked_ids(&self, rows: &[RowInput<'_>]) -> Result<Vec<u32>, GpuError> {
        let (vocabulary, expected) = (self.model.vocabulary, soft_width(&self.model.graph) as usize);
        let id = |row: &RowInput<'_>| match *row {
            RowInput::Token(id) if id >= vocabulary => Err(GpuError::UnknownToken { id, vocabulary }),
            RowInput::Token(id) => Ok(id),
            RowInput::Soft(row) if row.len() != expected => {
                Err(GpuError::SoftWidth { found: row.len(), expected })
            }
            RowInput::Soft(_) => Ok(soft_token(&self.model)),
        };
        rows.iter().map(id).collect()
    }

    /// The turn, with a slot for the conversation. Where every slot belongs to a conversation whose prompt is being read, it
    /// waits for the end of one.
    pub(crate) async fn turn(&self) -> Result<(MutexGuard<'_, ()>, u32), GpuError> {
        loop {
            let turn = self.shared.turn.lock().await;
            if self.shared.borrow().conversation(self.id).evicted {
                return Err(GpuError::Evicted);
            }
            if let Some(slot) = self.model.slot(&self.shared, self.id).await? {
                return Ok((turn, slot));
            }
            drop(turn);
            let mut waited = false;
            poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                self.shared.borrow().waiting.push(context.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }
}

impl Drop for GpuState {
    fn drop(&mut self) {
        let mut run = self.shared.borrow();
        run.conversations.remove(&self.id);
        run.pool.release(self.id);
        run.wake();
    }
}

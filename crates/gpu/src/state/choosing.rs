//! Tokens that the GPU chooses, while steps for the next ones are in flight.
//!
//! Conversations that generate at the same time share steps of one row each, so the weights are read once. The conversation
//! that asks for a token submits the steps for all.

use std::rc::Rc;

use super::{GpuState, StepInput, WrittenStep};
use crate::{
    GpuError,
    options::decode_shape,
    plan::Plan,
    readback::{Readback, SharedReadback},
    rows::RowTable,
    run::{BufferCopy, Choice, Conversation, Ending, Run, write_table},
    sample::{self, Sampling},
    tuning::STEPS_IN_FLIGHT,
};

/// What comes back of a choice: token and status. After a step without one, the first logits.
const CHOICE_BYTES: u64 = 16;

impl GpuState {
    /// Reads the rows of `input`, at most one step of them, and gives no output. If it fails or is dropped, nothing was read.
    /// The conversation keeps its slot until a reply [begins](Self::begin) or [ends](Self::end).
    pub async fn read(&mut self, input: impl Into<StepInput<'_>>) -> Result<(), GpuError> {
        self.shared.borrow().conversation(self.id).pinned = true;
        let before = self.len();
        let (slot, first_logits) = self.read_step(&input.into(), None).await?;
        // Waits for the step: a prompt that is cancelled should not leave the GPU busy for long, and other conversations may
        // want a step in between.
        let read = Unfinished { state: self, before };
        let (words, buffer) = first_logits.step.words(&read.state.model.gpu, first_logits.at).await?;
        read.finish();
        self.shared.borrow().spare.extend(buffer);
        let tokens = self.len();
        self.check_finite(bytemuck::cast_slice(&words), slot, tokens).inspect_err(|_| {
            self.shared.borrow().conversation(self.id).len = before as u32;
        })
    }

    /// Reads the rows of `input`, at most one step of them, and chooses a token after them, and one after another, up to
    /// `most`. Steps for tokens that [`next_token`](Self::next_token) has not asked for yet are already in flight.
    ///
    /// `history` holds all tokens read, those of `input` at its end: penalties look back on it.
    pub async fn begin(
        &mut self,
        input: impl Into<StepInput<'_>>,
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        // Discards the steps of an earlier reply that are still in flight.
        self.shared.borrow().conversation(self.id).end();
        let before = self.len();
        let result = self.read_and_choose(&input.into(), sampling, history, most).await;
        if result.is_err() && !matches!(result, Err(GpuError::Evicted)) {
            self.truncate(before);
        }
        self.unpin();
        result
    }

    /// Lets other conversations have the slot, should they need it.
    pub(super) fn unpin(&self) {
        let mut run = self.shared.borrow();
        run.conversation(self.id).pinned = false;
        run.wake();
    }

    async fn read_and_choose(
        &self,
        input: &StepInput<'_>,
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        let model = &*self.model;
        let (_turn, slot) = self.turn().await?;
        let bytes = sample::most_bytes(model.vocabulary, model.options.context);
        let (begun, outcome) = {
            let mut run = self.shared.borrow();
            let chooser = &mut run.choosers[slot as usize];
            let begin = || chooser.begin(&model.gpu, model.gpu.pipelines(), sampling, history);
            model.gpu.allocate("the choice of tokens", bytes, begin)
        };
        outcome.known().await?;
        begun?;
        self.read_in_turn(input, Some(most.saturating_sub(1)), slot).await?;
        self.run_ahead().await
    }

    /// Reads `input` in one step. With `wanted`, a token is chosen after it, and as many more may be.
    async fn read_step(
        &self,
        input: &StepInput<'_>,
        wanted: Option<usize>,
    ) -> Result<(u32, Choice), GpuError> {
        let (_turn, slot) = self.turn().await?;
        let choice = self.read_in_turn(input, wanted, slot).await?;
        Ok((slot, choice))
    }

    /// The same, where the turn is held.
    async fn read_in_turn(
        &self,
        input: &StepInput<'_>,
        wanted: Option<usize>,
        slot: u32,
    ) -> Result<Choice, GpuError> {
        let model = &*self.model;
        let WrittenStep { plan, size } = self.write(input, slot).await?;
        let (ending, read) = {
            let mut run = self.shared.borrow();
            let read = run.read_buffer(model, CHOICE_BYTES);
            let from = match wanted {
                Some(_) => run.choosers[slot as usize].chosen().clone(),
                None => run.buffers.outputs[0].clone(),
            };
            let bytes = CHOICE_BYTES.min(from.size());
            let copies = vec![BufferCopy { from, to: read.clone(), to_offset: 0, bytes }];
            (Ending { choosers: wanted.map(|_| slot).into_iter().collect(), copies }, read)
        };
        let submission = model.submit(&self.shared, &plan, size, ending).await?;
        let step = SharedReadback::new(Readback::start(read, CHOICE_BYTES, submission));
        let choice = Choice { step: Rc::new(step), at: 0 };
        let mut run = self.shared.borrow();
        let conversation = run.conversation(self.id);
        conversation.len += input.rows.len() as u32;
        if let Some(wanted) = wanted {
            conversation.choices.push_back(choice.clone());
            conversation.wanted = wanted;
        }
        Ok(choice)
    }

    /// The next token, which is read already or will be by a step in flight.
    pub async fn next_token(&mut self) -> Result<u32, GpuError> {
        let (choice, tokens, slot) = {
            let (_turn, slot) = self.turn().await?;
            self.shared.borrow().conversation(self.id).lags = false;
            self.read_choice(slot).await?;
            self.run_ahead().await?;
            let mut run = self.shared.borrow();
            let conversation = run.conversation(self.id);
            let tokens = conversation.len as usize + 1 - conversation.choices.len();
            let choice = conversation.choices.front().cloned();
            let choice =
                choice.ok_or(GpuError::Unsupported { operation: "more tokens than were asked for" })?;
            (choice, tokens, slot)
        };
        // Taken when it is there: if the caller gives up waiting, it is found the next time.
        let (words, buffer) = choice.step.words(&self.model.gpu, choice.at).await?;
        let mut run = self.shared.borrow();
        run.spare.extend(buffer);
        let host_reads = run.buffers.host_reads();
        let conversation = run.conversation(self.id);
        // A conversation that was evicted meanwhile still gets the token that is here, so that it makes progress however often
        // it has to be read again. The next call says that it was evicted.
        let evicted = conversation.evicted;
        if !evicted {
            conversation.choices.pop_front();
        }
        match words[..] {
            [token, 0, ..] => {
                conversation.unread = (host_reads && !evicted).then_some(token);
                Ok(token)
            }
            [_, 1, ..] => {
                drop(run);
                Err(self.not_finite(slot, tokens))
            }
            _ => Err(GpuError::NothingLeft { vocabulary: self.model.vocabulary }),
        }
    }

    /// Submits the step that reads the last choice, where the host had to see it first. The turn is held.
    async fn read_choice(&self, slot: u32) -> Result<(), GpuError> {
        let (token, wanted) = {
            let mut run = self.shared.borrow();
            let conversation = run.conversation(self.id);
            let goes_on = conversation.wanted > 0 && conversation.len < self.model.options.context;
            let Some(token) = conversation.unread.filter(|_| goes_on) else { return Ok(()) };
            (token, conversation.wanted - 1)
        };
        self.read_in_turn(&StepInput::from(&[token]), Some(wanted), slot).await?;
        self.shared.borrow().conversation(self.id).unread = None;
        Ok(())
    }

    /// Submits steps ahead of the host, each of which reads the token that the step before it chose: for this
    /// conversation, and for all others that are being written. The turn is held.
    async fn run_ahead(&self) -> Result<(), GpuError> {
        let together = || decoded_together(&mut self.shared.borrow(), self.id, self.model.options.context);
        while let Some(wanted) = together() {
            let plan = self.model.prepare(&self.shared, decode_shape(wanted.len() as u32)).await?;
            // While a new plan was made, a conversation may have ended, or another one begun.
            match together() {
                Some(now) if now.len() == wanted.len() => self.decode(&plan, &now).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// One step that reads the last choice of each of these conversations and chooses the next. Nothing is awaited before the
    /// step is submitted: a plan without paged experts does not pause.
    async fn decode(&self, plan: &Plan, together: &[u64]) -> Result<(), GpuError> {
        let (model, shared) = (&*self.model, &*self.shared);
        let shape = decode_shape(together.len() as u32);
        let (table, ending, read) = {
            let mut run = shared.borrow();
            let bytes = CHOICE_BYTES * together.len() as u64;
            let read = run.read_buffer(model, bytes);
            let mut rows = Vec::new();
            let mut ending = Ending::default();
            for (index, &id) in together.iter().enumerate() {
                let slot = run.pool.held_by(id).expect("a conversation in a reply has a slot");
                let conversation = run.conversation(id);
                rows.push((slot, conversation.len));
                conversation.written = conversation.written.max(conversation.len + 1);
                ending.choosers.push(slot);
                ending.copies.push(BufferCopy {
                    from: run.choosers[slot as usize].chosen().clone(),
                    to: read.clone(),
                    to_offset: CHOICE_BYTES * index as u64,
                    bytes: CHOICE_BYTES,
                });
            }
            (RowTable::decode(&rows), ending, read)
        };
        write_table(model, shared, &table, shape);
        let submission = model.submit(shared, plan, table.size(), ending).await?;
        let bytes = CHOICE_BYTES * together.len() as u64;
        let step = Rc::new(SharedReadback::new(Readback::start(read, bytes, submission)));
        let mut run = shared.borrow();
        for (index, &id) in together.iter().enumerate() {
            let conversation = run.conversation(id);
            let at = index * CHOICE_BYTES as usize / 4;
            conversation.choices.push_back(Choice { step: step.clone(), at });
            conversation.len += 1;
            conversation.wanted -= 1;
        }
        Ok(())
    }
}

/// The conversations to decode in the next step, or none if it should wait.
///
/// A conversation whose tokens are taken slowly would make every step one for the others alone, so a step waits until all
/// have room for its choice, or until `asking` has nothing in flight any more; from then on others do not wait for it.
fn decoded_together(run: &mut Run, asking: u64, context: u32) -> Option<Vec<u64>> {
    if run.buffers.host_reads() {
        return None;
    }
    let goes_on = |conversation: &Conversation| {
        conversation.wanted > 0 && conversation.len < context && !conversation.choices.is_empty()
    };
    let has_room = |conversation: &Conversation| conversation.choices.len() < STEPS_IN_FLIGHT;
    let own = run.conversations.get(&asking)?;
    if !(own.wanted > 0 && own.len < context && has_room(own)) {
        return None;
    }
    let starves = own.choices.len() <= 1;
    let others_wait = run
        .conversations
        .values()
        .filter(|conversation| goes_on(conversation) && !conversation.lags)
        .any(|conversation| !has_room(conversation));
    if others_wait && !starves {
        return None;
    }
    for conversation in run.conversations.values_mut() {
        conversation.lags |= goes_on(conversation) && !has_room(conversation);
    }
    let together = run
        .conversations
        .iter()
        .filter(|(id, conversation)| **id == asking || (goes_on(conversation) && has_room(conversation)))
        .map(|(&id, _)| id);
    Some(together.collect())
}

/// A step whose result is awaited. If the caller gives up, the conversation is set back: nothing was read.
struct Unfinished<'s> {
    state: &'s GpuState,
    before: usize,
}

impl Unfinished<'_> {
    fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.state.shared.borrow().conversation(self.state.id).len = self.before as u32;
    }
}

//! Tokens that the GPU chooses, while steps for the next ones are under way.

use super::GpuState;
use crate::{
    GpuError, GpuModel,
    params::Step,
    sample::{self, Sampling},
};

/// Steps that are under way at once while tokens are generated: enough that the GPU never waits for the host.
const AHEAD: usize = 4;

impl GpuState {
    /// Reads `ids` and chooses a token after them, and one after another, up to `most`, while steps are under way
    /// already for those that [`next_token`](Self::next_token) has not asked for.
    ///
    /// `history` is what was read before, with `ids` at its end: penalties look back on it.
    pub async fn begin(
        &mut self,
        ids: &[u32],
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        // What a reply before this one had begun is in nobody's interest any more.
        self.choices.clear();
        (self.wanted, self.unread) = (0, None);
        let before = self.len;
        let result = self.read_and_choose(ids, sampling, history, most).await;
        if result.is_err() {
            self.truncate(before as usize);
        }
        result
    }

    async fn read_and_choose(
        &mut self,
        ids: &[u32],
        sampling: &Sampling,
        history: &[u32],
        most: usize,
    ) -> Result<(), GpuError> {
        let GpuModel { gpu, pipelines, .. } = &*self.model;
        let bytes = sample::most_bytes(self.model.vocabulary, self.model.options.context);
        let begin = || self.sampler.begin(gpu, pipelines, sampling, history);
        let (begun, outcome) = gpu.allocate("the choice of tokens", bytes, begin);
        outcome.known().await?;
        begun?;
        let at_once = self.rows_at_once();
        let rest = ids.len().saturating_sub(1) / at_once * at_once;
        let (first, last) = ids.split_at(rest);
        for ids in first.chunks(at_once) {
            let size = self.write_ids(ids).await?;
            let mut choice = self.choose(size, false).await?;
            self.len += size.rows;
            let tokens = self.len;
            // One chunk after another: a reply that is dropped should not leave the GPU busy for long.
            let (words, buffer) = choice.words(&self.model.gpu).await?;
            self.spare.push(buffer);
            self.check_finite(bytemuck::cast_slice(&words), tokens)?;
        }
        let size = self.write_ids(last).await?;
        let choice = self.choose(size, true).await?;
        self.choices.push_back(choice);
        self.len += size.rows;
        self.wanted = most.saturating_sub(1);
        self.run_ahead().await
    }

    /// The next token, which is read already or will be by a step under way.
    pub async fn next_token(&mut self) -> Result<u32, GpuError> {
        self.read_choice().await?;
        self.run_ahead().await?;
        let tokens = self.len() + 1 - self.choices.len();
        let choice = self.choices.front_mut();
        let choice = choice.ok_or(GpuError::Unsupported { operation: "a token after the last" })?;
        // Taken when it is there: whoever gives up waiting for it finds it the next time.
        let (words, buffer) = choice.words(&self.model.gpu).await?;
        self.choices.pop_front();
        self.spare.push(buffer);
        match words[..] {
            [token, 0, ..] => {
                self.unread = self.host_reads().then_some(token);
                Ok(token)
            }
            [_, 1, ..] => Err(self.not_finite(tokens)),
            _ => Err(GpuError::NothingLeft { vocabulary: self.model.vocabulary }),
        }
    }

    /// Whether the host has to see a token before a step can read it.
    fn host_reads(&self) -> bool {
        self.row_tables.is_some() || self.paging.is_some()
    }

    /// Begins the step that reads the last choice, where the host had to see it first.
    async fn read_choice(&mut self) -> Result<(), GpuError> {
        let goes_on = self.wanted > 0 && self.len < self.model.options.context;
        let Some(token) = self.unread.filter(|_| goes_on) else { return Ok(()) };
        let size = self.write_ids(&[token]).await?;
        let choice = self.choose(size, true).await?;
        self.choices.push_back(choice);
        (self.len, self.wanted, self.unread) = (self.len + 1, self.wanted - 1, None);
        Ok(())
    }

    /// Begins steps for tokens that nobody has seen yet, each of which reads what the one before it chose.
    async fn run_ahead(&mut self) -> Result<(), GpuError> {
        if self.host_reads() {
            return Ok(());
        }
        while self.choices.len() < AHEAD && self.wanted > 0 && self.len < self.model.options.context {
            self.prepare(1).await?;
            let size = Step { rows: 1, position: self.len };
            self.write_step(size);
            let choice = self.choose(size, true).await?;
            self.choices.push_back(choice);
            self.len += 1;
            self.wanted -= 1;
        }
        Ok(())
    }
}

//! A GPU that is lost again and again, and what is done about it.
//!
//! A GPU is lost now and then: a driver is updated, a laptop wakes up. Opening it again is right then. One that is lost twice
//! within a minute is not well, and every loss costs as much time as a load.

use std::cell::Cell;

/// Seconds within which a second loss is one too many.
const SOON: f64 = 60.0;

/// What an engine does about a GPU that is lost twice within a minute, or that cannot be opened again.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub enum Unsteady {
    /// Opens it again each time. A reply survives a few losses, and then ends with
    /// [`EngineError::DeviceLost`](crate::EngineError::DeviceLost).
    #[default]
    Reopen,
    /// Ends the reply, so that the caller can go on elsewhere.
    GiveUp {
        /// A clock.
        seconds: fn() -> f64,
    },
    /// Loads the model on the CPU, where every conversation goes on.
    #[cfg(feature = "cpu")]
    Cpu {
        /// A clock.
        seconds: fn() -> f64,
        /// Called once, with the reason.
        told: fn(&crate::EngineError),
    },
}

/// The losses of one engine.
#[derive(Debug)]
pub(crate) struct Losses {
    unsteady: Unsteady,
    /// When the GPU was lost last.
    last: Cell<Option<f64>>,
}

impl Losses {
    pub(crate) fn new(unsteady: Unsteady) -> Self {
        Self { unsteady, last: Cell::new(None) }
    }

    pub(crate) fn unsteady(&self) -> Unsteady {
        self.unsteady
    }

    /// Notes a loss. Whether it is one too many.
    pub(crate) fn note(&self) -> bool {
        let seconds = match self.unsteady {
            Unsteady::Reopen => return false,
            Unsteady::GiveUp { seconds } => seconds,
            #[cfg(feature = "cpu")]
            Unsteady::Cpu { seconds, .. } => seconds,
        };
        let now = seconds();
        self.last.replace(Some(now)).is_some_and(|last| now - last < SOON)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<f64> = const { Cell::new(0.0) };
    }

    #[test]
    fn two_losses_within_a_minute_are_too_many() {
        let at = |losses: &Losses, seconds| {
            NOW.set(seconds);
            losses.note()
        };
        let losses = Losses::new(Unsteady::GiveUp { seconds: || NOW.get() });
        let times = [5.0, 70.0, 140.0, 199.0, 258.0, 400.0];
        assert_eq!(times.map(|seconds| at(&losses, seconds)), [false, false, false, true, true, false]);
        let patient = Losses::new(Unsteady::Reopen);
        assert_eq!(times.map(|_| at(&patient, 1.0)), [false; 6]);
    }
}

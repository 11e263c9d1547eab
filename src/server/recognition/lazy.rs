//! A recogniser that is opened when it is first needed, and again after each failure: a package that is installed while
//! the service runs needs no restart.

use crate::server::recognition::recogniser::{Recogniser, RecogniserError};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// Opens a recogniser. Called again after an error, never after a success.
pub type Open = dyn Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync;

/// The service's recogniser, opened or not.
pub struct LazyRecogniser {
    open: Box<Open>,
    opened: Mutex<Opened>,
}

/// The result of the last attempt to open it.
enum Opened {
    Untried,
    Failed(String),
    Ready(Arc<dyn Recogniser>),
}

/// The state of a recogniser, as far as it is known without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It was not needed yet.
    Untried,
    /// It is being opened.
    Opening,
    /// It lacks something; the text names the fix.
    Missing(String),
    Ready {
        name: String,
        /// Codes of the languages that it recognises, such as `en`; empty for any.
        languages: Vec<&'static str>,
    },
    /// It is open, and does not answer well at the moment, for this reason.
    Down { name: String, words: String },
}

impl LazyRecogniser {
    /// Creates a recogniser that `open` opens when it is needed.
    pub fn new(open: impl Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), opened: Mutex::new(Opened::Untried) }
    }

    /// Returns the recogniser if it is open. Does not wait.
    pub fn get_if_open(&self) -> Option<Arc<dyn Recogniser>> {
        match &*self.opened.try_lock().ok()? {
            Opened::Ready(recogniser) => Some(Arc::clone(recogniser)),
            Opened::Untried | Opened::Failed(_) => None,
        }
    }

    /// Returns the recogniser; opens it first if necessary, which reads files.
    ///
    /// # Errors
    /// Something is missing on this machine; the message names the fix.
    pub fn get_or_open(&self) -> Result<Arc<dyn Recogniser>, RecogniserError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Opened::Ready(recogniser) = &*opened {
            return Ok(Arc::clone(recogniser));
        }
        let tried = (self.open)();
        *opened = match &tried {
            Ok(recogniser) => Opened::Ready(Arc::clone(recogniser)),
            Err(error) => Opened::Failed(error.to_string()),
        };
        tried
    }

    /// Returns the state of the recogniser. Opens nothing and does not wait.
    pub fn readiness(&self) -> Readiness {
        let opened = match self.opened.try_lock() {
            Ok(opened) => opened,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Readiness::Opening,
        };
        match &*opened {
            Opened::Untried => Readiness::Untried,
            Opened::Failed(words) => Readiness::Missing(words.clone()),
            Opened::Ready(recogniser) => {
                let name = recogniser.name().to_owned();
                match recogniser.check_ready() {
                    Ok(()) => Readiness::Ready { name, languages: recogniser.languages().to_vec() },
                    Err(error) => Readiness::Down { name, words: error.to_string() },
                }
            }
        }
    }
}

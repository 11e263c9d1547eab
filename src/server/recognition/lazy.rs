//! A recogniser that is opened when it is first needed, and asked for again until it is there: a
//! package installed while the service runs needs no restart.

use crate::server::recognition::recogniser::{Recogniser, RecogniserError};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// Opens a recogniser. Called again after an error, never after it has worked.
pub type Open = dyn Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync;

/// The service's recogniser, whether it is there yet or not.
pub struct LazyRecogniser {
    open: Box<Open>,
    opened: Mutex<Opened>,
}

/// How the last attempt to open it came out.
enum Opened {
    Untried,
    Failed(String),
    Ready(Arc<dyn Recogniser>),
}

/// How it is with a recogniser, as far as is known without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Nobody needed it yet.
    Untried,
    /// It is being opened.
    Opening,
    /// It lacks something; the words name the mend.
    Missing(String),
    Ready {
        name: &'static str,
        /// What is spoken to it: codes such as `en`.
        languages: Vec<&'static str>,
    },
}

impl LazyRecogniser {
    /// One that `open` will open.
    pub fn new(open: impl Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), opened: Mutex::new(Opened::Untried) }
    }

    /// One that is open already.
    pub fn from_open(recogniser: Arc<dyn Recogniser>) -> Self {
        Self::new(move || Ok(Arc::clone(&recogniser)))
    }

    /// The recogniser, if it is open. Waits for nobody.
    pub fn get_if_open(&self) -> Option<Arc<dyn Recogniser>> {
        match &*self.opened.try_lock().ok()? {
            Opened::Ready(recogniser) => Some(Arc::clone(recogniser)),
            Opened::Untried | Opened::Failed(_) => None,
        }
    }

    /// The recogniser. Reads files when it is not open yet.
    ///
    /// # Errors
    /// Something is missing on this machine; the words name the mend.
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

    /// How it is with it. Opens nothing and waits for nobody.
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
                Readiness::Ready { name: recogniser.name(), languages: recogniser.languages().to_vec() }
            }
        }
    }
}

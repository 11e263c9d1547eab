//! A recogniser that is opened when it is first needed, and asked for again until it is there: a
//! package installed while the service runs needs no restart.

use crate::server::recogniser::{Recogniser, RecogniserError};
use std::sync::{Arc, Mutex, PoisonError};

/// Opens a recogniser. Called again after an error, never after it has worked.
pub type Open = dyn Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync;

/// The service's recogniser, whether it is there yet or not.
pub struct LazyRecogniser {
    open: Box<Open>,
    opened: Mutex<Option<Arc<dyn Recogniser>>>,
}

impl LazyRecogniser {
    /// One that `open` will open.
    pub fn new(open: impl Fn() -> Result<Arc<dyn Recogniser>, RecogniserError> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), opened: Mutex::new(None) }
    }

    /// One that is open already.
    pub fn ready(recogniser: Arc<dyn Recogniser>) -> Self {
        Self::new(move || Ok(Arc::clone(&recogniser)))
    }

    /// The recogniser, if it is open. Waits for nobody.
    pub fn opened(&self) -> Option<Arc<dyn Recogniser>> {
        self.opened.try_lock().ok()?.clone()
    }

    /// The recogniser. Reads files when it is not open yet.
    ///
    /// # Errors
    /// Something is missing on this machine; the words name the mend.
    pub fn get(&self) -> Result<Arc<dyn Recogniser>, RecogniserError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recogniser) = &*opened {
            return Ok(Arc::clone(recogniser));
        }
        let recogniser = (self.open)()?;
        *opened = Some(Arc::clone(&recogniser));
        Ok(recogniser)
    }
}

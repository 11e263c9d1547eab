//! A bounded set of things that are dear to make and used by one thread at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Makes an item when one is asked for and none is idle, never more than its size; keeps what is
/// given back.
pub struct Pool<T> {
    size: usize,
    state: Mutex<State<T>>,
    freed: Condvar,
}

struct State<T> {
    idle: Vec<T>,
    /// Idle, leased, or being made.
    made: usize,
}

impl<T> Pool<T> {
    /// Room for `size` items, at least one; none is made yet.
    pub fn new(size: usize) -> Self {
        let state = Mutex::new(State { idle: Vec::new(), made: 0 });
        Self { size: size.max(1), state, freed: Condvar::new() }
    }

    /// An idle item, one that `fits` if there is one (the caller looks whether what it got does); or a new one from
    /// `make`; or, when all are leased, the next that is given back: then this blocks.
    ///
    /// # Errors
    /// Those of `make`; the room is free again.
    pub fn checkout<E>(
        &self,
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<PoolItem<'_, T>, E> {
        let mut lease = self.reserve(fits);
        if lease.item.is_none() {
            lease.item = Some(make()?);
        }
        Ok(lease)
    }

    /// A lease that is still empty holds the room for an item while it is made, and frees it if
    /// that fails.
    fn reserve(&self, fits: impl Fn(&T) -> bool) -> PoolItem<'_, T> {
        let full = |state: &mut State<T>| state.idle.is_empty() && state.made >= self.size;
        let waited = self.freed.wait_while(self.lock(), full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let at = state.idle.iter().rposition(fits).or(state.idle.len().checked_sub(1));
        let item = at.map(|at| state.idle.remove(at));
        if item.is_none() {
            state.made += 1;
        }
        PoolItem { pool: self, item }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The use of one item; given back when dropped, unless the thread panics: then the item may be
/// in the middle of something and goes.
pub struct PoolItem<'a, T> {
    pool: &'a Pool<T>,
    item: Option<T>,
}

impl<T> PoolItem<'_, T> {
    /// Does away with an item that proved broken; another is made in its place when needed.
    pub fn discard(mut self) {
        self.item = None;
    }
}

impl<T> Deref for PoolItem<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("a lease that was handed out holds its item")
    }
}

impl<T> DerefMut for PoolItem<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("a lease that was handed out holds its item")
    }
}

impl<T> Drop for PoolItem<'_, T> {
    fn drop(&mut self) {
        let kept = self.item.take().filter(|_| !std::thread::panicking());
        let mut state = self.pool.lock();
        match kept {
            Some(item) => state.idle.push(item),
            None => state.made -= 1,
        }
        self.pool.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn never_more_than_its_size() {
        let (pool, made, busy) = (Pool::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let lease = pool.checkout(|_| true, || Ok::<_, ()>(made.fetch_add(1, Ordering::SeqCst))).unwrap();
            assert!(busy.fetch_add(1, Ordering::SeqCst) < 2);
            thread::sleep(Duration::from_millis(2));
            busy.fetch_sub(1, Ordering::SeqCst);
            drop(lease);
        };
        thread::scope(|scope| (0..20).for_each(|_| drop(scope.spawn(work))));
        assert!(made.into_inner() <= 2);
    }

    #[test]
    fn a_failed_making_leaves_the_room_free() {
        let pool = Pool::new(1);
        assert!(pool.checkout(|_| true, || Err::<u8, _>("no memory")).is_err());
        assert_eq!(*pool.checkout(|_| true, || Ok::<_, ()>(7)).unwrap(), 7);
    }

    #[test]
    fn what_was_discarded_is_made_again() {
        let pool = Pool::new(1);
        pool.checkout(|_| true, || Ok::<_, ()>(1)).unwrap().discard();
        assert_eq!(*pool.checkout(|_| true, || Ok::<_, ()>(2)).unwrap(), 2);
    }

    #[test]
    fn a_panic_takes_the_item_with_it() {
        let pool = Pool::new(1);
        let used = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _lease = pool.checkout(|_| true, || Ok::<_, ()>(1));
                    panic!("in use")
                })
                .join()
        });
        assert!(used.is_err());
        assert_eq!(*pool.checkout(|_| true, || Ok::<_, ()>(2)).unwrap(), 2);
    }
}

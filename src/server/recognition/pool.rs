//! A bounded pool of items that are expensive to create and are used by one thread at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Creates an item when one is requested and none is idle, up to its size; keeps returned items.
pub struct Pool<T> {
    size: usize,
    state: Mutex<State<T>>,
    freed: Condvar,
}

struct State<T> {
    idle: Vec<T>,
    /// The number of items that are idle, in use, or being created.
    made: usize,
}

impl<T> Pool<T> {
    /// Creates a pool for `size` items, at least one; no item is created yet.
    pub fn new(size: usize) -> Self {
        let state = Mutex::new(State { idle: Vec::new(), made: 0 });
        Self { size: size.max(1), state, freed: Condvar::new() }
    }

    /// Returns an idle item, preferably one that `fits` accepts (the caller has to check whether it does); else a new
    /// one from `make`. If all items are in use, blocks until one is returned.
    ///
    /// # Errors
    /// Those of `make`; the place of the item is then free again.
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

    /// Reserves an item. Without an idle one, the returned lease is empty and holds the place of the item that the
    /// caller creates; it frees the place if that fails.
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

/// The use of one item. When dropped, it returns the item, unless the thread panics: the item may then be in an
/// undefined state and is dropped.
pub struct PoolItem<'a, T> {
    pool: &'a Pool<T>,
    item: Option<T>,
}

impl<T> PoolItem<'_, T> {
    /// Drops an item that proved broken; another one is created when needed.
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

//! Decodes many rows on all processors, and hands them over in their order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Rows that are passed between threads at a time.
const PIECE: usize = 128;

/// Most pieces that are under way, so that memory does not grow with the number of rows.
const UNDER_WAY: usize = 8;

/// Most decoding threads. More do not help, since one thread reads and one takes the results.
const DECODERS: usize = 8;

type Piece<T, E> = Vec<Result<T, E>>;

/// Reads `rows` in this thread, decodes them in other threads, and passes them to `take` in order.
///
/// # Errors
/// The first error in the order of the rows. Rows after it are not passed to `take`.
pub fn in_order<R: Send, T: Send, E: Send>(
    rows: impl Iterator<Item = R>,
    decode: impl Fn(R) -> Result<T, E> + Sync,
    mut take: impl FnMut(T) + Send,
) -> Result<(), E> {
    let (work, works) = sync_channel::<(Vec<R>, SyncSender<Piece<T, E>>)>(UNDER_WAY);
    let (next, order) = sync_channel::<Receiver<Piece<T, E>>>(UNDER_WAY);
    let works = Mutex::new(works);
    thread::scope(|scope| {
        let taker = scope.spawn(move || order.into_iter().try_for_each(|piece| take_piece(&piece, &mut take)));
        for _ in 0..thread::available_parallelism().map_or(2, usize::from).min(DECODERS) {
            scope.spawn(|| {
                loop {
                    let got = works.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((rows, to)) = got else { return };
                    // The receiver is gone if a row before had an error.
                    let _unwanted = to.send(rows.into_iter().map(&decode).collect());
                }
            });
        }
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let (to, piece) = sync_channel(1);
            let sent = next.send(piece).is_ok() && work.send((rows.by_ref().take(PIECE).collect(), to)).is_ok();
            if !sent {
                break;
            }
        }
        drop((next, work));
        taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn take_piece<T, E>(piece: &Receiver<Piece<T, E>>, take: &mut impl FnMut(T)) -> Result<(), E> {
    for item in piece.recv().unwrap_or_default() {
        take(item?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_taken_in_order() {
        let mut taken = Vec::new();
        in_order(0..100_000_u32, |n| Ok::<_, ()>(n * 2), |n| taken.push(n)).unwrap();
        assert_eq!(taken, (0..100_000).map(|n| n * 2).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_ends_it_and_nothing_behind_it_is_taken() {
        let mut taken = 0;
        let decode = |n: u32| if n % 40_000 == 39_999 { Err(n) } else { Ok(n) };
        assert_eq!(in_order(0..1_000_000, decode, |_| taken += 1), Err(39_999));
        assert_eq!(taken, 39_999);
    }
}

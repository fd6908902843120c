//! A static pool, written by hand: threads, all started at once, take tasks from one bounded queue.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Runs every task that it is given by one of its threads.
pub struct Pool<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    came: Condvar,
    left: Condvar,
    ended: Condvar,
    queue_limit: usize,
}

/// Guarded by `Shared::state`, which nobody holds while a task runs.
struct State<T> {
    queue: VecDeque<T>,
    closed: bool,
    workers: usize,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts all threads.
    pub fn start(workers: usize, queue_limit: usize, run: impl Fn(T) + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { queue: VecDeque::new(), closed: false, workers }),
            came: Condvar::new(),
            left: Condvar::new(),
            ended: Condvar::new(),
            queue_limit,
        });
        let run = Arc::new(run);
        for number in 0..workers {
            let (shared, run) = (shared.clone(), run.clone());
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            thread.spawn(move || shared.work(&*run)).expect("the system gives a thread");
        }
        Pool { shared }
    }

    /// Puts a task into the queue. Blocks while that is full.
    pub fn execute(&self, task: T) {
        let state = self.shared.state.lock().unwrap();
        let is_full = |state: &mut State<T>| state.queue.len() >= self.shared.queue_limit;
        let mut state = self.shared.left.wait_while(state, is_full).unwrap();
        state.queue.push_back(task);
        drop(state);
        self.shared.came.notify_one();
    }

    /// Lets the threads end when the queue is empty. Nothing is executed after it.
    pub fn close(&self) {
        self.shared.state.lock().unwrap().closed = true;
        self.shared.came.notify_all();
    }

    /// Waits until all threads have ended, or a moment has come. Says whether they have.
    pub fn wait(&self, until: Instant) -> bool {
        let state = self.shared.state.lock().unwrap();
        let within = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let waited = self.shared.ended.wait_timeout_while(state, within, |state| state.workers > 0);
        waited.unwrap().0.workers == 0
    }
}

impl<T> Shared<T> {
    fn work(&self, run: &impl Fn(T)) {
        while let Some(task) = self.next() {
            run(task);
        }
        self.state.lock().unwrap().workers -= 1;
        self.ended.notify_all();
    }

    /// Blocks until there is a task; none where the pool is closed and the queue empty.
    fn next(&self) -> Option<T> {
        let state = self.state.lock().unwrap();
        let mut state = self.came.wait_while(state, |state| state.queue.is_empty() && !state.closed).unwrap();
        let task = state.queue.pop_front();
        drop(state);
        self.left.notify_one();
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    /// Every task is run once; what is in the queue when the pool is closed is run too.
    #[test]
    fn all_are_run() {
        let (say, said) = channel();
        let pool = Pool::start(4, 3, move |number: u32| say.send(number).unwrap());
        (0..1000).for_each(|number| pool.execute(number));
        pool.close();
        assert!(pool.wait(soon()));
        drop(pool);
        let mut ran: Vec<u32> = said.iter().collect();
        ran.sort_unstable();
        assert_eq!(ran, (0..1000).collect::<Vec<_>>());
    }

    /// As many tasks run at a time as there are threads: each waits for the other.
    #[test]
    fn tasks_run_side_by_side() {
        let barrier = std::sync::Barrier::new(3);
        let pool = Pool::start(3, 10, move |()| _ = barrier.wait());
        (0..6).for_each(|_| pool.execute(()));
        pool.close();
        assert!(pool.wait(soon()));
    }

    /// A task that does not end is not waited for after the moment.
    #[test]
    fn a_wait_ends() {
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let pool = Pool::start(1, 1, move |()| _ = gone.lock().unwrap().recv());
        pool.execute(());
        pool.close();
        assert!(!pool.wait(Instant::now()));
        drop(go);
        assert!(pool.wait(soon()));
    }
}

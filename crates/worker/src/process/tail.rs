//! The end of what a tool wrote to its standard error: that is where the reason stands.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe};

/// How much is kept, in bytes.
const KEPT_BYTES: usize = 16 << 10;

/// A bounded end of a text that goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads until nobody writes any more.
    pub(super) async fn follow(self, mut pipe: pipe::Receiver) {
        let mut buffer = vec![0; 4 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.push(&buffer[..count]);
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
    }

    /// What is kept, as text: what is no UTF-8 is replaced, a first line that was cut is left out.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        drop(kept);
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some((_cut, rest)) if bytes.len() == KEPT_BYTES => rest.to_owned(),
            _ => text.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_in_whole_lines_and_what_is_no_text_is_replaced() {
        let tail = Tail::default();
        tail.push(b"first\n");
        for number in 0..5_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        tail.push(b"\xff\n");
        let text = tail.text();
        assert!(text.len() <= KEPT_BYTES + 3);
        assert!(text.starts_with("line "), "{}", &text[..20]);
        assert!(text.ends_with("line 4999\n\u{fffd}\n"));
    }
}

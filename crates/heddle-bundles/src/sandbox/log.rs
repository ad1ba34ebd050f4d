//! A log that cannot grow: its beginning and its end are kept, and how much was left out between them.

use std::collections::VecDeque;

/// Half of what is kept: as much from the beginning as from the end.
const HALF_BYTES: usize = 512 << 10;

/// What a program printed, within bounds.
#[derive(Debug)]
pub(super) struct Log {
    half_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Default for Log {
    fn default() -> Self {
        Self::within(HALF_BYTES)
    }
}

impl Log {
    fn within(half_bytes: usize) -> Self {
        Self {
            half_bytes,
            head: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.half_bytes - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let last = &rest[rest.len().saturating_sub(self.half_bytes)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.half_bytes);
        self.left_out += (rest.len() - last.len() + surplus) as u64;
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// A line of our own, apart from whatever line the program is printing.
    pub(super) fn push_line(&mut self, line: &str) {
        let last = self.tail.back().or_else(|| self.head.last());
        if last.is_some_and(|byte| *byte != b'\n') {
            self.push(b"\n");
        }
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    /// For people. What is not UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            let note = format!("\n[… {} bytes left out …]\n", self.left_out);
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend(&self.tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The last lines of a text, at most that many bytes, cut at the beginning of a line where there is one.
pub(super) fn end_of(text: &str, bytes_max: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let end = &text[from..];
    match end.find('\n') {
        Some(line) if from > 0 && line + 1 < end.len() => &end[line + 1..],
        _ => end,
    }
}

/// The last line that says something.
pub(super) fn last_line(text: &str) -> Option<&str> {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;

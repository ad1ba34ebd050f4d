//! What a run was made of, in numbers that can be added up and handed from process to process.

use std::fmt;
use std::str::FromStr;

/// What a run was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub published: u64,
    pub owed: u64,
    pub received: u64,
    pub repeated: u64,
    pub dead_letters: u64,
    pub crashes: u64,
    pub faults: u64,
    /// A hash of everything that was noted, in order: the same for the same seed.
    pub digest: u64,
}

impl Figures {
    /// Adds what another run was made of. A sum has no history.
    pub fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.owed += other.owed;
        self.received += other.received;
        self.repeated += other.repeated;
        self.dead_letters += other.dead_letters;
        self.crashes += other.crashes;
        self.faults += other.faults;
        self.digest = 0;
    }

    /// Takes something into the hash (FNV-1a).
    pub(super) fn note(&mut self, what: &str) {
        for byte in what.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn numbers(&mut self) -> [&mut u64; 8] {
        [
            &mut self.published,
            &mut self.owed,
            &mut self.received,
            &mut self.repeated,
            &mut self.dead_letters,
            &mut self.crashes,
            &mut self.faults,
            &mut self.digest,
        ]
    }
}

/// The numbers in the order of the fields, for another process to read.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let numbers = copy.numbers().map(|number| number.to_string());
        f.write_str(&numbers.join(" "))
    }
}

/// Not the numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFigures;

impl FromStr for Figures {
    type Err = NoFigures;

    fn from_str(text: &str) -> Result<Self, NoFigures> {
        let mut figures = Self::default();
        let mut words = text.split(' ');
        for number in figures.numbers() {
            let word = words.next().ok_or(NoFigures)?;
            *number = word.parse().map_err(|_| NoFigures)?;
        }
        words.next().is_none().then_some(figures).ok_or(NoFigures)
    }
}

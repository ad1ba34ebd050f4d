//! Opening a log: what the files hold, what of it is sound, and where to go on.
//!
//! ```text
//!   manifest ─┐
//!   names ────┼─> sealed: header and trailer only ─┬─> segments, gaps, damage
//!   headers ──┘   not sealed: every record ────────┘      └─> the end: next offset, chain, time
//! ```
//! Of the last segment an invalid end may be a write that power loss tore. It is cut off when nothing
//! proves that it was ever safe; the proof is a later write, a later segment or the manifest. All
//! other damage stays where it is and is told. A segment with damage in it is not appended to: it is
//! sealed behind its last byte.
//!
//! Recovery may be broken off at any step and begun again. Memory is bounded: sealed segments are
//! not read, and the others one window at a time.

mod inventory;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use heddle_rt::vfs::{Open, Vfs, VfsFile, is_no_room};

use super::format::{ALIGNMENT, Decoded, Head, LAYOUT, SEGMENT_HEADER_BYTES};
use super::keeper::SPARE;
use super::manifest::Manifest;
use super::scan::{Found, Hole, Scanner, Scope, WINDOW_BYTES};
use super::segment::{Extent, Segment};
use super::shared::missing_damage;
use super::writer::{Active, BEGUN};
use super::{Damage, DamageKind, Known, Limits};
use crate::OpenError;
use inventory::Member;

/// When the last segment is gone and nobody knows how far it went, the log goes on so much later:
/// no offset is given out twice.
const LOST_STEP: u64 = 1 << 32;

/// A log as it was found and, where needed, put in order.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) manifest: Manifest,
    pub(super) segments: BTreeMap<u64, Arc<Segment>>,
    pub(super) missing: Vec<Range<u64>>,
    pub(super) active: Option<Active>,
    pub(super) next: u64,
    pub(super) chain: u32,
    pub(super) last_at: i64,
    pub(super) damage: Vec<Damage>,
    pub(super) torn_bytes: u64,
}

/// What walking through a member gave.
#[derive(Debug)]
struct Walked {
    extent: Extent,
    holes: Vec<Hole>,
    /// Something follows the records that is not zeroes.
    tail: bool,
}

/// The mark of the log in a directory, if there is one. Changes nothing.
pub(super) fn mark_of(vfs: &dyn Vfs, dir: &Path) -> Result<Option<u32>, OpenError> {
    let at = |source| OpenError::Io {
        path: dir.to_owned(),
        source,
    };
    if !vfs.exists(dir).map_err(at)? {
        return Ok(None);
    }
    if let Some(Decoded::Fine(manifest)) = Manifest::load(vfs, dir).map_err(at)? {
        return Ok(Some(manifest.mark));
    }
    let candidates = inventory::candidates(vfs, dir)?;
    let elected = inventory::elect(vfs, &candidates).map_err(at)?;
    // A log whose every mark is damaged is one all the same.
    Ok(elected.or_else(|| (!candidates.is_empty()).then_some(0)))
}

pub(super) fn recover(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    limits: &Limits,
    known: Known,
    fresh_mark: u32,
) -> Result<Recovered, OpenError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io { path, source }
    };
    let loaded = Manifest::load(&**vfs, dir).map_err(at(dir))?;
    let candidates = inventory::candidates(&**vfs, dir)?;
    let mut damage = Vec::new();
    let manifest = match loaded {
        Some(Decoded::Newer(found)) => return Err(newer(&Manifest::path(dir), found)),
        Some(Decoded::Fine(manifest)) => Some(manifest),
        None if candidates.is_empty() => Some(Manifest::new(fresh_mark)),
        None | Some(Decoded::Damaged) => {
            damage.push(about(&Manifest::path(dir), DamageKind::Manifest));
            None
        }
    };
    let mark = match &manifest {
        Some(manifest) => manifest.mark,
        None => inventory::elect(&**vfs, &candidates)
            .map_err(at(dir))?
            .unwrap_or(fresh_mark),
    };
    let members = inventory::members(candidates, mark, &mut damage)?;
    let manifest = manifest.unwrap_or_else(|| {
        let mut manifest = Manifest::new(mark);
        // What is before the first segment was probably removed; that nobody knows has been told.
        match members.first() {
            None => manifest.newest = 1,
            Some(member) if member.first > 1 => manifest.remove(1..member.first),
            Some(_) => {}
        }
        manifest
    });
    let recovery = Recovery {
        vfs,
        dir,
        limits,
        known,
        manifest,
        segments: BTreeMap::new(),
        damage,
        torn_bytes: 0,
        active: None,
    };
    recovery.run(members).map_err(at(dir))
}

struct Recovery<'a> {
    vfs: &'a Arc<dyn Vfs>,
    dir: &'a Path,
    limits: &'a Limits,
    known: Known,
    manifest: Manifest,
    segments: BTreeMap<u64, Arc<Segment>>,
    damage: Vec<Damage>,
    torn_bytes: u64,
    /// The segment to go on in, if any.
    active: Option<Continued>,
}

/// A segment that can be appended to.
struct Continued {
    segment: Arc<Segment>,
    tail: u64,
    /// What it is as long as its trailer has not been given up.
    sealed: Option<Extent>,
}

impl Recovery<'_> {
    fn run(mut self, members: Vec<Member>) -> io::Result<Recovered> {
        for name in self.vfs.list(self.dir)? {
            if name == BEGUN || name.starts_with(SPARE) {
                self.vfs.remove(&self.dir.join(name))?;
            }
        }
        let members = self.finish_removals(members)?;
        let firsts: Vec<u64> = members.iter().map(|member| member.first).collect();
        for (number, mut member) in members.into_iter().enumerate() {
            self.settle_seal(&mut member)?;
            let before = self.segments.values().next_back().cloned();
            self.check_chain(before.as_deref(), &member);
            match firsts.get(number + 1) {
                Some(limit) => self.inner(member, *limit)?,
                None => self.last(member)?,
            }
        }
        let (next, missing) = self.end();
        let next = self.go_on_at(next);
        let last = self.segments.values().next_back();
        let (chain, last_at) = last.map_or((0, i64::MIN), |segment| {
            let extent = segment.extent.read();
            (extent.chain, extent.last_at)
        });
        // Only the last segment with records knows the time; one that was just begun does not.
        let last_at = self
            .segments
            .values()
            .map(|segment| segment.extent.read())
            .filter(|extent| extent.records > 0)
            .map(|extent| extent.last_at)
            .max()
            .unwrap_or(last_at);
        // The names that were seen are safe from here on.
        self.vfs.sync_dir(self.dir)?;
        self.save(next)?;
        let active = self.reopen(next)?;
        Ok(Recovered {
            manifest: self.manifest,
            segments: self.segments,
            missing,
            active,
            next,
            chain,
            last_at,
            damage: self.damage,
            torn_bytes: self.torn_bytes,
        })
    }

    /// A removal that was broken off has been written down, so it is brought to its end.
    fn finish_removals(&self, members: Vec<Member>) -> io::Result<Vec<Member>> {
        let (gone, kept): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| {
            member.sealed.as_ref().is_some_and(|extent| {
                extent.next > member.first
                    && self.manifest.has_removed(&(member.first..extent.next))
            })
        });
        for member in &gone {
            self.vfs.remove(&member.path)?;
        }
        if !gone.is_empty() {
            self.vfs.sync_dir(self.dir)?;
        }
        Ok(kept)
    }

    fn check_chain(&mut self, before: Option<&Segment>, member: &Member) {
        let (Some(before), Some(chain)) = (before, member.chain) else {
            return;
        };
        let extent = before.extent.read();
        let broken =
            extent.next == member.first && extent.tables_at.is_none() && extent.chain != chain;
        if broken {
            self.damage.push(about(&member.path, DamageKind::Chain));
        }
    }

    /// A segment that another one follows: whatever is not sound in it has decayed.
    fn inner(&mut self, member: Member, limit: u64) -> io::Result<()> {
        if let Some(mut extent) = member.sealed {
            extent.next = extent.next.min(limit);
            let segment = Segment::new(member.first, member.path, extent);
            self.segments.insert(member.first, segment);
            return Ok(());
        }
        let file = self.vfs.open(&member.path, Open::existing())?;
        let walked = self.walk(&*file, &member, limit)?;
        self.tell_index(&member, limit, &walked);
        self.take_sealed(&member, walked)
    }

    /// A seal that nobody noted may be torn, or written by a killed process and not safe yet.
    fn settle_seal(&self, member: &mut Member) -> io::Result<()> {
        let unnoted = |extent: &mut Extent| extent.next > self.manifest.sealed;
        let Some(extent) = member.sealed.take_if(unnoted) else {
            return Ok(());
        };
        let file = self.vfs.open(&member.path, Open::existing())?;
        let tables = extent.tables(self.manifest.mark, member.first);
        if tables.expect("it has a trailer").are_sound(&*file)? {
            file.sync()?;
            member.sealed = Some(extent);
        }
        Ok(())
    }

    /// The segment that was appended to last.
    fn last(&mut self, mut member: Member) -> io::Result<()> {
        let file = self.vfs.open(&member.path, Open::existing())?;
        if let Some(extent) = member.sealed.take() {
            return self.last_sealed(&*file, &member, extent);
        }
        let proven = if self.manifest.sealed > member.first {
            self.manifest.floor.max(self.manifest.sealed)
        } else {
            self.manifest.floor
        };
        let limit = self.survey(&*file, &member, proven)?;
        let walked = self.walk(&*file, &member, limit)?;
        self.tell_index(&member, limit, &walked);
        if !walked.holes.is_empty() || self.manifest.sealed > member.first {
            return self.take_sealed(&member, walked);
        }
        let tail = walked.extent.end;
        if walked.tail {
            self.torn_bytes = member.bytes.saturating_sub(tail);
            tracing::warn!(
                path = %member.path.display(), bytes = self.torn_bytes,
                "an append that was never acknowledged is cut off",
            );
        }
        // The zeroes that fill up the last record may be cut off too.
        if walked.tail || tail > member.bytes {
            file.set_len(tail)?;
        }
        // What a killed process wrote is seen, and safe only now.
        file.sync()?;
        let mut extent = walked.extent;
        extent.tables_at = None;
        let segment = Segment::new(member.first, member.path, extent);
        self.segments.insert(member.first, segment.clone());
        self.active = Some(Continued {
            segment,
            tail,
            sealed: None,
        });
        Ok(())
    }

    /// A log that was closed goes on in its last segment when that is sound and has room.
    fn last_sealed(
        &mut self,
        file: &dyn VfsFile,
        member: &Member,
        extent: Extent,
    ) -> io::Result<()> {
        let roomy =
            extent.end < self.limits.segment_bytes / 2 && extent.next >= self.manifest.floor;
        let mut walked = None;
        if roomy {
            let found = self.walk(file, member, extent.next)?;
            self.tell_holes(&member.path, &found.holes);
            let whole = found.holes.is_empty() && found.extent.end == extent.end;
            walked = whole.then_some(found.extent);
        }
        let path = member.path.clone();
        let segment = match walked {
            None => Segment::new(member.first, path, extent),
            Some(mut walked) => {
                let tail = extent.end;
                walked.tables_at = None;
                let segment = Segment::new(member.first, path, walked);
                self.active = Some(Continued {
                    segment: segment.clone(),
                    tail,
                    sealed: Some(extent),
                });
                segment
            }
        };
        self.segments.insert(member.first, segment);
        Ok(())
    }

    /// Where the log ends in this segment: the first offset that may have been torn.
    fn survey(&self, file: &dyn VfsFile, member: &Member, floor: u64) -> io::Result<u64> {
        let mut scanner = self.scanner(file, member, u64::MAX);
        let mut whole = member.first;
        let mut last_write = member.first;
        let mut holes = Vec::new();
        while let Some(found) = scanner.next()? {
            match found {
                Found::Hole(hole) => holes.push((hole.offsets, whole)),
                Found::Record(located) => {
                    let Head { offset, more, .. } = located.head;
                    last_write = located.head.write_first().max(member.first);
                    if more == 0 {
                        whole = offset + 1;
                    }
                }
            }
        }
        // A write begins when all before it is safe: what is before the last write was. What somebody else has seen was
        // safe too, if there are bytes of it.
        let seen = if holes.is_empty() && scanner.rest_is_blank()? {
            0
        } else {
            self.known.safe
        };
        let proven = last_write.max(floor).max(seen);
        let torn = holes.iter().find(|(offsets, _)| offsets.end > proven);
        Ok(torn.map_or(whole, |(_, before)| *before).max(proven))
    }

    /// Reads every record below `limit` and notes what should be there and is not.
    fn walk(&self, file: &dyn VfsFile, member: &Member, limit: u64) -> io::Result<Walked> {
        let mut scanner = self.scanner(file, member, limit);
        let mut extent = Extent::empty(member.first, member.chain.unwrap_or(0));
        let mut holes = Vec::new();
        while let Some(found) = scanner.next()? {
            match found {
                Found::Record(located) => extent.add(&located.head, located.position),
                Found::Hole(hole) => holes.push(hole),
            }
        }
        if scanner.expected() < limit {
            holes.push(Hole {
                position: scanner.position(),
                bytes: member.bytes.saturating_sub(scanner.position()),
                offsets: scanner.expected()..limit,
            });
        }
        let tail = !scanner.rest_is_blank()?;
        extent.next = limit;
        if tail || !holes.is_empty() {
            extent.tables_at = Some(member.bytes.next_multiple_of(ALIGNMENT as u64));
        }
        Ok(Walked {
            extent,
            holes,
            tail,
        })
    }

    fn scanner<'a>(&self, file: &'a dyn VfsFile, member: &Member, limit: u64) -> Scanner<'a> {
        Scanner::new(Scope {
            file,
            mark: self.manifest.mark,
            positions: SEGMENT_HEADER_BYTES as u64..member.bytes,
            offsets: member.first..limit,
            chain: member.chain,
            window_bytes: WINDOW_BYTES,
        })
    }

    /// A segment that had a trailer once and has none that can be read.
    fn tell_index(&mut self, member: &Member, limit: u64, walked: &Walked) {
        if limit <= self.manifest.sealed && limit > member.first {
            let mut damage = about(&member.path, DamageKind::Index);
            damage.position = walked.extent.end;
            self.damage.push(damage);
        }
    }

    fn tell_holes(&mut self, path: &Path, holes: &[Hole]) {
        self.damage.extend(holes.iter().map(|hole| Damage {
            path: path.to_owned(),
            position: hole.position,
            offsets: hole.offsets.clone(),
            kind: DamageKind::Record,
        }));
    }

    /// Takes a segment that nothing is appended to any more, and seals it.
    fn take_sealed(&mut self, member: &Member, walked: Walked) -> io::Result<()> {
        self.tell_holes(&member.path, &walked.holes);
        let mut extent = walked.extent;
        // A crash while it was sealed leaves a beginning of tables: nothing that has to be kept.
        if walked.holes.is_empty() && extent.next > self.manifest.sealed {
            extent.tables_at = None;
        }
        let segment = Segment::new(member.first, member.path.clone(), extent);
        match segment.seal(&**self.vfs, self.manifest.mark) {
            // Its index stays in memory then.
            Err(error) if is_no_room(&error) => {}
            other => other?,
        }
        self.segments.insert(member.first, segment);
        Ok(())
    }

    /// The next offset to give out, and the offsets that are in no segment and should be.
    fn end(&mut self) -> (u64, Vec<Range<u64>>) {
        let mut next = 1;
        let mut missing = Vec::new();
        for segment in self.segments.values() {
            if segment.first > next {
                missing.extend(self.manifest.unexplained(next..segment.first));
            }
            next = next.max(segment.next());
        }
        let Manifest { clean, newest, .. } = self.manifest;
        let lost = newest >= self.manifest.removed_end() && !self.segments.contains_key(&newest);
        let mut end = next
            .max(self.manifest.floor)
            .max(self.manifest.removed_end());
        if lost && !clean {
            end = end.max(newest + 1);
        }
        if end > next {
            missing.extend(self.manifest.unexplained(next..end));
        }
        // Only what surely was there is told as missing, not all that could have been.
        if lost && !clean {
            end = end.saturating_add(LOST_STEP);
        }
        let told = missing
            .iter()
            .map(|offsets| missing_damage(self.dir, offsets.clone()));
        self.damage.extend(told);
        (end, missing)
    }

    /// Passes over offsets that somebody knows to have been used. Given up on purpose, they are not told as missing.
    fn go_on_at(&mut self, next: u64) -> u64 {
        if self.known.used > next {
            self.manifest.remove(next..self.known.used);
        }
        next.max(self.known.used)
    }

    /// Writes down how far the log is safe, before anything is added to it.
    fn save(&mut self, next: u64) -> io::Result<()> {
        let unsealed = self.segments.values().find(|segment| !segment.is_sealed());
        let mut manifest = self.manifest.clone();
        manifest.clean = false;
        manifest.floor = next;
        manifest.newest = self.segments.keys().next_back().map_or(0, |first| *first);
        manifest.sealed = unsealed.map_or(next, |segment| segment.first);
        let path = Manifest::path(self.dir);
        let exists = self.vfs.exists(&path)?;
        let damaged = self
            .damage
            .iter()
            .any(|damage| damage.kind == DamageKind::Manifest);
        if exists && !damaged && manifest == self.manifest {
            return Ok(());
        }
        if exists && damaged {
            self.vfs.rename(&path, &path.with_extension("damaged"))?;
        }
        match manifest.save(&**self.vfs, self.dir) {
            Ok(()) => self.manifest = manifest,
            // The old one stays true as long as no trailer is given up.
            Err(error) if is_no_room(&error) => {
                if let Some(continued) = self.active.take_if(|active| active.sealed.is_some()) {
                    continued.leave();
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Opens the last segment for appending, when the log goes on where it ends.
    fn reopen(&mut self, next: u64) -> io::Result<Option<Active>> {
        let Some(continued) = self.active.take() else {
            return Ok(None);
        };
        if continued.segment.next() != next {
            let segment = continued.leave();
            segment.seal(&**self.vfs, self.manifest.mark)?;
            return Ok(None);
        }
        let Continued {
            segment,
            tail,
            sealed,
        } = continued;
        let file = segment.open(&**self.vfs)?;
        if sealed.is_some() {
            file.set_len(tail)?;
            file.sync()?;
        }
        Ok(Some(Active {
            segment,
            file,
            tail,
            followed: false,
        }))
    }
}

impl Continued {
    /// Lets the segment be what it was.
    fn leave(self) -> Arc<Segment> {
        if let Some(sealed) = self.sealed {
            *self.segment.extent.write() = sealed;
        }
        self.segment
    }
}

fn newer(path: &Path, found: u32) -> OpenError {
    OpenError::Newer {
        path: path.to_owned(),
        found,
        supported: LAYOUT,
    }
}

/// Damage that hides no records, or none that are known yet.
fn about(path: &Path, kind: DamageKind) -> Damage {
    Damage {
        path: path.to_owned(),
        position: 0,
        offsets: 0..0,
        kind,
    }
}

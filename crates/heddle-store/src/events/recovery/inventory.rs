//! Taking stock: which files are segments of this log, and what their two ends say.
//!
//! A header tells more than a name, and a well-named file more than a second one for the same
//! records. Nothing is changed here; files that are not segments of this log are told and left alone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use heddle_rt::vfs::{Open, Vfs, VfsFile};

use super::{about, newer};
use crate::OpenError;
use crate::events::format::{
    Decoded, SEGMENT_HEADER_BYTES, SegmentHeader, TRAILER_BYTES, Trailer, u32_at,
};
use crate::events::scan::{Found, Scanner, Scope, WINDOW_BYTES};
use crate::events::segment::Extent;
use crate::events::{Damage, DamageKind, named_first};

/// A file that calls itself a segment.
#[derive(Debug)]
pub(super) struct Candidate {
    path: PathBuf,
    named: u64,
    bytes: u64,
    header: Decoded<SegmentHeader>,
    trailer: Option<Trailer>,
}

/// A file that is one.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) path: PathBuf,
    pub(super) first: u64,
    /// The checksum before its first record, unless its header is damaged.
    pub(super) chain: Option<u32>,
    pub(super) bytes: u64,
    pub(super) sealed: Option<Extent>,
}

/// Every file whose name is that of a segment, with what its two ends say.
pub(super) fn candidates(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<Candidate>, OpenError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io { path, source }
    };
    let names = vfs.list(dir).map_err(io(dir))?;
    let mut found = Vec::new();
    for name in names {
        let Some(named) = named_first(&name) else {
            continue;
        };
        let path = dir.join(&name);
        let (bytes, header, end) = inspect(vfs, &path).map_err(io(&path))?;
        if let Decoded::Newer(layout) = header {
            return Err(newer(&path, layout));
        }
        let trailer = match end {
            Decoded::Fine(trailer) => Some(trailer),
            Decoded::Newer(layout) => return Err(newer(&path, layout)),
            Decoded::Damaged => None,
        };
        found.push(Candidate {
            path,
            named,
            bytes,
            header,
            trailer,
        });
    }
    Ok(found)
}

type Ends = (u64, Decoded<SegmentHeader>, Decoded<Trailer>);

fn inspect(vfs: &dyn Vfs, path: &Path) -> io::Result<Ends> {
    let file = vfs.open(path, Open::existing())?;
    let ends = read_ends(&*file)?;
    if let (_, _, Decoded::Fine(_)) = ends {
        return Ok(ends);
    }
    // It may have been appended to last, and after a failed sync the cache shows what the device
    // does not hold.
    file.evict()?;
    read_ends(&*file)
}

fn read_ends(file: &dyn VfsFile) -> io::Result<Ends> {
    let bytes = file.len()?;
    if bytes < SEGMENT_HEADER_BYTES as u64 {
        return Ok((bytes, Decoded::Damaged, Decoded::Damaged));
    }
    let mut header = [0; SEGMENT_HEADER_BYTES];
    file.read_at(0, &mut header)?;
    let trailer = trailer(file, bytes)?;
    Ok((bytes, SegmentHeader::decode(&header), trailer))
}

fn trailer(file: &dyn VfsFile, bytes: u64) -> io::Result<Decoded<Trailer>> {
    let Some(at) = bytes.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(Decoded::Damaged);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_at(at, &mut trailer)?;
    Ok(Trailer::decode(&trailer))
}

/// The log's mark, when the manifest does not tell it: what most files say.
pub(super) fn elect(vfs: &dyn Vfs, candidates: &[Candidate]) -> io::Result<Option<u32>> {
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    for candidate in candidates {
        if let Decoded::Fine(header) = candidate.header {
            *votes.entry(header.mark).or_default() += 1;
        }
        if let Some(trailer) = candidate.trailer {
            *votes.entry(trailer.mark).or_default() += 1;
        }
    }
    if let Some((mark, _)) = votes.into_iter().max_by_key(|(_, count)| *count) {
        return Ok(Some(mark));
    }
    for candidate in candidates {
        let at = SEGMENT_HEADER_BYTES as u64;
        if candidate.bytes < at + 4 {
            continue;
        }
        let file = vfs.open(&candidate.path, Open::existing())?;
        let mut bytes = [0; 4];
        file.read_at(at, &mut bytes)?;
        let mark = u32_at(&bytes, 0);
        let mut scanner = Scanner::new(Scope {
            file: &*file,
            mark,
            positions: at..candidate.bytes,
            offsets: candidate.named..candidate.named.saturating_add(1),
            chain: None,
            window_bytes: WINDOW_BYTES,
        });
        if mark != 0 && matches!(scanner.next()?, Some(Found::Record(_))) {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

/// Which candidates are segments of this log, in order, each first offset once.
pub(super) fn members(
    candidates: Vec<Candidate>,
    mark: u32,
    damage: &mut Vec<Damage>,
) -> Result<Vec<Member>, OpenError> {
    let mut members: Vec<(bool, Member)> = Vec::new();
    for candidate in candidates {
        let Candidate {
            path,
            named,
            bytes,
            header,
            trailer,
        } = candidate;
        if bytes < SEGMENT_HEADER_BYTES as u64 {
            damage.push(about(&path, DamageKind::Short));
            continue;
        }
        let trailer = trailer.filter(|trailer| trailer.mark == mark);
        let (first, chain) = match header {
            Decoded::Fine(header) if header.mark != mark => {
                damage.push(about(&path, DamageKind::Foreign));
                continue;
            }
            Decoded::Fine(header) => (header.first, Some(header.chain)),
            Decoded::Newer(layout) => return Err(newer(&path, layout)),
            Decoded::Damaged => {
                damage.push(about(&path, DamageKind::Header));
                (trailer.map_or(named, |trailer| trailer.first), None)
            }
        };
        let misnamed = named != first;
        if misnamed {
            damage.push(about(&path, DamageKind::Misnamed));
        }
        let sealed = trailer
            .filter(|trailer| trailer.first == first)
            .and_then(|trailer| Extent::of(&trailer, bytes));
        let member = Member {
            path,
            first,
            chain,
            bytes,
            sealed,
        };
        members.push((misnamed, member));
    }
    members.sort_by_key(|(misnamed, member)| (member.first, *misnamed));
    let mut kept: Vec<Member> = Vec::with_capacity(members.len());
    for (_, member) in members {
        match kept.last() {
            Some(last) if last.first == member.first => {
                damage.push(about(&member.path, DamageKind::Duplicate));
            }
            _ => kept.push(member),
        }
    }
    Ok(kept)
}

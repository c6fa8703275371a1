//! From a path an agent named to an open directory inside the project.
//!
//! The walk starts at the project's directory, which is held open, and takes one name at a time. The
//! system never follows a link for us: each is read and walked like the rest, `..` goes back to the
//! directory we came from, and neither gets above the project. What is found is an open directory,
//! so that renaming or replacing anything on the way, before or after, leads nowhere else.
//!
//! Invariant: every directory returned was reached from the project's through its own entries, and
//! none on the way is forbidden.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Refusal;
use sensitive_paths::is_sensitive;

/// As many as Linux itself follows.
const LINKS_MAX: usize = 40;
/// Directories held open during a walk.
const DEPTH_MAX: usize = 64;
/// Names in one path, with those its links add.
const NAMES_MAX: usize = 1024;
const PATH_BYTES_MAX: usize = 4096;

/// Only a place to walk from: needs no right to list it.
#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = OFlags::RDONLY;

/// A session's project: what it is called, and the directory itself.
pub(super) struct Project {
    path: PathBuf,
    root: OwnedFd,
    /// Held open, so that what identifies them is theirs for as long as we compare.
    forbidden: Vec<OwnedFd>,
    /// The whole project lies inside something forbidden.
    inside_forbidden: bool,
}

/// A name in an open directory. The name is a single one, and was no link when it was found.
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
    /// What stood there, if anything did.
    pub(super) found: Option<Stat>,
}

/// What a path is walked for.
#[derive(Clone, Copy)]
pub(super) enum For<'a> {
    Reading,
    /// Directories that are not there are made. A guarded file is found only if a person agreed to this very one,
    /// named by its path below the project.
    Writing {
        agreed: Option<&'a Path>,
    },
}

impl Project {
    pub(super) fn open(path: &Path, forbidden: &[PathBuf]) -> io::Result<Self> {
        let place = |path: &Path, kind| -> io::Result<OwnedFd> {
            let flags = PLACE | OFlags::CLOEXEC | OFlags::NOFOLLOW | kind;
            Ok(rustix::fs::open(path, flags, Mode::empty())?)
        };
        let forbidden = forbidden.iter().map(|path| place(path, OFlags::empty()));
        let mut project = Self {
            path: path.to_owned(),
            root: place(path, OFlags::DIRECTORY)?,
            forbidden: forbidden.collect::<io::Result<_>>()?,
            inside_forbidden: false,
        };
        project.inside_forbidden = project.lies_inside_forbidden()?;
        Ok(project)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself. Without a path, the project's.
    pub(super) fn directory(&self, path: Option<&Path>) -> Result<OwnedFd, Refusal> {
        let path = path.unwrap_or(&self.path);
        let mut walk = Walk::start(self, path)?;
        while let Some(name) = walk.next_name()? {
            walk.enter(name, For::Reading)?;
        }
        walk.into_directory()
    }

    /// Where the file is, or would be.
    pub(super) fn file(&self, path: &Path, what_for: For) -> Result<Place, Refusal> {
        let mut walk = Walk::start(self, path)?;
        while let Some(name) = walk.next_name()? {
            if !walk.todo.is_empty() {
                walk.enter(name, what_for)?;
                continue;
            }
            let found = match rustix::fs::statat(walk.here(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(stat),
                Err(Errno::NOENT) if !self.is_removed() => None,
                Err(error) => return Err(walk.trouble(error)),
            };
            match found.as_ref().map(kind_of) {
                Some(FileType::Symlink) => walk.follow(&name)?,
                _ => {
                    if let Some(found) = &found {
                        self.must_not_be_forbidden(path, found)?;
                    }
                    walk.must_be_agreed(&name, what_for)?;
                    let directory = walk.into_directory()?;
                    return Ok(Place {
                        directory,
                        name,
                        found,
                    });
                }
            }
        }
        Err(Refusal::not_allowed(format!(
            "{} is a directory",
            path.display()
        )))
    }

    /// The path below the project. Only the spelling is looked at: links and `..` come later.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        match path.is_absolute() {
            true => path.strip_prefix(&self.path).ok(),
            false => Some(path),
        }
    }

    pub(super) fn must_not_be_forbidden(&self, asked: &Path, found: &Stat) -> Result<(), Refusal> {
        match self.is_forbidden(found) {
            true => Err(ours(asked)),
            false => Ok(()),
        }
    }

    fn is_forbidden(&self, found: &Stat) -> bool {
        let same = |stat: Stat| (stat.st_dev, stat.st_ino) == (found.st_dev, found.st_ino);
        self.forbidden
            .iter()
            // What cannot be compared any more might be the one.
            .any(|forbidden| rustix::fs::fstat(forbidden).map_or(true, same))
    }

    fn lies_inside_forbidden(&self) -> io::Result<bool> {
        let mut stat = rustix::fs::fstat(&self.root)?;
        let mut here = self.root.try_clone()?;
        loop {
            if self.is_forbidden(&stat) {
                return Ok(true);
            }
            let above = open_directory(&here, OsStr::new(".."))?;
            let next = rustix::fs::fstat(&above)?;
            if (next.st_dev, next.st_ino) == (stat.st_dev, stat.st_ino) {
                return Ok(false);
            }
            (here, stat) = (above, next);
        }
    }

    fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.root).is_ok_and(|stat| stat.st_nlink == 0)
    }
}

pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn open_directory(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = PLACE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// A path for the system that leads to this very directory as long as it is held.
pub(super) fn way_to(directory: &OwnedFd) -> io::Result<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        Ok(format!("/proc/self/fd/{}", directory.as_raw_fd()).into())
    }
    #[cfg(target_vendor = "apple")]
    {
        let path = rustix::fs::getpath(directory)?;
        Ok(OsString::from_vec(path.into_bytes()).into())
    }
    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    {
        let _ = directory;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A walk under way.
struct Walk<'a> {
    project: &'a Project,
    /// As the agent wrote it, for messages.
    asked: &'a Path,
    /// Below the project, each inside the one before it.
    entered: Vec<OwnedFd>,
    /// What each of them is called.
    names_entered: Vec<OsString>,
    todo: VecDeque<OsString>,
    links: usize,
    names: usize,
}

impl<'a> Walk<'a> {
    fn start(project: &'a Project, asked: &'a Path) -> Result<Self, Refusal> {
        let mut walk = Self {
            project,
            asked,
            entered: vec![],
            names_entered: vec![],
            todo: VecDeque::new(),
            links: 0,
            names: 0,
        };
        if project.inside_forbidden {
            return Err(ours(asked));
        }
        let bytes = asked.as_os_str().as_bytes();
        if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) {
            return Err(Refusal::not_allowed("That is not a path"));
        }
        let below = project.below(asked).ok_or_else(|| walk.outside())?;
        walk.add(below);
        Ok(walk)
    }

    /// Puts the names of a relative path before what is still to do.
    fn add(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.todo.push_front(name.to_owned()),
                Component::ParentDir => self.todo.push_front("..".into()),
                _ => {}
            }
        }
    }

    /// The next real name. `..` is dealt with here.
    fn next_name(&mut self) -> Result<Option<OsString>, Refusal> {
        while let Some(name) = self.todo.pop_front() {
            self.names += 1;
            if self.names > NAMES_MAX {
                return Err(self.too_deep());
            }
            if name != ".." {
                return Ok(Some(name));
            }
            self.names_entered.pop();
            if self.entered.pop().is_none() {
                return Err(self.outside());
            }
        }
        Ok(None)
    }

    fn here(&self) -> &OwnedFd {
        self.entered.last().unwrap_or(&self.project.root)
    }

    fn enter(&mut self, name: OsString, what_for: For) -> Result<(), Refusal> {
        let mut opened = open_directory(self.here(), &name);
        if matches!(opened, Err(Errno::NOENT)) && matches!(what_for, For::Writing { .. }) {
            self.must_be_agreed(&name, what_for)?;
            match rustix::fs::mkdirat(self.here(), &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => opened = open_directory(self.here(), &name),
                Err(error) => return Err(self.trouble(error)),
            }
        }
        match opened {
            Ok(directory) => self.push(directory, name),
            // What a link answers when it may not be followed.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => self.follow(&name),
            Err(error) => Err(self.trouble(error)),
        }
    }

    /// Whether something may be written under this name, here.
    fn must_be_agreed(&self, name: &OsStr, what_for: For) -> Result<(), Refusal> {
        let For::Writing { agreed } = what_for else {
            return Ok(());
        };
        let mut below: PathBuf = self.names_entered.iter().collect();
        below.push(name);
        // A folder that is made on the way is judged by what it is made for.
        for name in &self.todo {
            match name == ".." {
                true => drop(below.pop()),
                false => below.push(name),
            }
        }
        if !is_sensitive(&below) || agreed == Some(&below) {
            return Ok(());
        }
        Err(Refusal::guarded(self.asked, below))
    }

    fn push(&mut self, directory: OwnedFd, name: OsString) -> Result<(), Refusal> {
        let stat = rustix::fs::fstat(&directory).map_err(|error| self.trouble(error))?;
        self.project.must_not_be_forbidden(self.asked, &stat)?;
        if self.entered.len() == DEPTH_MAX {
            return Err(self.too_deep());
        }
        self.entered.push(directory);
        self.names_entered.push(name);
        Ok(())
    }

    fn follow(&mut self, link: &OsStr) -> Result<(), Refusal> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.trouble(Errno::LOOP));
        }
        let target = match rustix::fs::readlinkat(self.here(), link, vec![]) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            // No link after all.
            Err(Errno::INVAL) => return Err(self.trouble(Errno::NOTDIR)),
            Err(error) => return Err(self.trouble(error)),
        };
        if target.is_absolute() {
            self.entered.clear();
            self.names_entered.clear();
        }
        let below = self.project.below(&target).ok_or_else(|| self.outside())?;
        self.add(below);
        Ok(())
    }

    fn into_directory(mut self) -> Result<OwnedFd, Refusal> {
        match self.entered.pop() {
            Some(directory) => Ok(directory),
            None => self
                .project
                .root
                .try_clone()
                .map_err(|error| Refusal::failed(format!("{}: {error}", self.asked.display()))),
        }
    }

    fn outside(&self) -> Refusal {
        let (asked, project) = (self.asked.display(), self.project.path.display());
        Refusal::not_allowed(format!("{asked} is outside the project {project}"))
    }

    fn too_deep(&self) -> Refusal {
        Refusal::not_allowed(format!("{} is too deep", self.asked.display()))
    }

    fn trouble(&self, error: Errno) -> Refusal {
        if error == Errno::NOENT && self.project.is_removed() {
            let project = self.project.path.display();
            return Refusal::missing(format!("The project {project} has been removed"));
        }
        trouble(self.asked, error.into())
    }
}

fn ours(asked: &Path) -> Refusal {
    let asked = asked.display();
    Refusal::not_allowed(format!(
        "{asked} belongs to Liminal Builder itself and is closed to agents"
    ))
}

/// What the system said about a path, to the agent that asked for it.
pub(super) fn trouble(asked: &Path, error: io::Error) -> Refusal {
    let message = format!("{}: {error}", asked.display());
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::missing(message),
        _ => Refusal::failed(message),
    }
}

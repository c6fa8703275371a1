//! Resolution of an agent's path to an open directory inside the project.
//!
//! The walk starts at the project's directory, which is held open, and resolves one name at a time. The system never
//! follows a symbolic link: its target is read and resolved in the same way, `..` returns to the previously entered
//! directory, and neither can leave the project. The result is an open directory, so that renaming or replacing a
//! directory on the path at any time cannot redirect the access.
//!
//! Invariant: every returned directory was reached from the project's directory through entries of it, and no directory
//! on the path is forbidden.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use sensitive_paths::sensitive_change;

use super::Refusal;
use super::entry::{content_of, kind_of};

/// Maximum symbolic links in one path, the limit of Linux.
const LINKS_MAX: usize = 40;
/// Maximum nested directories, which are held open during a walk.
const DEPTH_MAX: usize = 64;
/// Maximum names in one path, including those of link targets.
const NAMES_MAX: usize = 1024;
const PATH_BYTES_MAX: usize = 4096;

/// Open flags of directories on the path, which may lack read permission.
#[cfg(target_os = "linux")]
const OPEN_FLAGS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const OPEN_FLAGS: OFlags = OFlags::RDONLY;

/// A session's project: its path and its open directory.
pub(super) struct Project {
    path: PathBuf,
    root: OwnedFd,
    /// Held open, so that their inode numbers are not reused.
    forbidden: Vec<OwnedFd>,
    /// Whether the project itself is inside a forbidden directory.
    inside_forbidden: bool,
}

/// An entry of an open directory: a single name that was no symbolic link when it was looked up.
pub(super) struct FileEntry {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
    /// The status of the entry, if it exists.
    pub(super) found: Option<Stat>,
    /// The status of the file whose content made the write harmless. The write must replace this very file.
    pub(super) compared: Option<Stat>,
}

/// The purpose of resolving a path.
#[derive(Clone, Copy)]
pub(super) enum Access<'a> {
    Reading,
    /// Missing directories are created. A sensitive change is refused unless its path equals `agreed`, the path below
    /// the project that the user has approved for this content.
    Writing {
        content: &'a [u8],
        agreed: Option<&'a Path>,
    },
}

impl Project {
    pub(super) fn open(path: &Path, forbidden: &[PathBuf]) -> io::Result<Self> {
        let place = |path: &Path, kind| -> io::Result<OwnedFd> {
            let flags = OPEN_FLAGS | OFlags::CLOEXEC | OFlags::NOFOLLOW | kind;
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

    /// Opens a directory; without a path, the project's.
    pub(super) fn directory(&self, path: Option<&Path>) -> Result<OwnedFd, Refusal> {
        let path = path.unwrap_or(&self.path);
        let mut walk = Walk::start(self, path)?;
        while let Some(name) = walk.next_name()? {
            walk.enter(name, Access::Reading)?;
        }
        walk.into_directory()
    }

    /// Resolves the path of a file, which need not exist.
    pub(super) fn file(&self, path: &Path, access: Access) -> Result<FileEntry, Refusal> {
        let mut walk = Walk::start(self, path)?;
        while let Some(name) = walk.next_name()? {
            if !walk.todo.is_empty() {
                walk.enter(name, access)?;
                continue;
            }
            let found = match rustix::fs::statat(walk.here(), &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(stat),
                Err(Errno::NOENT) if !self.is_removed() => None,
                Err(error) => return Err(walk.io_refusal(error)),
            };
            match found.as_ref().map(kind_of) {
                Some(FileType::Symlink) => walk.follow(&name)?,
                _ => {
                    if let Some(found) = &found {
                        self.check_not_forbidden(path, found)?;
                    }
                    let compared = walk.require_approval(&name, found.is_some(), access)?;
                    let directory = walk.into_directory()?;
                    return Ok(FileEntry {
                        directory,
                        name,
                        found,
                        compared,
                    });
                }
            }
        }
        Err(Refusal::not_allowed(format!(
            "{} is a directory",
            path.display()
        )))
    }

    /// The path below the project that an agent's path leads to, with the content of the file there. Names below a missing
    /// directory are taken as they are.
    pub(super) fn look(&self, path: &Path) -> Option<(PathBuf, Option<Vec<u8>>)> {
        let mut walk = Walk::start(self, path).ok()?;
        while let Some(name) = walk.next_name().ok()? {
            let found = rustix::fs::statat(walk.here(), &name, AtFlags::SYMLINK_NOFOLLOW);
            match found.as_ref().map(kind_of) {
                Ok(FileType::Symlink) => walk.follow(&name).ok()?,
                Ok(FileType::Directory) => walk.enter(name, Access::Reading).ok()?,
                _ => {
                    let below = walk.below(&name);
                    let is_last = walk.todo.is_empty();
                    let content = is_last.then(|| content_of(walk.here(), &name));
                    return Some((below, content.flatten().map(|(content, _)| content)));
                }
            }
        }
        Some((walk.names_entered.iter().collect(), None))
    }

    /// The path relative to the project. Compares the text only; links and `..` are resolved later.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        match path.is_absolute() {
            true => path.strip_prefix(&self.path).ok(),
            false => Some(path),
        }
    }

    pub(super) fn check_not_forbidden(&self, asked: &Path, found: &Stat) -> Result<(), Refusal> {
        match self.is_forbidden(found) {
            true => Err(forbidden_refusal(asked)),
            false => Ok(()),
        }
    }

    fn is_forbidden(&self, found: &Stat) -> bool {
        let same = |stat: Stat| (stat.st_dev, stat.st_ino) == (found.st_dev, found.st_ino);
        self.forbidden
            .iter()
            // If the comparison fails, access is denied.
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

fn open_directory(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OPEN_FLAGS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// A path that refers to this open directory as long as it stays open.
pub(super) fn path_to(directory: &OwnedFd) -> io::Result<PathBuf> {
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

/// The state of resolving one path.
struct Walk<'a> {
    project: &'a Project,
    /// The path as the agent wrote it, for messages.
    asked: &'a Path,
    /// The entered directories below the project, each inside the previous one.
    entered: Vec<OwnedFd>,
    /// The names of the entered directories.
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
            return Err(forbidden_refusal(asked));
        }
        let bytes = asked.as_os_str().as_bytes();
        if bytes.is_empty() || bytes.len() > PATH_BYTES_MAX || bytes.contains(&0) {
            return Err(Refusal::not_allowed(
                "The path is empty, too long or contains a NUL byte",
            ));
        }
        let below = project.below(asked).ok_or_else(|| walk.outside())?;
        walk.add(below);
        Ok(walk)
    }

    /// Puts the names of a relative path in front of the names still to resolve.
    fn add(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.todo.push_front(name.to_owned()),
                Component::ParentDir => self.todo.push_front("..".into()),
                _ => {}
            }
        }
    }

    /// The next name other than `..`, which is applied here.
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

    fn enter(&mut self, name: OsString, access: Access) -> Result<(), Refusal> {
        let mut opened = open_directory(self.here(), &name);
        if matches!(opened, Err(Errno::NOENT)) && matches!(access, Access::Writing { .. }) {
            self.require_approval(&name, false, access)?;
            match rustix::fs::mkdirat(self.here(), &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => opened = open_directory(self.here(), &name),
                Err(error) => return Err(self.io_refusal(error)),
            }
        }
        match opened {
            Ok(directory) => self.push(directory, name),
            // The errors for a symbolic link opened with `O_NOFOLLOW`.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => self.follow(&name),
            Err(error) => Err(self.io_refusal(error)),
        }
    }

    /// Refuses to write under this name if the change is sensitive and not approved. Returns the status of the existing
    /// file if its content was needed to decide.
    fn require_approval(
        &self,
        name: &OsStr,
        exists: bool,
        access: Access,
    ) -> Result<Option<Stat>, Refusal> {
        let Access::Writing { content, agreed } = access else {
            return Ok(None);
        };
        // A directory created on the path is judged by the full path of the file.
        let below = self.below(name);
        let Some(reason) = sensitive_change(&below, None, content) else {
            return Ok(None);
        };
        if agreed == Some(&below) {
            return Ok(None);
        }
        // Read from the directory that the write uses, so that no other file can be put in its place.
        let before = exists.then(|| content_of(self.here(), name)).flatten();
        let (before, stat) = before.unzip();
        match sensitive_change(&below, before.as_deref(), content) {
            None => Ok(stat),
            Some(_) => Err(Refusal::guarded(self.asked, below, reason)),
        }
    }

    /// The path below the project of `name` in this directory, followed by the names still to resolve.
    fn below(&self, name: &OsStr) -> PathBuf {
        let mut below: PathBuf = self.names_entered.iter().collect();
        below.push(name);
        for name in &self.todo {
            match name == ".." {
                true => drop(below.pop()),
                false => below.push(name),
            }
        }
        below
    }

    fn push(&mut self, directory: OwnedFd, name: OsString) -> Result<(), Refusal> {
        let stat = rustix::fs::fstat(&directory).map_err(|error| self.io_refusal(error))?;
        self.project.check_not_forbidden(self.asked, &stat)?;
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
            return Err(self.io_refusal(Errno::LOOP));
        }
        let target = match rustix::fs::readlinkat(self.here(), link, vec![]) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            // It is no symbolic link after all.
            Err(Errno::INVAL) => return Err(self.io_refusal(Errno::NOTDIR)),
            Err(error) => return Err(self.io_refusal(error)),
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
        Refusal::not_allowed(format!(
            "{} has too many path components",
            self.asked.display()
        ))
    }

    fn io_refusal(&self, error: Errno) -> Refusal {
        if error == Errno::NOENT && self.project.is_removed() {
            let project = self.project.path.display();
            return Refusal::missing(format!("The project {project} has been removed"));
        }
        io_refusal(self.asked, error.into())
    }
}

fn forbidden_refusal(asked: &Path) -> Refusal {
    let asked = asked.display();
    Refusal::not_allowed(format!(
        "{asked} belongs to Liminal Builder itself and is closed to agents"
    ))
}

/// A system error for a path, as a refusal for the agent.
pub(super) fn io_refusal(asked: &Path, error: io::Error) -> Refusal {
    let message = format!("{}: {error}", asked.display());
    match error.kind() {
        io::ErrorKind::NotFound => Refusal::missing(message),
        _ => Refusal::failed(message),
    }
}

//! Path check: a session may only access files inside its directories.

use std::path::{Component, Path, PathBuf};

/// The directories of a session, the working directory first.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    cwd: PathBuf,
    all: Vec<PathBuf>,
}

impl Roots {
    pub(crate) fn new(cwd: &Path, more: &[PathBuf]) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut all = vec![real(cwd)];
        all.extend(more.iter().map(|path| real(path)));
        Self {
            cwd: all[0].clone(),
            all,
        }
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Resolves a path, which need not exist yet, to its real path. Fails if it is outside the session's
    /// directories.
    pub(crate) fn resolve(&self, named: &str) -> Result<PathBuf, String> {
        let named = named.trim();
        let path = self.cwd.join(if named.is_empty() { "." } else { named });
        let real = real_path(&path).map_err(|error| format!("`{named}`: {error}"))?;
        match self.all.iter().any(|root| real.starts_with(root)) {
            true => Ok(real),
            false => Err(format!("`{named}` is outside of this project.")),
        }
    }

    /// The path as shown to the user, relative to the working directory.
    pub(crate) fn relative_to_cwd(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.cwd).unwrap_or(path);
        match inside.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => inside.display().to_string(),
        }
    }
}

/// Resolves all symbolic links of the existing part; the rest may contain only normal components.
fn real_path(path: &Path) -> std::io::Result<PathBuf> {
    let mut existing = path;
    let mut rest = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut real) => {
                real.extend(rest.iter().rev());
                return Ok(real);
            }
            // Writing to a dangling link would follow it.
            Err(error)
                if error.kind() != std::io::ErrorKind::NotFound
                    || existing.symlink_metadata().is_ok() =>
            {
                return Err(error);
            }
            Err(error) => match (existing.components().next_back(), existing.parent()) {
                (Some(Component::Normal(name)), Some(parent)) => {
                    rest.push(name);
                    existing = parent;
                }
                _ => return Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_project_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("nowhere"), root.join("dangling")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        let roots = Roots::new(&root, &[]);
        let root = root.canonicalize().unwrap();
        assert_eq!(
            roots.resolve("src/new/file.rs").unwrap(),
            root.join("src/new/file.rs")
        );
        assert_eq!(roots.resolve("").unwrap(), root);
        assert_eq!(roots.resolve("src/../a").unwrap(), root.join("a"));
        let whole = root.join("src").display().to_string();
        assert_eq!(roots.resolve(&whole).unwrap(), root.join("src"));
        for outside in [
            "../secret",
            "/etc/passwd",
            "link",
            "dangling",
            "up/secret",
            "up/new",
            "nothing/../../secret",
            "src/../../secret",
            "..",
            "/",
        ] {
            assert!(roots.resolve(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn paths_in_additional_directories_are_accepted() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = other.path().join("x");
        let roots = Roots::new(one.path(), &[]);
        assert!(roots.resolve(file.to_str().unwrap()).is_err());
        let roots = Roots::new(one.path(), &[other.path().to_owned()]);
        assert!(roots.resolve(file.to_str().unwrap()).is_ok());
    }
}

//! Embeds `web/` in the binary: for each file its hash, and its bytes plain, gzip- and brotli-compressed. Style sheets
//! and the boot script are inlined into each page, which saves a round trip before the first paint; their hashes go
//! into the page's Content-Security-Policy. A page's module is bundled with those it imports, and the page names the
//! bundle's hash: a browser then runs no other file that a program left in its cache under this name. A debug build embeds
//! nothing unless `LIMINAL_EMBED_WEB` is set, and reads `web/` from disk instead (`src/assets.rs`).

#[path = "build/join.rs"]
mod join;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

/// The modules that pages reference; all others are bundled into them.
const ENTRIES: [&str; 3] = ["login/login.js", "portlet/main.js", "shell/main.js"];
/// A classic script that runs before the modules.
const BOOT: &str = "shared/boot.js";

/// Environment variable that makes a debug build embed the files as well.
const EMBED: &str = "LIMINAL_EMBED_WEB";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(embedded_web)");
    println!("cargo::rerun-if-changed=../../web");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-env-changed={EMBED}");
    if !is_release() && std::env::var_os(EMBED).is_none() {
        return;
    }
    println!("cargo::rustc-cfg=embedded_web");
    let web = PathBuf::from("../../web")
        .canonicalize()
        .expect("web/ is beside crates/");
    let mut files = Vec::new();
    collect(&web, &mut files);
    // Sorted as text, not by path component: the server looks names up by binary search.
    files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    let mut table = String::from("&[\n");
    for (number, path) in files.iter().enumerate() {
        let name = path
            .strip_prefix(&web)
            .expect("below web/")
            .to_str()
            .expect("file names are UTF-8");
        if name.ends_with(".js") && !ENTRIES.contains(&name) {
            continue;
        }
        let mut bytes = fs::read(path).expect("web/ is readable");
        let mut hashes = Hashes::default();
        if name.ends_with(".html") {
            let page = String::from_utf8(bytes).expect("pages are UTF-8");
            bytes = hashes.with_parts_inside(&page, &web).into_bytes();
        }
        if ENTRIES.contains(&name) {
            bytes = join::join(&web, name).into_bytes();
        }
        let packed = |kind: &str, content: &[u8]| {
            let file = out.join(format!("{number}.{kind}"));
            fs::write(&file, content).expect("OUT_DIR is writable");
            format!(
                "include_bytes!({:?})",
                file.to_str().expect("OUT_DIR is UTF-8")
            )
        };
        let Hashes { styles, scripts } = hashes;
        writeln!(
            table,
            "Embedded {{ path: {name:?}, style_hashes: {styles:?}, script_hashes: {scripts:?}, etag: {:?}, plain: {}, gzip: {}, brotli: {} }},",
            etag(&bytes),
            packed("plain", &bytes),
            packed("gzip", &gzip(&bytes)),
            packed("brotli", &brotli(&bytes)),
        )
        .expect("writing to a string");
    }
    table.push(']');
    fs::write(out.join("web.rs"), table).expect("OUT_DIR is writable");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("web/ is readable") {
        let path = entry.expect("web/ is readable").path();
        let name = path.to_str().expect("file names are UTF-8");
        if path.is_dir() {
            collect(&path, files);
        } else if [".html", ".css", ".js", ".svg"]
            .iter()
            .any(|end| name.ends_with(end))
            && !name.ends_with(".test.js")
        {
            files.push(path);
        }
    }
}

/// Hashes of the parts inlined into a page, as sources of a Content-Security-Policy.
#[derive(Default)]
struct Hashes {
    styles: String,
    scripts: String,
}

impl Hashes {
    fn with_parts_inside(&mut self, page: &str, web: &Path) -> String {
        let read = |name: &str| {
            fs::read_to_string(web.join(name)).expect("the page references a file of web/")
        };
        let inside = |line: &str| {
            let link = line
                .trim()
                .strip_prefix(r#"<link rel="stylesheet" href="/"#);
            if let Some(sheet) = link.and_then(|rest| rest.strip_suffix(r#"">"#)) {
                let css = read(sheet);
                self.styles.push_str(&source(&css));
                return format!("<style>{css}</style>\n");
            }
            let src = format!(r#" src="/{BOOT}""#);
            if line.contains(&src) {
                let script = read(BOOT);
                self.scripts.push_str(&source(&script));
                let tag = line.trim().replace(&src, "");
                return tag.replace("></", &format!(">{script}</")) + "\n";
            }
            let is_entry = |entry: &&&str| line.contains(&format!(r#" src="/{entry}""#));
            if let Some(entry) = ENTRIES.iter().find(is_entry) {
                let hash = BASE64_STANDARD.encode(Sha256::digest(join::join(web, entry)));
                let integrity = format!(r#" integrity="sha256-{hash}" src="#);
                return line.replacen(" src=", &integrity, 1) + "\n";
            }
            format!("{line}\n")
        };
        page.lines().map(inside).collect()
    }
}

fn source(text: &str) -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(text));
    format!(" 'sha256-{hash}'")
}

fn etag(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(12)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn is_release() -> bool {
    std::env::var("PROFILE").as_deref() == Ok("release")
}

/// Best compression in a release build; otherwise fast, as the build script itself is not optimised then.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let level = match is_release() {
        true => flate2::Compression::best(),
        false => flate2::Compression::fast(),
    };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("compressing in memory")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let params = brotli::enc::BrotliEncoderParams {
        quality: if is_release() { 11 } else { 2 },
        lgwin: 22,
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &bytes[..], &mut packed, &params).expect("compressing in memory");
    packed
}

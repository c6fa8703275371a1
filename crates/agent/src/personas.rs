//! Personas of the agent, read from `workspace/AGENTS.md`.
//!
//! ```text
//! ## reviewer
//! Model: anthropic/claude-sonnet-4-5
//! Description: Reads changes and says what is wrong with them.
//! All other text is the persona's system prompt.
//! ```

use std::path::Path;

const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A system prompt of `AGENTS.md` under its name, with the model it prefers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    pub name: String,
    pub model: Option<String>,
    pub description: Option<String>,
    pub prompt: String,
}

impl Default for Persona {
    fn default() -> Self {
        Self {
            name: "assistant".to_owned(),
            model: None,
            description: Some("A coding assistant for this project.".to_owned()),
            prompt: String::new(),
        }
    }
}

/// Reads the personas of a file. Returns the default persona if the file has none, so the list is never empty.
pub fn read(path: &Path) -> Vec<Persona> {
    let size = path.metadata().map_or(0, |data| data.len());
    let text = match std::fs::read_to_string(path) {
        Ok(text) if size <= FILE_BYTES_MAX => text,
        Ok(_) => {
            tracing::warn!(path = %path.display(), "the personas file is larger than 1 MiB; using the default persona");
            String::new()
        }
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "could not read the personas file; using the default persona");
            }
            String::new()
        }
    };
    let personas = parse(&text);
    if personas.is_empty() {
        vec![Persona::default()]
    } else {
        personas
    }
}

fn parse(text: &str) -> Vec<Persona> {
    let mut personas: Vec<Persona> = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.strip_prefix("## ").map(str::trim);
        if let Some(name) = heading.filter(|name| !fenced && !name.is_empty()) {
            personas.push(Persona {
                name: name.to_owned(),
                model: None,
                description: None,
                prompt: String::new(),
            });
            continue;
        }
        let Some(persona) = personas.last_mut() else {
            continue;
        };
        let value = |key: &str| {
            let rest = line.trim().strip_prefix(key).map(str::trim);
            rest.filter(|value| !fenced && !value.is_empty())
                .map(str::to_owned)
        };
        if let Some(model) = value("Model:").filter(|_| persona.model.is_none()) {
            persona.model = Some(model);
        } else if let Some(text) = value("Description:").filter(|_| persona.description.is_none()) {
            persona.description = Some(text);
        } else {
            persona.prompt.push_str(line);
            persona.prompt.push('\n');
        }
    }
    // Personas are selected by name, so a second one with the same name could never be used.
    let mut seen = std::collections::HashSet::new();
    personas.retain(|persona| seen.insert(persona.name.clone()));
    for persona in &mut personas {
        persona.prompt = persona.prompt.trim().to_owned();
    }
    personas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_starts_a_persona_and_other_text_is_its_prompt() {
        let text = "# Agents\nintro\n\n## assistant\nModel: anthropic/claude-opus-4-6\nDescription: Helps.\n\nYou are kind.\n\n### Rules\nShort.\n## local\nModel: openai-compatible/qwen3\n";
        assert_eq!(
            parse(text),
            [
                Persona {
                    name: "assistant".to_owned(),
                    model: Some("anthropic/claude-opus-4-6".to_owned()),
                    description: Some("Helps.".to_owned()),
                    prompt: "You are kind.\n\n### Rules\nShort.".to_owned(),
                },
                Persona {
                    name: "local".to_owned(),
                    model: Some("openai-compatible/qwen3".to_owned()),
                    description: None,
                    prompt: String::new(),
                },
            ]
        );
    }

    #[test]
    fn heading_in_a_code_block_belongs_to_the_prompt() {
        let parsed = parse("## a\n```md\n## not a persona\nModel: none\n```\nend\n");
        assert_eq!(parsed.len(), 1);
        assert!(parsed[0].prompt.contains("## not a persona\nModel: none"));
        assert_eq!(parsed[0].model, None);
    }

    #[test]
    fn second_persona_with_the_same_name_is_ignored() {
        let parsed = parse("## a\nfirst\n## a\nsecond\n");
        assert_eq!(parsed.len(), 1);
        assert_eq!(parsed[0].prompt, "first");
    }

    #[test]
    fn unreadable_or_empty_file_gives_the_default_persona() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        assert_eq!(read(&path), [Persona::default()]);
        std::fs::write(&path, b"\xff\xfe broken").unwrap();
        assert_eq!(read(&path), [Persona::default()]);
        std::fs::write(&path, "no heading at all").unwrap();
        assert_eq!(read(&path), [Persona::default()]);
        assert_eq!(read(dir.path()), [Persona::default()]);
    }
}

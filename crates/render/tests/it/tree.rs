//! Model of the page: applies parts to a tree and returns its HTML.

use render::Part;

#[derive(Debug, Clone)]
enum Node {
    Text(String),
    Element {
        open: String,
        close: String,
        children: Vec<Node>,
    },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tree(Vec<Node>);

impl Tree {
    pub(crate) fn apply(&mut self, parts: &[Part]) {
        for part in parts {
            let mut place = &mut self.0;
            for _ in 0..part.depth {
                let last = place
                    .iter_mut()
                    .rev()
                    .find_map(|node| match node {
                        Node::Element { children, .. } => Some(children),
                        Node::Text(_) => None,
                    })
                    .expect("part refers to a missing element");
                place = last;
            }
            place.extend(parsed(&part.html));
        }
    }

    pub(crate) fn html(&self) -> String {
        fn write(nodes: &[Node], out: &mut String) {
            for node in nodes {
                match node {
                    Node::Text(text) => out.push_str(text),
                    Node::Element {
                        open,
                        close,
                        children,
                    } => {
                        out.push_str(open);
                        write(children, out);
                        out.push_str(close);
                    }
                }
            }
        }
        let mut out = String::new();
        write(&self.0, &mut out);
        out
    }
}

/// Parses balanced HTML. Stricter than a browser: unbalanced markup panics.
fn parsed(html: &str) -> Vec<Node> {
    let mut stack: Vec<(String, String, Vec<Node>)> = vec![(String::new(), String::new(), vec![])];
    let mut rest = html;
    while !rest.is_empty() {
        let length = match rest.starts_with('<') {
            true => rest.find('>').expect("unterminated tag") + 1,
            false => rest.find('<').unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        if !piece.starts_with('<') {
            stack
                .last_mut()
                .unwrap()
                .2
                .push(Node::Text(piece.to_owned()));
        } else if piece.starts_with("</") {
            let (open, close, children) = stack.pop().unwrap();
            assert_eq!(piece, close, "in {html}");
            stack.last_mut().unwrap().2.push(Node::Element {
                open,
                close,
                children,
            });
        } else {
            let name = piece[1..].split([' ', '>']).next().unwrap();
            if ["br", "hr"].contains(&name) {
                stack.last_mut().unwrap().2.push(Node::Element {
                    open: piece.to_owned(),
                    close: String::new(),
                    children: vec![],
                });
            } else {
                stack.push((piece.to_owned(), format!("</{name}>"), vec![]));
            }
        }
    }
    assert_eq!(stack.len(), 1, "not balanced: {html}");
    stack.pop().unwrap().2
}

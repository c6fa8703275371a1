//! HTML tree as a browser's parser builds it.
//!
//! Our HTML is well-formed, so the parser must not move, close, remove or report anything.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_fragment};

use crate::tokens::Piece;

struct Node {
    name: QualName,
    attributes: Vec<(String, String)>,
    children: RefCell<Vec<Child>>,
}

enum Child {
    Element(Rc<Node>),
    Text(String),
}

#[derive(Default)]
struct Dom {
    document: RefCell<Option<Rc<Node>>>,
    repairs: RefCell<Vec<String>>,
}

impl Dom {
    fn repair(&self, what: &str) {
        self.repairs.borrow_mut().push(what.to_owned());
    }
}

fn node(name: QualName, attributes: Vec<Attribute>) -> Rc<Node> {
    let text = |a: &Attribute| (a.name.local.to_string(), a.value.to_string());
    let mut attributes: Vec<_> = attributes.iter().map(text).collect();
    attributes.sort();
    Rc::new(Node {
        name,
        attributes,
        children: RefCell::default(),
    })
}

fn named(local: html5ever::LocalName) -> QualName {
    QualName::new(None, ns!(html), local)
}

impl TreeSink for Dom {
    type Handle = Rc<Node>;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, message: Cow<'static, str>) {
        self.repair(&message);
    }

    fn get_document(&self) -> Rc<Node> {
        let mut document = self.document.borrow_mut();
        let root = document.get_or_insert_with(|| node(named(local_name!("main")), vec![]));
        Rc::clone(root)
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> Rc<Node> {
        node(name, attributes)
    }

    fn create_comment(&self, text: StrTendril) -> Rc<Node> {
        self.repair(&format!("comment {text}"));
        node(named(local_name!("main")), vec![])
    }

    fn create_pi(&self, target: StrTendril, _: StrTendril) -> Rc<Node> {
        self.repair(&format!("instruction {target}"));
        node(named(local_name!("main")), vec![])
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        let mut children = parent.children.borrow_mut();
        match (child, children.last_mut()) {
            (NodeOrText::AppendNode(node), _) => children.push(Child::Element(node)),
            (NodeOrText::AppendText(text), Some(Child::Text(before))) => before.push_str(&text),
            (NodeOrText::AppendText(text), _) => children.push(Child::Text(text.to_string())),
        }
    }

    fn append_based_on_parent_node(&self, _: &Rc<Node>, _: &Rc<Node>, _: NodeOrText<Rc<Node>>) {
        self.repair("moved a node before a table");
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {
        self.repair("doctype");
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        self.repair("template");
        Rc::clone(target)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        Rc::ptr_eq(one, other)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, _: &Rc<Node>, _: NodeOrText<Rc<Node>>) {
        self.repair("inserted a node before a sibling");
    }

    fn add_attrs_if_missing(&self, _: &Rc<Node>, _: Vec<Attribute>) {
        self.repair("moved attributes");
    }

    fn remove_from_parent(&self, _: &Rc<Node>) {
        self.repair("removed a node");
    }

    fn reparent_children(&self, _: &Rc<Node>, _: &Rc<Node>) {
        self.repair("moved children");
    }
}

/// Returns the tree that the parser built and the repairs it made.
pub(crate) fn built(html: &str) -> (Vec<Piece>, Vec<String>) {
    fn walk(node: &Node, pieces: &mut Vec<Piece>) {
        for child in node.children.borrow().iter() {
            match child {
                Child::Text(text) => pieces.push(Piece::Text(text.clone())),
                Child::Element(node) => {
                    let name = node.name.local.to_string();
                    pieces.push(Piece::Start(name.clone(), node.attributes.clone()));
                    walk(node, pieces);
                    if !["br", "hr"].contains(&name.as_str()) {
                        pieces.push(Piece::End(name));
                    }
                }
            }
        }
    }
    let context = named(local_name!("div"));
    let parser = parse_fragment(Dom::default(), ParseOpts::default(), context, vec![], true);
    let dom = parser.one(html);
    let mut pieces = vec![];
    // The parser wraps a fragment in an `html` element.
    for child in dom.get_document().children.borrow().iter() {
        if let Child::Element(root) = child {
            walk(root, &mut pieces);
        }
    }
    (pieces, dom.repairs.take())
}

#[test]
fn malformed_html_is_reported_as_repairs() {
    for html in [
        "<p><div></div></p>",
        "<table><b>x</b></table>",
        "<a>x<a>y</a></a>",
        "<b>",
        "</i>",
        "<!-- -->",
    ] {
        let (pieces, repairs) = built(html);
        assert!(
            !repairs.is_empty() || pieces != crate::tokens::pieces(html),
            "{html}"
        );
    }
}

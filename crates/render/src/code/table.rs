//! Table of supported languages. To add a language, add an entry.

use super::languages::flags::*;
use super::languages::{Grammar, Language, Quote};

const fn quote(open: &'static str, close: &'static str, escapes: bool, spans_lines: bool) -> Quote {
    Quote {
        open,
        close,
        escapes,
        spans_lines,
    }
}

const DOUBLE: Quote = quote("\"", "\"", true, false);
const SINGLE: Quote = quote("'", "'", true, false);
const LONG_DOUBLE: Quote = quote("\"", "\"", true, true);
const LONG_SINGLE: Quote = quote("'", "'", true, true);
const RAW_SINGLE: Quote = quote("'", "'", false, true);
const TRIPLE: Quote = quote("\"\"\"", "\"\"\"", true, true);
const TRIPLE_SINGLE: Quote = quote("'''", "'''", true, true);
const TICK: Quote = quote("`", "`", true, true);
const RAW_TICK: Quote = quote("`", "`", false, true);

const BOTH: &[Quote] = &[DOUBLE, SINGLE];
const SLASHES: &[&str] = &["//"];
const HASH: &[&str] = &["#"];
const STARS: &[(&str, &str)] = &[("/*", "*/")];

const PLAIN: Language = Language {
    name: "",
    aliases: "",
    grammar: Grammar::Words,
    line_comments: &[],
    block_comments: &[],
    strings: BOTH,
    keywords: "",
    types: "",
    values: "true false null",
    flags: CAPITAL_TYPES,
};

/// Base of the languages with C-style comments.
const CURLY: Language = Language {
    line_comments: SLASHES,
    block_comments: STARS,
    ..PLAIN
};

const SCRIPT: Language = Language {
    line_comments: HASH,
    ..PLAIN
};

const MARKUP: Language = Language {
    grammar: Grammar::Markup,
    ..PLAIN
};

const JS_WORDS: &str = "as async await break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static super switch throw try typeof var void while with yield";
const TS_WORDS: &str = "abstract as asserts async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new of out override private protected public readonly return satisfies set static super switch throw try type typeof var void while with yield";
const TS_TYPES: &str = "any bigint boolean never number object string symbol unknown";
const JS_VALUES: &str = "true false null undefined NaN Infinity this";
const JS_STRINGS: &[Quote] = &[DOUBLE, SINGLE, TICK];
const JS_FLAGS: u32 = CAPITAL_TYPES | DOLLAR_IN_WORDS | AT_META | REGEX;
const C_TYPES: &str = "bool char double float int int8_t int16_t int32_t int64_t long short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t unsigned void wchar_t";
const SQL_WORDS: &str = "add all alter analyze and any as asc begin between by cascade case check column commit constraint create cross database default delete desc distinct do drop else end except exists explain fetch first for foreign from full function grant group having if in index inner insert intersect into is join key lateral left like limit materialized natural not nulls offset on or order outer over partition primary procedure recursive references replace returning revoke right rollback row rows select set table temporary then to transaction trigger truncate union unique update using values view when where window with";

pub(crate) static LANGUAGES: [Language; 62] = [
    Language {
        name: "Rust",
        aliases: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct super trait type union unsafe use where while yield",
        types: "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        values: "true false self Self",
        strings: &[LONG_DOUBLE],
        flags: CAPITAL_TYPES | RUST | PREFIXED_STRINGS | APOSTROPHE_IS_CHAR | NESTED_COMMENTS,
        ..CURLY
    },
    Language {
        name: "Python",
        aliases: "python py python3 py3 pyi pyw gyp",
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
        types: "bool bytes dict float frozenset int list object set str tuple type",
        values: "True False None self cls",
        strings: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META | PREFIXED_STRINGS,
        ..SCRIPT
    },
    Language {
        name: "JavaScript",
        aliases: "javascript js mjs cjs node",
        keywords: JS_WORDS,
        values: JS_VALUES,
        strings: JS_STRINGS,
        flags: JS_FLAGS,
        ..CURLY
    },
    Language {
        name: "JSX",
        aliases: "jsx",
        keywords: JS_WORDS,
        values: JS_VALUES,
        strings: JS_STRINGS,
        flags: JS_FLAGS,
        ..CURLY
    },
    Language {
        name: "TypeScript",
        aliases: "typescript ts mts cts",
        keywords: TS_WORDS,
        types: TS_TYPES,
        values: JS_VALUES,
        strings: JS_STRINGS,
        flags: JS_FLAGS,
        ..CURLY
    },
    Language {
        name: "TSX",
        aliases: "tsx",
        keywords: TS_WORDS,
        types: TS_TYPES,
        values: JS_VALUES,
        strings: JS_STRINGS,
        flags: JS_FLAGS,
        ..CURLY
    },
    Language {
        name: "Go",
        aliases: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
        types: "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        values: "true false nil iota",
        strings: &[DOUBLE, SINGLE, RAW_TICK],
        ..CURLY
    },
    Language {
        name: "Java",
        aliases: "java",
        keywords: "abstract assert break case catch class const continue default do else enum extends final finally for goto if implements import instanceof interface native new non-sealed package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var void volatile while yield",
        types: "boolean byte char double float int long short",
        strings: &[TRIPLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META,
        ..CURLY
    },
    Language {
        name: "Kotlin",
        aliases: "kotlin kt kts",
        keywords: "abstract actual annotation as break by catch class companion const constructor continue crossinline data do else enum expect external final finally for fun get if import in infix init inline inner interface internal is lateinit noinline object open operator out override package private protected public reified return sealed set super suspend tailrec this throw try typealias val var vararg when where while",
        strings: &[TRIPLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META | NESTED_COMMENTS,
        ..CURLY
    },
    Language {
        name: "C",
        aliases: "c h",
        keywords: "auto break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct switch typedef union volatile while",
        types: C_TYPES,
        values: "true false NULL nullptr",
        flags: CAPITAL_TYPES | HASH_LINES,
        ..CURLY
    },
    Language {
        name: "C++",
        aliases: "cpp c++ cc cxx hpp hh hxx ino cuda cu",
        keywords: "alignas alignof and auto break case catch class co_await co_return co_yield concept const consteval constexpr constinit continue decltype default delete do else enum explicit export extern final for friend goto if inline mutable namespace new noexcept not operator or override private protected public register requires return sizeof static static_assert static_cast struct switch template this thread_local throw try typedef typeid typename union using virtual volatile while",
        types: C_TYPES,
        values: "true false NULL nullptr",
        flags: CAPITAL_TYPES | HASH_LINES,
        ..CURLY
    },
    Language {
        name: "C#",
        aliases: "csharp c# cs",
        keywords: "abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params partial private protected public readonly record ref required return sealed set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual void volatile when where while with yield",
        types: "bool byte char decimal double dynamic float int long nint object sbyte short string uint ulong ushort",
        strings: &[TRIPLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | HASH_LINES,
        ..CURLY
    },
    Language {
        name: "Objective-C",
        aliases: "objective-c objc objectivec mm",
        keywords: "auto break case const continue default do else enum extern for goto if in inline register return self sizeof static struct super switch typedef union volatile while",
        types: C_TYPES,
        values: "YES NO nil NULL true false",
        flags: CAPITAL_TYPES | HASH_LINES | AT_META,
        ..CURLY
    },
    Language {
        name: "Swift",
        aliases: "swift",
        keywords: "actor any as associatedtype async await break case catch class continue convenience default defer deinit do else enum extension fallthrough fileprivate final for func get guard if import in indirect infix init inout internal is lazy let mutating nonisolated open operator optional override postfix precedencegroup prefix private protocol public repeat required rethrows return set some static struct subscript super switch throw throws try typealias unowned var weak where while",
        values: "true false nil self Self",
        strings: &[TRIPLE, DOUBLE],
        flags: CAPITAL_TYPES | AT_META | NESTED_COMMENTS,
        ..CURLY
    },
    Language {
        name: "Ruby",
        aliases: "ruby rb rake gemfile rakefile gemspec podfile",
        keywords: "alias and begin break case class def defined? do else elsif end ensure extend for if in include module next not or private protected public raise redo require require_relative rescue retry return super then undef unless until when while yield attr_accessor attr_reader attr_writer",
        values: "true false nil self __FILE__",
        block_comments: &[("=begin", "=end")],
        flags: CAPITAL_TYPES | COLON_ATOMS | REGEX | AT_META,
        ..SCRIPT
    },
    Language {
        name: "PHP",
        aliases: "php php5 phtml",
        keywords: "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while xor yield",
        types: "bool float int iterable mixed never object string void",
        values: "true false null self parent TRUE FALSE NULL",
        line_comments: &["//", "#"],
        block_comments: STARS,
        strings: &[LONG_DOUBLE, LONG_SINGLE],
        flags: CAPITAL_TYPES | DOLLAR,
        ..PLAIN
    },
    Language {
        name: "Perl",
        aliases: "perl pl pm",
        keywords: "and bless chomp cmp defined delete die do each else elsif eq eval exists for foreach ge gt if keys last le local lt my ne next no not or our package print printf push qw redo ref require return say scalar shift sort split sub undef unless unshift until use values wantarray while xor",
        flags: DOLLAR | AT_META,
        ..SCRIPT
    },
    Language {
        name: "Lua",
        aliases: "lua luau",
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        values: "true false nil self",
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        strings: &[DOUBLE, SINGLE, quote("[[", "]]", false, true)],
        ..PLAIN
    },
    Language {
        name: "R",
        aliases: "r rscript",
        keywords: "break else for function if in library next repeat require return source while",
        values: "TRUE FALSE NULL NA NaN Inf T F",
        strings: &[LONG_DOUBLE, LONG_SINGLE],
        ..SCRIPT
    },
    Language {
        name: "Julia",
        aliases: "julia jl",
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable primitive quote return struct try type using where while",
        values: "true false nothing missing Inf NaN",
        block_comments: &[("#=", "=#")],
        strings: &[TRIPLE, DOUBLE],
        flags: CAPITAL_TYPES | AT_META | APOSTROPHE_IS_CHAR | COLON_ATOMS,
        ..SCRIPT
    },
    Language {
        name: "Scala",
        aliases: "scala sc sbt",
        keywords: "abstract case catch class def derives do else end enum export extends extension final finally for forSome given if implicit import inline lazy match new object opaque override package private protected return sealed super then throw trait transparent try type using val var while with yield",
        values: "true false null this",
        strings: &[TRIPLE, DOUBLE],
        flags: CAPITAL_TYPES | AT_META | APOSTROPHE_IS_CHAR | NESTED_COMMENTS,
        ..CURLY
    },
    Language {
        name: "Groovy",
        aliases: "groovy gradle jenkinsfile",
        keywords: "abstract as assert break case catch class const continue def default do else enum extends final finally for goto if implements import in instanceof interface new package private protected public return static super switch this throw throws trait try void while",
        types: "boolean byte char double float int long short",
        strings: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META,
        ..CURLY
    },
    Language {
        name: "Dart",
        aliases: "dart",
        keywords: "abstract as assert async await base break case catch class const continue covariant default deferred do else enum export extends extension external factory final finally for get hide if implements import in interface is late library mixin new of on operator part required rethrow return sealed set show static super switch sync this throw try typedef var void when while with yield",
        types: "bool double dynamic int num",
        strings: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META | PREFIXED_STRINGS,
        ..CURLY
    },
    Language {
        name: "Elixir",
        aliases: "elixir ex exs heex eex",
        keywords: "after alias and case catch cond def defdelegate defexception defguard defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue super throw try unless unquote use when with",
        values: "true false nil self __MODULE__",
        strings: &[TRIPLE, DOUBLE, SINGLE],
        flags: CAPITAL_TYPES | AT_META | COLON_ATOMS,
        ..SCRIPT
    },
    Language {
        name: "Erlang",
        aliases: "erlang erl hrl",
        keywords: "after and andalso begin case catch div end fun if let maybe of or orelse receive rem try when xor",
        values: "true false undefined ok error",
        line_comments: &["%"],
        ..PLAIN
    },
    Language {
        name: "Haskell",
        aliases: "haskell hs lhs",
        keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr instance let module newtype of qualified then type where",
        values: "True False otherwise",
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        strings: &[DOUBLE],
        flags: CAPITAL_TYPES | APOSTROPHE_IN_WORDS | APOSTROPHE_IS_CHAR | NESTED_COMMENTS,
        ..PLAIN
    },
    Language {
        name: "OCaml",
        aliases: "ocaml ml mli reason",
        keywords: "and as assert begin class constraint do done downto else end exception external for fun function functor if in include inherit initializer lazy let match method module mutable new nonrec object of open or private rec sig struct then to try type val virtual when while with",
        types: "bool char float int list option string unit",
        values: "true false",
        block_comments: &[("(*", "*)")],
        strings: &[LONG_DOUBLE],
        flags: CAPITAL_TYPES | APOSTROPHE_IN_WORDS | APOSTROPHE_IS_CHAR | NESTED_COMMENTS,
        ..PLAIN
    },
    Language {
        name: "F#",
        aliases: "fsharp f# fs fsx fsi",
        keywords: "abstract and as assert async base begin class default delegate do done downcast downto elif else end exception extern finally fixed for fun function global if in inherit inline interface internal lazy let match member module mutable namespace new not of open or override private public rec return select sig static struct task then to try type upcast use val void when while with yield",
        types: "bool byte char decimal float int list obj option seq string unit",
        line_comments: SLASHES,
        block_comments: &[("(*", "*)")],
        strings: &[TRIPLE, LONG_DOUBLE],
        flags: CAPITAL_TYPES | APOSTROPHE_IN_WORDS | APOSTROPHE_IS_CHAR | HASH_LINES,
        ..PLAIN
    },
    Language {
        name: "Clojure",
        aliases: "clojure clj cljs cljc edn",
        keywords: "def defmacro defmethod defmulti defn defn- defprotocol defrecord deftest do doseq dotimes fn for if if-let if-not import let loop new ns recur require throw try catch finally when when-let when-not use",
        values: "true false nil",
        line_comments: &[";"],
        strings: &[LONG_DOUBLE],
        flags: DASH_IN_WORDS | COLON_ATOMS,
        ..PLAIN
    },
    Language {
        name: "Lisp",
        aliases: "lisp cl el elisp emacs-lisp scheme scm racket rkt",
        keywords: "and begin case cond define define-syntax defmacro defmethod defparameter defstruct defun defvar do dolist dotimes else if lambda let let* letrec loop or progn provide quote require return set! setf setq syntax-rules unless when while with",
        values: "nil t",
        line_comments: &[";"],
        block_comments: &[("#|", "|#")],
        strings: &[LONG_DOUBLE],
        flags: DASH_IN_WORDS | NESTED_COMMENTS,
        ..PLAIN
    },
    Language {
        name: "Zig",
        aliases: "zig zon",
        keywords: "addrspace align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern fn for if inline linksection noalias noinline nosuspend opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
        types: "anyerror bool comptime_float comptime_int f16 f32 f64 f128 i8 i16 i32 i64 i128 isize noreturn type u8 u16 u32 u64 u128 usize void",
        values: "true false null undefined",
        flags: CAPITAL_TYPES | AT_META,
        ..CURLY
    },
    Language {
        name: "Nim",
        aliases: "nim nims",
        keywords: "addr and as asm bind block break case cast concept const continue converter defer discard distinct div do elif else end enum except export finally for from func if import in include interface is isnot iterator let macro method mixin mod not notin object of or out proc ptr raise ref return shl shr static template try tuple type using var when while xor yield",
        types: "bool char float int seq string",
        values: "true false nil result",
        block_comments: &[("#[", "]#")],
        strings: &[TRIPLE, DOUBLE, SINGLE],
        ..SCRIPT
    },
    Language {
        name: "Shell",
        aliases: "bash sh shell zsh fish ksh console shell-session shellscript terminal",
        keywords: "alias break case cd continue do done echo elif else end esac eval exec exit export fi for function if in local read readonly return select set shift source sudo then trap unset until while",
        values: "true false",
        strings: &[LONG_DOUBLE, RAW_SINGLE],
        flags: DOLLAR | DASH_IN_WORDS,
        ..SCRIPT
    },
    Language {
        name: "PowerShell",
        aliases: "powershell ps1 pwsh psm1 psd1",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach function hidden if in param process return static switch throw trap try until using while",
        block_comments: &[("<#", "#>")],
        strings: &[LONG_DOUBLE, RAW_SINGLE],
        flags: DOLLAR | DASH_IN_WORDS | ANY_CASE,
        ..SCRIPT
    },
    Language {
        name: "Batch",
        aliases: "batch bat cmd dos",
        keywords: "call cd copy del do echo else endlocal errorlevel exist exit for goto if in md mkdir move not off on pause rd ren rmdir set setlocal shift start",
        line_comments: &["::", "rem ", "REM "],
        strings: &[DOUBLE],
        flags: ANY_CASE,
        ..PLAIN
    },
    Language {
        name: "SQL",
        aliases: "sql mysql postgres postgresql pgsql plsql sqlite tsql ddl",
        keywords: SQL_WORDS,
        types: "bigint blob boolean bytea char date decimal double float int integer interval json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
        line_comments: &["--"],
        block_comments: STARS,
        strings: &[
            quote("'", "'", false, true),
            quote("\"", "\"", false, false),
            quote("`", "`", false, false),
        ],
        flags: ANY_CASE,
        ..PLAIN
    },
    Language {
        name: "HTML",
        aliases: "html htm xhtml handlebars hbs erb ejs jinja jinja2 j2 twig",
        ..MARKUP
    },
    Language {
        name: "XML",
        aliases: "xml svg xsd xsl xslt plist csproj xaml rss wsdl",
        ..MARKUP
    },
    Language {
        name: "Vue",
        aliases: "vue svelte astro",
        ..MARKUP
    },
    Language {
        name: "CSS",
        aliases: "css",
        block_comments: STARS,
        values: "auto none inherit initial unset",
        flags: DASH_IN_WORDS | KEYS | AT_META,
        ..PLAIN
    },
    Language {
        name: "SCSS",
        aliases: "scss sass less styl",
        values: "auto none inherit initial unset true false null",
        flags: DASH_IN_WORDS | KEYS | AT_META | DOLLAR,
        ..CURLY
    },
    Language {
        name: "JSON",
        aliases: "json jsonc json5 jsonl ndjson geojson ipynb webmanifest",
        flags: KEYS,
        ..CURLY
    },
    Language {
        name: "YAML",
        aliases: "yaml yml",
        grammar: Grammar::Keyed,
        values: "true false null yes no on off",
        flags: 0,
        ..SCRIPT
    },
    Language {
        name: "TOML",
        aliases: "toml cargo.lock",
        grammar: Grammar::Keyed,
        strings: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, quote("'", "'", false, false)],
        flags: SECTIONS,
        ..SCRIPT
    },
    Language {
        name: "INI",
        aliases: "ini cfg conf properties env dotenv editorconfig gitconfig service desktop",
        grammar: Grammar::Keyed,
        line_comments: &["#", ";"],
        strings: &[DOUBLE],
        values: "true false yes no on off",
        flags: SECTIONS | DOLLAR,
        ..PLAIN
    },
    Language {
        name: "Markdown",
        aliases: "markdown md mdx mkd",
        grammar: Grammar::Markdown,
        ..PLAIN
    },
    Language {
        name: "Diff",
        aliases: "diff patch udiff",
        grammar: Grammar::Diff,
        ..PLAIN
    },
    Language {
        name: "Dockerfile",
        aliases: "dockerfile docker containerfile",
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal user volume workdir",
        flags: ANY_CASE | DOLLAR,
        ..SCRIPT
    },
    Language {
        name: "Makefile",
        aliases: "makefile make mk mak gnumakefile justfile just",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override undefine unexport vpath",
        flags: DOLLAR | KEYS | DASH_IN_WORDS,
        ..SCRIPT
    },
    Language {
        name: "CMake",
        aliases: "cmake cmakelists.txt",
        keywords: "break continue else elseif endforeach endfunction endif endmacro endwhile foreach function if include macro message option project return set while",
        values: "on off true false",
        strings: &[LONG_DOUBLE],
        flags: ANY_CASE | DOLLAR,
        ..SCRIPT
    },
    Language {
        name: "GraphQL",
        aliases: "graphql gql graphqls",
        keywords: "directive enum extend fragment implements input interface mutation on query repeatable scalar schema subscription type union",
        types: "Boolean Float ID Int String",
        strings: &[TRIPLE, DOUBLE],
        flags: CAPITAL_TYPES | KEYS | AT_META | DOLLAR,
        ..SCRIPT
    },
    Language {
        name: "Protobuf",
        aliases: "protobuf proto proto3",
        keywords: "enum extend extensions import message oneof option optional package public repeated required reserved returns rpc service stream syntax to weak",
        types: "bool bytes double fixed32 fixed64 float int32 int64 map sfixed32 sfixed64 sint32 sint64 string uint32 uint64",
        ..CURLY
    },
    Language {
        name: "HCL",
        aliases: "hcl terraform tf tfvars",
        keywords: "data dynamic else endfor endif for for_each if in locals module output provider resource terraform variable",
        types: "any bool list map number object set string tuple",
        line_comments: &["#", "//"],
        block_comments: STARS,
        strings: &[DOUBLE],
        flags: 0,
        ..PLAIN
    },
    Language {
        name: "Nix",
        aliases: "nix",
        keywords: "assert else if import in inherit let or rec then with",
        block_comments: STARS,
        strings: &[LONG_DOUBLE, quote("''", "''", false, true)],
        flags: DASH_IN_WORDS | APOSTROPHE_IN_WORDS,
        ..SCRIPT
    },
    Language {
        name: "LaTeX",
        aliases: "latex tex bib bibtex",
        line_comments: &["%"],
        strings: &[],
        flags: AT_META | BACKSLASH_WORDS,
        ..PLAIN
    },
    Language {
        name: "Vim script",
        aliases: "vim vimscript viml vimrc",
        keywords: "abort au augroup autocmd call catch command echo else elseif endfor endfunction endif endtry endwhile execute finally for function highlight if in let map nmap nnoremap noremap return set setlocal silent syntax throw try unlet vmap while",
        line_comments: &["\" "],
        strings: &[SINGLE],
        flags: 0,
        ..PLAIN
    },
    Language {
        name: "Solidity",
        aliases: "solidity sol",
        keywords: "abstract as assembly break calldata case catch constant constructor continue contract default delete do else emit enum error event external fallback for from function if immutable import indexed interface internal is library mapping memory modifier new override payable pragma private public pure receive return returns revert storage struct super switch this throw try type unchecked using view virtual while",
        types: "address bool bytes bytes32 int int256 string uint uint8 uint256",
        ..CURLY
    },
    Language {
        name: "Assembly",
        aliases: "asm assembly nasm s x86asm arm",
        keywords: "add and call cmp dec div inc int jmp je jne jz jnz jg jl ja jb lea leave loop mov movzx mul neg nop not or pop push ret rol ror sal sar shl shr sub syscall test xor section global extern db dw dd dq equ",
        line_comments: &[";", "#", "//"],
        block_comments: STARS,
        flags: ANY_CASE,
        ..PLAIN
    },
    Language {
        name: "MATLAB",
        aliases: "matlab octave m",
        keywords: "break case catch classdef continue else elseif end endfunction for function global if methods otherwise parfor persistent properties return switch try while",
        line_comments: &["%"],
        block_comments: &[("%{", "%}")],
        ..PLAIN
    },
    Language {
        name: "Visual Basic",
        aliases: "vb vbnet visualbasic vba vbs bas",
        keywords: "and as boolean byref byval call case class const dim do each else elseif end enum exit false for friend function get goto if implements imports in inherits integer interface is let long loop me mod module namespace new next not nothing object of on option or overrides private property protected public redim resume return select set shared single static step string structure sub then to true try until wend while with",
        line_comments: &["'", "REM "],
        strings: &[quote("\"", "\"", false, false)],
        values: "",
        flags: ANY_CASE,
        ..PLAIN
    },
    Language {
        name: "Pascal",
        aliases: "pascal pas delphi dpr lpr",
        keywords: "and array as begin case class const constructor destructor div do downto else end except exports file finalization finally for function goto if implementation in inherited initialization inline interface is label mod not object of on operator or packed procedure program property raise record repeat resourcestring set shl shr string then threadvar to try type unit until uses var while with xor",
        types: "boolean byte cardinal char double integer longint real single word",
        values: "true false nil self",
        line_comments: SLASHES,
        block_comments: &[("(*", "*)"), ("{", "}")],
        strings: &[quote("'", "'", false, false)],
        flags: ANY_CASE,
        ..PLAIN
    },
    Language {
        name: "nginx",
        aliases: "nginx nginxconf",
        keywords: "access_log add_header alias allow deny error_log events expires gzip http if include index listen location log_format map proxy_pass proxy_set_header return rewrite root server server_name set ssl_certificate ssl_certificate_key try_files types upstream user worker_connections worker_processes",
        values: "on off",
        flags: DOLLAR,
        ..SCRIPT
    },
];
